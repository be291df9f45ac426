package command

import (
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/fail"
)

// TestGroupSettings: a group sets each of its keys once; a key without a value is true, and + stands for a
// comma.
func TestGroupSettings(t *testing.T) {
	groups := Groups{{Name: "space", Parts: func() []cli.Flag {
		return []cli.Flag{&cli.StringFlag{Name: "max-tp"}, &cli.BoolFlag{Name: "offload"}}
	}}}
	for _, tc := range []struct{ value, want, wrong string }{
		{value: "max_tp=2+4,offload", want: "2,4 true"},
		{value: "max-tp=2", want: "2 false"},
		{value: "max-tp=2,max-tp=2", wrong: "--space: max-tp is given twice"},
		{value: "max-tp=2,max_tp=4", wrong: "--space: max-tp is given twice"},
		{value: "max-pt=2", wrong: `--space: unknown key "max-pt"`},
		{value: "offload=2", wrong: `--space offload "2"`},
	} {
		var got string
		app := func() *cli.App {
			return &cli.App{Name: "pacer", Commands: []*cli.Command{{
				Name:  "plan",
				Flags: []cli.Flag{GroupFlag("space", "limit plans", "max-tp=2", "")},
				Action: func(c *cli.Context) error {
					got = fmt.Sprint(c.String("max-tp"), " ", c.Bool("offload"))
					return nil
				},
			}}}
		}
		var stderr strings.Builder
		code := Run(t.Context(), []string{"pacer", "plan", "--space", tc.value}, nil, io.Discard, &stderr, app, groups)
		if tc.wrong == "" && (code != fail.OK || got != tc.want) {
			t.Errorf("%s: %q, exit code %d, %s; want %q", tc.value, got, code, &stderr, tc.want)
		}
		if tc.wrong != "" && (code != fail.Usage || !strings.Contains(stderr.String(), tc.wrong)) {
			t.Errorf("%s: exit code %d, %q; want %q", tc.value, code, &stderr, tc.wrong)
		}
	}
}
