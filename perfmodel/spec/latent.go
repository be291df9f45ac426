package spec

// rotated is the width of a head that multi-head latent attention keeps apart for the position, in addition to
// HeadDim. It has this value in all published networks (DeepSeek-V2, section 3.1.2; DeepSeek-V3, section 4.2).
const rotated = 64

// Latent has the widths of multi-head latent attention. The input, of width h, is multiplied to QRank and to
// KVRank + Rotated, from there to queries and to keys and values of all heads, and attention's output back to h.
type Latent struct {
	QRank   float64 // 0 = queries are not compressed
	QIn     float64 // input of the queries: QRank or h
	Q       float64 // queries of all heads, with their rotated parts
	KVRank  float64
	Rotated float64 // of the keys, one for all heads
	KV      float64 // keys, without rotated parts, and values of all heads
	Out     float64 // output of attention, all heads
}

// Latent returns the widths of multi-head latent attention, false for other attention.
func (m Model) Latent() (Latent, bool) {
	if m.KVRank == 0 {
		return Latent{}, false
	}
	a, d := float64(m.Heads), float64(m.Head())
	l := Latent{QRank: float64(m.QRank), QIn: float64(m.QRank), Q: a * (d + rotated), KVRank: float64(m.KVRank), Rotated: rotated, KV: 2 * a * d, Out: a * d}
	if m.QRank == 0 {
		l.QIn = float64(m.Hidden)
	}
	return l, true
}

// Down returns the width of the compressed queries, keys and values, which every tensor parallel rank computes.
func (l Latent) Down() float64 { return l.QRank + l.KVRank + l.Rotated }
