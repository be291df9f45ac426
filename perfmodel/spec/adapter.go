package spec

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Adapter is fine-tuning that freezes the weights of a model and trains low-rank additions to some of its matrices. It
// is comparable; the zero value trains all weights. Its text is "none" or "KIND:RANK", or "KIND:RANK:MODULES" with
// other modules than qkv+o.
type Adapter struct {
	Kind    AdapterKind
	Rank    int
	Modules AdapterModules
}

// AdapterKind is a method of fine-tuning.
type AdapterKind string

// Methods of fine-tuning.
const (
	FullTraining AdapterKind = ""      // all weights are trained
	LoRA         AdapterKind = "lora"  // frozen weights in 16 bits (Hu et al., arXiv 2106.09685)
	QLoRA        AdapterKind = "qlora" // frozen weights in 4 bits, dequantized on use (Dettmers et al., arXiv 2305.14314)
	DoRA         AdapterKind = "dora"  // LoRA of the direction of each weight, with trained magnitudes (Liu et al., arXiv 2402.09353)
)

// AdapterModules is a set of a layer's matrices.
type AdapterModules uint8

// The matrices of a layer.
const (
	AdaptQKV AdapterModules = 1 << iota
	AdaptO
	AdaptMLP
)

var adapterModules = []struct {
	name string
	bit  AdapterModules
}{{"qkv", AdaptQKV}, {"o", AdaptO}, {"mlp", AdaptMLP}}

// usualModules are those that most recipes adapt.
const usualModules = AdaptQKV | AdaptO

// String returns the text of a.
func (a Adapter) String() string {
	if a.Kind == FullTraining {
		return "none"
	}
	out := string(a.Kind) + ":" + strconv.Itoa(a.Rank)
	if a.Modules == usualModules {
		return out
	}
	var names []string
	for _, m := range adapterModules {
		if a.Modules&m.bit != 0 {
			names = append(names, m.name)
		}
	}
	return out + ":" + strings.Join(names, "+")
}

// ParseAdapter reads the text of an adapter. "" is none.
func ParseAdapter(text string) (Adapter, error) {
	if text == "" || text == "none" {
		return Adapter{}, nil
	}
	kind, rest, _ := strings.Cut(text, ":")
	rank, modules, some := strings.Cut(rest, ":")
	a := Adapter{Kind: AdapterKind(kind), Modules: usualModules}
	if a.Kind != LoRA && a.Kind != QLoRA && a.Kind != DoRA {
		return Adapter{}, fmt.Errorf("spec: adapter %q: want none, or lora, qlora or dora with a rank, such as lora:16", text)
	}
	var err error
	if a.Rank, err = strconv.Atoi(rank); err != nil || a.Rank < 1 {
		return Adapter{}, fmt.Errorf("spec: adapter %q: the rank %q is not a number above 0", text, rank)
	}
	if !some {
		return a, nil
	}
	a.Modules = 0
	for _, name := range strings.Split(modules, "+") {
		bit := AdapterModules(0)
		for _, m := range adapterModules {
			if m.name == name {
				bit = m.bit
			}
		}
		if bit == 0 {
			return Adapter{}, fmt.Errorf("spec: adapter %q: module %q is not one of qkv, o, mlp", text, name)
		}
		a.Modules |= bit
	}
	return a, nil
}

// MarshalText implements encoding.TextMarshaler.
func (a Adapter) MarshalText() ([]byte, error) { return []byte(a.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (a *Adapter) UnmarshalText(text []byte) error {
	got, err := ParseAdapter(string(text))
	if err == nil {
		*a = got
	}
	return err
}

// Has reports whether a adapts all of the given modules.
func (a Adapter) Has(m AdapterModules) bool { return a.Kind != FullTraining && a.Modules&m == m }

// Adapted returns m with an adapter, and with its text behind the name, since measurements of m say nothing about its
// fine-tuning.
func (m Model) Adapted(a Adapter) Model {
	if m.Adapter = a; a.Kind != FullTraining {
		m.Name += " (" + a.String() + ")"
	}
	return m
}

// CheckAdapter reports why m cannot have its adapter.
func (m *Model) CheckAdapter() error {
	switch rank := m.Adapter.Rank; {
	case m.Adapter.Kind == FullTraining:
		return nil
	case !m.HasShape():
		return fmt.Errorf("needs a model with known layers and widths, which %s is not", m.Name)
	case rank < 1:
		return errors.New("needs a rank above 0")
	case rank > m.Hidden:
		return fmt.Errorf("has a rank of %d, more than the width %d of the network, %s", rank, m.Hidden, m.Name)
	}
	return nil
}

// AdapterParams returns the parameters of all adapters, those of routed experts apart: r·(in + out) for each adapted
// matrix, and a magnitude per output with DoRA. Every expert has adapters of its own; state-space mixers and the
// projections of ExpertHidden have none.
func (m *Model) AdapterParams() (dense, experts float64) {
	a := m.Adapter
	if a.Kind == FullTraining {
		return 0, 0
	}
	h := float64(m.Hidden)
	of := func(in, out float64) float64 {
		if in == 0 || out == 0 {
			return 0
		}
		p := float64(a.Rank) * (in + out)
		if a.Kind == DoRA {
			p += out
		}
		return p
	}
	attention := float64(m.AttentionLayers())
	if m.Kind == EncoderDecoder { // cross attention of the decoder half
		attention *= 1.5
	}
	l, latent := m.Latent()
	switch {
	case !a.Has(AdaptQKV):
	case latent:
		dense += attention * (of(h, l.QRank) + of(l.QIn, l.Q) + of(h, l.KVRank+l.Rotated) + of(l.KVRank, l.KV))
	default:
		dense += attention * of(h, float64((m.Heads+2*m.KV())*m.Head()))
	}
	if a.Has(AdaptO) {
		dense += attention * of(float64(m.Heads*m.Head()), h)
	}
	if a.Has(AdaptMLP) {
		mlp := func(in, f int) float64 {
			return of(float64(in), (m.mlpMatrices()-1)*float64(f)) + of(float64(f), float64(in))
		}
		moe := m.MoELayers()
		dense += float64(m.LayersWithMLP()-moe)*mlp(m.Hidden, m.FFN) + float64(moe*m.SharedExperts)*mlp(m.Hidden, m.ExpertFFN)
		experts = float64(moe*m.Experts) * mlp(m.ExpertIn(), m.ExpertFFN)
	}
	return dense, experts
}

// TrainedParams returns the parameters with gradients and optimizer state.
func (m *Model) TrainedParams() float64 {
	if m.Adapter.Kind == FullTraining {
		return m.Params()
	}
	dense, experts := m.AdapterParams()
	return dense + experts
}
