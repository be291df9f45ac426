package policy_test

import (
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/scheduler"
	"github.com/pacer-ml/pacer/scheduler/policy"
)

func TestOption(t *testing.T) {
	for _, c := range []struct {
		option       policy.Option
		other, valid string
	}{
		{policy.Option{Default: "300", Unit: "s", Max: 1e9}, "150", "0 to 1e9 s"},
		{policy.Option{Default: "3", Min: 1, Max: 1e9}, "6", "1 to 1e9"},
		{policy.Option{Default: "0", Max: 0.9}, "0.9", "0 to 0.9"},
		{policy.Option{Default: "0", Unit: "h", Max: policy.Unbounded}, "1", "at least 0 h"},
		{policy.Option{Default: "0.95", Max: 1}, "0.475", "0 to 1"},
		{policy.Option{Default: "-0.5", Min: -100, Max: -1e-3}, "-0.25", "-100 to -0.001"},
		{policy.Option{Default: "true"}, "false", "true or false"},
		{policy.Option{Default: "57600", Example: "3600/57600"}, "3600/57600", "such as 3600/57600"},
		{policy.Option{Default: ""}, "", ""},
	} {
		if got := c.option.Other(); got != c.other {
			t.Errorf("%+v: another value is %q, want %q", c.option, got, c.other)
		}
		if got := c.option.Range(); got != c.valid {
			t.Errorf("%+v: the range is %q, want %q", c.option, got, c.valid)
		}
	}
}

// NewRegistry refuses options that accept their default only, and contradictions.
func TestCheckOptions(t *testing.T) {
	quantum := policy.Option{Name: "quantum", Default: "1", Unit: "s", Max: 9}
	for _, c := range []struct {
		options []policy.Option
		files   []string
		says    string
	}{
		{[]policy.Option{quantum, {Name: "trace"}}, []string{"trace"}, ""},
		{[]policy.Option{{Name: "aging", Default: "0", Unit: "h"}}, nil, "option aging has no valid value but its default"},
		{[]policy.Option{{Name: "limits", Default: "57600"}}, nil, "option limits has no valid value but its default"},
		{[]policy.Option{{Name: "aging", Default: "10", Max: 9}}, nil, `option aging: default "10", want 0 to 9`},
		{[]policy.Option{{Name: "aging", Default: "no", Max: 9}}, nil, `option aging: default "no", want 0 to 9`},
		{[]policy.Option{quantum, quantum}, nil, "option quantum is declared twice"},
	} {
		err := policy.CheckOptions(c.options, c.files)
		if c.says == "" && err != nil || c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says)) {
			t.Errorf("%+v: error %v, want %q", c.options, err, c.says)
		}
		func() {
			defer func() {
				if r := recover(); (r != nil) != (c.says != "") {
					t.Errorf("%+v: NewRegistry panics with %v, want %q", c.options, r, c.says)
				}
			}()
			policy.NewRegistry(policy.Info{Name: "p", Options: c.options, Reads: c.files})
		}()
	}
}

func TestValues(t *testing.T) {
	options := []policy.Option{{Name: "lease", Default: "1", Unit: "h", Max: policy.Unbounded}, {Name: "keep", Default: "true"}, {Name: "n", Default: "1", Max: 9}}
	read := func(set map[string]string) (lease time.Duration, err error) {
		v := policy.Deps{Options: set}.Values(options)
		lease = v.Duration("lease")
		v.Bool("keep")
		v.Int("n")
		return lease, v.Err()
	}
	if lease, err := read(nil); lease != time.Hour || err != nil {
		t.Errorf("a lease of %v, error %v, want 1h0m0s", lease, err)
	}
	if lease, err := read(map[string]string{"lease": "1e300"}); lease != policy.MaxWait || err != nil {
		t.Errorf("a lease of %v, error %v, want MaxWait", lease, err)
	}
	for _, c := range []struct{ name, value, says string }{
		{"lease", "-1", `option lease "-1": want a number, at least 0 h`},
		{"keep", "maybe", `option keep "maybe": want true or false`},
		{"n", "1.5", `option n "1.5": want a whole number, 0 to 9`},
	} {
		if _, err := read(map[string]string{c.name: c.value}); err == nil || err.Error() != c.says {
			t.Errorf("%s=%s: error %v, want %q", c.name, c.value, err, c.says)
		}
	}
}

// A registered policy that reads an option its Info does not declare is refused.
func TestUndeclaredOption(t *testing.T) {
	defer func() {
		if r := recover(); r != "policy: p reads option backfill, which its Info does not declare" {
			t.Errorf("panic %v", r)
		}
	}()
	p := policy.Info{Name: "p", New: func(d policy.Deps) (scheduler.Policy, error) {
		d.Values([]policy.Option{{Name: "backfill", Default: "true"}})
		return nil, nil
	}}
	_, _ = policy.NewRegistry(p).New(policy.Spec{Name: "p"}, policy.Deps{})
	t.Error("no panic")
}
