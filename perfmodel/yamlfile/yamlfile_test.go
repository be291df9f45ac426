package yamlfile

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestValues: every method reads values of its type, and refuses others.
func TestValues(t *testing.T) {
	f := File{Name: "f.yaml", Package: "p", Kind: "test"}
	got := map[string]any{}
	for _, e := range f.Parse([]byte("a: 3\nb: 0.5\nc: true\nd: 90s\ne: [x, 'y z']\nf: {k: v}\ng: small\nh:\n")).Entries("a", "b", "c", "d", "e", "f", "g", "h") {
		switch n := e.Value; e.Key {
		case "a":
			got["a"] = n.Whole(1, 3)
		case "b":
			got["b"] = n.Number(0, false, 1)
		case "c":
			got["c"] = n.Flag() && n.Scalar() == "true"
		case "d":
			got["d"] = n.Duration()
		case "e":
			var texts []string
			for _, x := range n.List() {
				texts = append(texts, x.Text())
			}
			got["e"] = strings.Join(texts, "|")
		case "f":
			got["f"] = n.IsMapping() && !n.IsList() && len(n.List()) == 1 && n.Key("k").Scalar() == "v" && !n.Key("l").Given() && n.Entries("k")[0].Value.Text() == "v"
		case "g":
			got["g"] = Word(n, "large", "small")
		case "h":
			got["h"] = n.Given()
		}
	}
	if err := f.Err(); err != nil || f.Count() != 0 {
		t.Fatal(err)
	}
	want := map[string]any{"a": 3, "b": 0.5, "c": true, "d": 90 * time.Second, "e": "x|y z", "f": true, "g": "small", "h": false}
	for k, v := range want {
		if got[k] != v {
			t.Errorf("%s: %v, want %v", k, got[k], v)
		}
	}
}

// TestFaults: every error is reported at its position, in file order, up to MaxMessages.
func TestFaults(t *testing.T) {
	f := File{Name: "f.yaml", Package: "p", Kind: "test"}
	top := f.Parse([]byte("b: x\na: [1, two, &z 3]\nc: 3\n"))
	for _, e := range top.Entries("a", "b") {
		for _, n := range e.Value.List() {
			n.Whole(2, 9)
		}
	}
	want := []string{
		`p: f.yaml:1:4: "x" is not a whole number`, `p: f.yaml:2:5: 1 is not in 2..9`, `p: f.yaml:2:8: "two" is not a whole number`,
		`p: f.yaml:2:13: an anchor or alias, which test files do not use is not a whole number`, `p: f.yaml:3:1: unknown key "c", nearest is `,
	}
	lines := strings.Split(fmt.Sprint(f.Err()), "\n")
	if f.Count() != len(want) || len(lines) != len(want) {
		t.Fatalf("%d faults, want %d:\n%v", f.Count(), len(want), f.Err())
	}
	for i, l := range lines {
		if i != 3 && !strings.HasPrefix(l, want[i]) || i == 3 && !strings.Contains(l, "which test files do not use") {
			t.Errorf("%q, want %q", l, want[i])
		}
	}
	many := File{Name: "f.yaml", Package: "p"}
	for i := range MaxMessages + 5 {
		many.Fail(nil, "fault %d", i)
	}
	if text := many.Err().Error(); strings.Count(text, "\n") != MaxMessages || !strings.HasSuffix(text, "and 5 more") {
		t.Error(text)
	}
}

// TestMalformed: text that is not one YAML document is an error.
func TestMalformed(t *testing.T) {
	for text, want := range map[string]string{
		"":                        "the file is empty",
		"a: [1":                   "f.yaml:1:",
		"a: 1\n---\nb: 2\n":       "a second document",
		"name: \x00\xff\n":        "not text in UTF-8",
		strings.Repeat("[", 200):  "nested more than 100 deep",
		strings.Repeat("- ", 200): "nested more than 100 deep",
		"a: 1\na: 2\n":            "f.yaml:2:1",
	} {
		f := File{Name: "f.yaml", Package: "p", Kind: "test"}
		f.Parse([]byte(text)).Entries("a")
		if err := f.Err(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.20q: %v, want %q", text, err, want)
		}
	}
}
