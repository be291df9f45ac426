package spec

// Tower is a transformer encoder with outputs that are tokens of the language model, such as the vision tower of a
// vision-language model. The zero value means none.
type Tower struct {
	Layers    int  `json:"layers,omitempty"`
	Hidden    int  `json:"hidden,omitempty"`
	FFN       int  `json:"ffn,omitempty"` // inner width of the MLP
	Heads     int  `json:"heads,omitempty"`
	GatedMLP  bool `json:"gated_mlp,omitempty"`
	Tokens    int  `json:"tokens,omitempty"`    // patches per sample; SeqLen counts the tokens that they become
	Projector int  `json:"projector,omitempty"` // parameters of patch embedding and projector
}

// Params returns the parameters of the tower and its projector.
func (t Tower) Params() float64 {
	h, f := float64(t.Hidden), float64(t.FFN)
	mlp := 2.0
	if t.GatedMLP {
		mlp = 3
	}
	return float64(t.Layers)*(4*h*h+mlp*h*f) + float64(t.Projector)
}

// TrainFLOPs returns the FLOPs of the forward and backward pass of the tower for one sample.
func (t Tower) TrainFLOPs() float64 {
	n := float64(t.Tokens)
	return 6*t.Params()*n + 12*float64(t.Layers)*float64(t.Hidden)*n*n
}
