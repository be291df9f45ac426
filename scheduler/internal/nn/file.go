package nn

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
)

// File format, numbers little endian:
//
//	8 bytes   "pacer-nn"
//	uint32    version, 1
//	uint32    length of the header
//	          header in JSON: {"meta": data of the caller, "nets": [{"name","sizes","half"}]}
//	          parameters of each network, layer by layer: the weights of each input, then the
//	          biases; float32, with half float16
//	uint32    CRC-32 (IEEE) of all bytes before
const (
	magic       = "pacer-nn"
	fileVersion = 1
	prefix      = len(magic) + 8
)

// Errors of Decode.
var (
	ErrNoFile  = errors.New("not a file of networks")
	ErrCorrupt = errors.New("the file is damaged")
	ErrVersion = errors.New("unknown file version")
)

// Named is a network in a file.
type Named struct {
	Name string
	Net  *MLP
}

type header struct {
	Meta json.RawMessage `json:"meta"`
	Nets []netHeader     `json:"nets"`
}

type netHeader struct {
	Name  string `json:"name"`
	Sizes []int  `json:"sizes"`
	Half  bool   `json:"half,omitempty"`
}

// Encode returns a file of networks with the caller's meta data. With half it stores parameters as float16, which
// suffices for inference.
func Encode(meta any, half bool, nets ...Named) ([]byte, error) {
	text, err := json.Marshal(meta)
	if err != nil {
		return nil, fmt.Errorf("nn: %w", err)
	}
	h := header{Meta: text}
	for _, n := range nets {
		h.Nets = append(h.Nets, netHeader{n.Name, n.Net.sizes, half})
	}
	if text, err = json.Marshal(h); err != nil {
		return nil, fmt.Errorf("nn: %w", err)
	}
	b := binary.LittleEndian.AppendUint32([]byte(magic), fileVersion)
	b = binary.LittleEndian.AppendUint32(b, uint32(len(text)))
	b = append(b, text...)
	for _, n := range nets {
		for i, v := range n.Net.params {
			if v != v || math.IsInf(float64(v), 0) {
				return nil, fmt.Errorf("nn: parameter %d of network %s is %g: %w", i, n.Name, v, ErrDiverged)
			}
			if half {
				b = binary.LittleEndian.AppendUint16(b, toHalf(v))
			} else {
				b = binary.LittleEndian.AppendUint32(b, math.Float32bits(v))
			}
		}
	}
	return binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b)), nil
}

// Decode reads the output of Encode: it fills meta and returns the networks by name. Errors wrap ErrNoFile, ErrVersion
// or ErrCorrupt.
func Decode(b []byte, meta any) (map[string]*MLP, error) {
	if len(b) < prefix+4 || !bytes.HasPrefix(b, []byte(magic)) {
		return nil, fmt.Errorf("nn: %d bytes that do not begin with %q: %w", len(b), magic, ErrNoFile)
	}
	if v := binary.LittleEndian.Uint32(b[len(magic):]); v != fileVersion {
		return nil, fmt.Errorf("nn: version %d, want %d: %w", v, fileVersion, ErrVersion)
	}
	body, sum := b[:len(b)-4], binary.LittleEndian.Uint32(b[len(b)-4:])
	if got := crc32.ChecksumIEEE(body); got != sum {
		return nil, fmt.Errorf("nn: checksum %08x, want %08x: %w", got, sum, ErrCorrupt)
	}
	rest := body[prefix:]
	n := binary.LittleEndian.Uint32(b[len(magic)+4:])
	if int64(n) > int64(len(rest)) {
		return nil, fmt.Errorf("nn: a header of %d bytes in a file of %d: %w", n, len(b), ErrCorrupt)
	}
	var h header
	if err := json.Unmarshal(rest[:n], &h); err != nil {
		return nil, fmt.Errorf("nn: header: %w: %w", err, ErrCorrupt)
	}
	if err := json.Unmarshal(h.Meta, meta); err != nil {
		return nil, fmt.Errorf("nn: header: %w: %w", err, ErrCorrupt)
	}
	rest = rest[n:]
	out := map[string]*MLP{}
	for _, nh := range h.Nets {
		m, used, err := nh.read(rest)
		if err != nil {
			return nil, fmt.Errorf("nn: network %s: %w: %w", nh.Name, err, ErrCorrupt)
		}
		out[nh.Name], rest = m, rest[used:]
	}
	if len(rest) > 0 {
		return nil, fmt.Errorf("nn: %d bytes after the last network: %w", len(rest), ErrCorrupt)
	}
	return out, nil
}

// read reads the parameters of a network from the beginning of b.
func (h netHeader) read(b []byte) (m *MLP, used int, err error) {
	if err := checkSizes(h.Sizes); err != nil {
		return nil, 0, err
	}
	width := 4
	if h.Half {
		width = 2
	}
	if used = width * countParams(h.Sizes); used > len(b) {
		return nil, 0, fmt.Errorf("%d bytes of parameters, want %d", len(b), used)
	}
	if m, err = NewMLP(nil, h.Sizes...); err != nil {
		return nil, 0, err
	}
	for i := range m.params {
		if h.Half {
			m.params[i] = fromHalf(binary.LittleEndian.Uint16(b[2*i:]))
		} else {
			m.params[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
		if v := float64(m.params[i]); math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, 0, fmt.Errorf("parameter %d is %g", i, v)
		}
	}
	return m, used, nil
}

// toHalf returns the float16 (IEEE 754 binary16) nearest to v, ties to even. Values beyond 65504, the largest,
// saturate.
func toHalf(v float32) uint16 {
	b := math.Float32bits(v)
	sign := uint16(b >> 16 & 0x8000)
	abs := float64(math.Abs(float64(v)))
	switch {
	case abs >= 65504:
		return sign | 0x7bff
	case abs < 0x1p-14: // without the leading one, in steps of 2^-24
		return sign | uint16(math.RoundToEven(abs*0x1p24))
	}
	b &= 0x7fffffff
	b += 0xfff + b>>13&1 // half of what is cut off, to even
	return sign | uint16((b>>13)-(127-15)<<10)
}

func fromHalf(h uint16) float32 {
	exponent, fraction := int(h>>10&0x1f), float64(h&0x3ff)
	var v float64
	switch exponent {
	case 0:
		v = math.Ldexp(fraction, -24)
	case 0x1f:
		v = math.Inf(1)
	default:
		v = math.Ldexp(1+fraction/1024, exponent-15)
	}
	if h&0x8000 != 0 {
		v = -v
	}
	return float32(v)
}
