package profile

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/campaign"
	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/store"
)

// tinySession is a campaign of four points by the synthetic runner.
func tinySession(t *testing.T) *campaign.Session {
	t.Helper()
	file := filepath.Join(t.TempDir(), "tiny.yaml")
	err := os.WriteFile(file, []byte(`
name: tiny
models:
  - {name: gpt-a, kind: decoder, layers: 4, hidden: 128, ffn: 512, heads: 4, vocab: 1024, seq_len: 64}
space: {micro_batch: [1, 2, 4, 8]}
choose: grid
`), 0o644)
	if err != nil {
		t.Fatal(err)
	}
	none := func(context.Context, store.Filter) ([]spec.Measurement, error) { return nil, nil }
	s, err := campaign.Open(t.Context(), file, campaign.Options{Label: "1", Runner: "synthetic", Assume: "1xh100"}, none)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// fullDisk keeps some measurements and no more.
type fullDisk struct{ room int }

func (d *fullDisk) Put(_ context.Context, ms ...spec.Measurement) error {
	if d.room -= len(ms); d.room < 0 {
		return store.ErrNoSpace
	}
	return nil
}

// TestFullDisk: a sink that is full ends the campaign with exit code 1,
// and what was acknowledged before is in the summary.
func TestFullDisk(t *testing.T) {
	s := tinySession(t)
	var out, errs bytes.Buffer
	app := &cli.App{
		Writer: &out, ErrWriter: &errs, Flags: command.GlobalFlags(), ExitErrHandler: func(*cli.Context, error) {},
		Action: func(c *cli.Context) error {
			s.Profiler.Sink = &fullDisk{room: 2}
			return measure(c, s, func(campaign.Progress) {})
		},
	}
	err := app.Run([]string{"pacer"})
	if !errors.Is(err, store.ErrNoSpace) || fail.Code(err) != fail.Failed {
		t.Errorf("%v, exit code %d; want %v and 1", err, fail.Code(err), store.ErrNoSpace)
	}
	if !strings.Contains(errs.String(), "tiny: 2 of 4 points: ") || strings.Contains(errs.String(), "tiny: 3 of 4 points: ") {
		t.Errorf("acknowledged are not two points:\n%s", errs.String())
	}
	if !strings.Contains(out.String(), "2 points of 4") {
		t.Errorf("the summary lacks the two points:\n%s", out.String())
	}
}
