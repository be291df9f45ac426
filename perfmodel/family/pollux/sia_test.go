package pollux

import (
	"errors"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/internal/perftest"
)

func TestSiaNotCovered(t *testing.T) {
	fitted, _ := perftest.Fit(t, SiaFamily, measuredGrid(&truth, []int{4, 16}, []int{1}, perftest.DataParallelShapes...))
	for want, change := range perftest.NotDataParallel {
		c := perftest.DataParallel(8, 1, 4)
		change(&c)
		if _, err := fitted.Predict(t.Context(), c); !errors.Is(err, perfmodel.ErrNotCovered) {
			t.Errorf("%s: %v", want, err)
		}
	}
	other := perftest.DataParallel(8, 1, 4)
	other.Accelerator.Name = "fast"
	if _, err := fitted.Predict(t.Context(), other); !errors.Is(err, perfmodel.ErrNotCovered) {
		t.Errorf("another accelerator: %v", err)
	}
}

func TestSiaLoad(t *testing.T) {
	fitted, _ := perftest.Fit(t, SiaFamily, measuredGrid(&truth, []int{4, 16}, []int{1}, perftest.DataParallelShapes...))
	b, err := fitted.MarshalBinary()
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := loadSia(b)
	if err != nil {
		t.Fatal(err)
	}
	c := perftest.DataParallel(8, 2, 4, 4)
	want, err1 := fitted.Predict(t.Context(), c)
	got, err2 := loaded.Predict(t.Context(), c)
	if err1 != nil || err2 != nil || got.Throughput != want.Throughput {
		t.Errorf("%+v, %v came back as %+v, %v", want, err1, got, err2)
	}
	one := strings.TrimSuffix(strings.TrimPrefix(string(b), `{"types":[`), `]}`)
	for _, x := range []struct{ in, want string }{
		{"", "reading a fitted model"},
		{"{}", "of 0 types"},
		{`{"types":[null]}`, "null"},
		{`{"types":[{}]}`, "alpha_c is 0"},
		{`{"types":[` + one + `,` + one + `]}`, "of 2 types"},
	} {
		if _, err := loadSia([]byte(x.in)); err == nil || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%q: %v, want %q", x.in, err, x.want)
		}
	}
}
