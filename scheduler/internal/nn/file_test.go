package nn

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"math"
	"slices"
	"testing"
)

type kept struct{ Jobs int }

func TestFile(t *testing.T) {
	policy, value := newMLP(t, 1, 5, 7, 3), newMLP(t, 2, 5, 4, 1)
	for _, half := range []bool{false, true} {
		b, err := Encode(kept{40}, half, Named{"policy", policy}, Named{"value", value})
		if err != nil {
			t.Fatal(err)
		}
		var meta kept
		nets, err := Decode(b, &meta)
		if err != nil || meta.Jobs != 40 || len(nets) != 2 {
			t.Fatalf("half %v: %v, %+v, %d networks", half, err, meta, len(nets))
		}
		for name, want := range map[string]*MLP{"policy": policy, "value": value} {
			got := nets[name]
			if !slices.Equal(got.Sizes(), want.Sizes()) {
				t.Fatalf("%s has layers %v, want %v", name, got.Sizes(), want.Sizes())
			}
			for i, v := range want.Params() {
				tolerance := 0.0
				if half {
					tolerance = math.Max(math.Abs(float64(v))/2048, 0x1p-25)
				}
				if d := math.Abs(float64(got.Params()[i] - v)); d > tolerance {
					t.Fatalf("half %v: %s parameter %d is %g, want %g", half, name, i, got.Params()[i], v)
				}
			}
		}
	}
}

// TestDamagedFiles: Decode detects every changed or missing byte.
func TestDamagedFiles(t *testing.T) {
	b, err := Encode(kept{40}, false, Named{"policy", newMLP(t, 1, 3, 2)})
	if err != nil {
		t.Fatal(err)
	}
	var meta kept
	for i := range b {
		bad := slices.Clone(b)
		bad[i] ^= 0x41
		if _, err := Decode(bad, &meta); !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrNoFile) && !errors.Is(err, ErrVersion) {
			t.Errorf("byte %d changed: %v", i, err)
		}
		if _, err := Decode(b[:i], &meta); !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrNoFile) {
			t.Errorf("cut off after %d bytes: %v", i, err)
		}
	}
	newer := slices.Clone(b)
	newer[len(magic)]++
	if _, err := Decode(newer, &meta); !errors.Is(err, ErrVersion) {
		t.Errorf("version 2: %v", err)
	}
}

// TestLyingFiles: Decode rejects wrong contents under a valid checksum.
func TestLyingFiles(t *testing.T) {
	for name, text := range map[string]string{
		"no JSON":             `{`,
		"no sizes":            `{"meta":{},"nets":[{"name":"policy"}]}`,
		"negative sizes":      `{"meta":{},"nets":[{"name":"policy","sizes":[-3,2]}]}`,
		"all memory":          `{"meta":{},"nets":[{"name":"policy","sizes":[1000000000,1000000000]}]}`,
		"more than there is":  `{"meta":{},"nets":[{"name":"policy","sizes":[2,2]}]}`,
		"less than there is":  `{"meta":{},"nets":[]}`,
		"meta of other types": `{"meta":{"Jobs":"many"},"nets":[{"name":"policy","sizes":[1,1]}]}`,
		"not a number":        `{"meta":{},"nets":[{"name":"policy","sizes":[1,1]}]}`,
	} {
		b := binary.LittleEndian.AppendUint32([]byte(magic), fileVersion)
		b = binary.LittleEndian.AppendUint32(b, uint32(len(text)))
		b = append(b, text...)
		for range 2 {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(math.NaN())))
		}
		b = binary.LittleEndian.AppendUint32(b, crc32.ChecksumIEEE(b))
		var meta kept
		if _, err := Decode(b, &meta); !errors.Is(err, ErrCorrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEncodeRefusesWhatIsNotFinite(t *testing.T) {
	m := newMLP(t, 1, 2, 2)
	m.Params()[3] = float32(math.NaN())
	if _, err := Encode(kept{}, false, Named{"policy", m}); !errors.Is(err, ErrDiverged) {
		t.Errorf("got %v", err)
	}
}

func TestHalf(t *testing.T) {
	for _, c := range []struct{ in, want float32 }{
		{0, 0}, {1, 1}, {-2.5, -2.5}, {65504, 65504}, {1e9, 65504}, {-1e9, -65504}, {65519, 65504},
		{0x1p-14, 0x1p-14}, {0x1p-24, 0x1p-24}, {0x1p-26, 0},
		{1 + 0x1p-11, 1}, {1 + 3*0x1p-11, 1 + 0x1p-9}, // ties to even
		{2047.5, 2048},
	} {
		if got := fromHalf(toHalf(c.in)); got != c.want {
			t.Errorf("%g became %g, want %g", c.in, got, c.want)
		}
	}
	for h := range uint32(0x7c00) { // every finite one
		if got := toHalf(fromHalf(uint16(h))); got != uint16(h) {
			t.Fatalf("%#04x became %#04x", h, got)
		}
	}
}
