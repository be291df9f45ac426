package spec

import "testing"

func TestPeakFallsBackToWiderFormats(t *testing.T) {
	v100 := Accelerator{FP32: 15.7, FP16: 125}
	a100 := Accelerator{FP32: 19.5, TF32: 156, FP16: 312, BF16: 312}
	h100 := Accelerator{FP32: 67, TF32: 495, FP16: 989, BF16: 989, FP8: 1979}
	for _, tc := range []struct {
		a    Accelerator
		p    Precision
		want float64
	}{
		{v100, FP32, 15.7}, {v100, TF32, 15.7}, {v100, FP16, 125}, {v100, BF16, 125}, {v100, FP8, 125}, {v100, FP4, 125},
		{a100, TF32, 156}, {a100, BF16, 312}, {a100, FP8, 312},
		{h100, FP8, 1979}, {h100, FP4, 1979}, {h100, FP16, 989},
		{Accelerator{FP32: 9}, FP4, 9}, {Accelerator{}, BF16, 0}, {h100, "", 0}, {h100, "int4", 0},
	} {
		if got := tc.a.Peak(tc.p); got != tc.want {
			t.Errorf("peak of %+v in %q is %g, want %g", tc.a, tc.p, got, tc.want)
		}
	}
}

func TestShapeStats(t *testing.T) {
	for _, s := range []Shape{{}, NewShape(8), NewShape(4, 2, 1), Packed(20, 8)} {
		total, nodes, most, least := s.Stats()
		if total != s.Total() || nodes != s.Nodes() || most != s.Most() || least != s.Least() {
			t.Errorf("%q: %d devices on %d nodes of %d..%d, one by one %d on %d of %d..%d", s.Devices,
				total, nodes, least, most, s.Total(), s.Nodes(), s.Least(), s.Most())
		}
	}
}

func TestIsCPU(t *testing.T) {
	for name, want := range map[string]bool{"CPU Intel Xeon 2.6GHz AVX-512, 1 thread": true, "H100-80GB-SXM": false, "CPUX": false, "": false} {
		if got := (Accelerator{Name: name}).IsCPU(); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}
