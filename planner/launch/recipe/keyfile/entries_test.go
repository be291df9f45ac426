package keyfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestPlaces: the bytes of every place are the value as the file writes it, so that an edit replaces just these.
func TestPlaces(t *testing.T) {
	for _, c := range []struct {
		name string
		read func(string, []byte) ([]Entry, error)
		text string
		want string // key=written of each entry; without a place the value in brackets
	}{
		{"YAML", YAML, "# größe\na: 1 # one\nb:\n  c: \"two\"\n  d: [1, 2]\n  e:\nf: 'grün'\nlist:\n- g: 3\n- g: 4\nh: &x {i: 5}\nj: *x\n",
			`a=1 b.c="two" b.d=1, 2 b.e= f='grün' list[].g=3 list[].g=4 h.i=5 j.i=5`},
		{"JSON", JSON, "{\"a\": 1, // one\n\"b\": {\"c\": \"two\", \"d\": [1, 2], \"e\": null}, /* \" */ \"f\": \"gr\\u00fcn\",\n}",
			`a=1 b.c="two" b.d=[1 2] b.e=[] f=[grün]`},
		{"TOML", TOML, "a = 1_000 # one\n[b]\nc = 'two'\nd = [1, 2]\nf.g = true\n[[list]]\nh = \"#\"\n",
			`a=1_000 b.c='two' b.d=[1, 2] b.f.g=true list[].h="#"`},
	} {
		entries, err := c.read("file", []byte(c.text))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var got []string
		for _, e := range entries {
			written := "[" + e.Value + "]"
			if e.End > 0 {
				written = c.text[e.Start:e.End]
			}
			got = append(got, e.Key+"="+written)
		}
		if g := strings.Join(got, " "); g != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, g, c.want)
		}
	}
}

// TestTooMuch: the growth of aliases and the depth of nesting are bounded.
func TestTooMuch(t *testing.T) {
	aliases := "a: &a [x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c < 'k'; c++ {
		aliases += fmt.Sprintf("%c: &%c [*%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c]\n", c, c, c-1, c-1, c-1, c-1, c-1, c-1, c-1, c-1)
	}
	if _, err := YAML("many.yaml", []byte(aliases)); err == nil || !strings.Contains(err.Error(), "many.yaml: more than 4096 keys") {
		t.Errorf("aliases of aliases: %v", err)
	}
	if _, err := JSON("deep.json", []byte(strings.Repeat(`{"a":`, 100)+"1"+strings.Repeat("}", 100))); err == nil || !strings.Contains(err.Error(), "deep.json") {
		t.Errorf("100 objects in each other: %v", err)
	}
}

// TestEditTOML: after an edit of any document one key has another value and everything else is as it was, comments included.
func TestEditTOML(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		var text strings.Builder
		want := map[string]string{}
		for table := range rapid.IntRange(1, 3).Draw(r, "tables") {
			fmt.Fprintf(&text, "# table %d\n[t%d]\n", table, table)
			for k := range rapid.IntRange(0, 4).Draw(r, "keys") {
				v := rapid.SampledFrom([]string{"1", `"x # y"`, "'[t0]'", "[1, 2]", "\"\"\"\nk0 = 7\n\"\"\"", "true"}).Draw(r, "value")
				fmt.Fprintf(&text, "  k%d = %s # note %d.%d\n", k, v, table, k)
				want[fmt.Sprintf("t%d.k%d", table, k)] = v
			}
		}
		key := fmt.Sprintf("t%d.k%d", rapid.IntRange(0, 3).Draw(r, "table"), rapid.IntRange(0, 4).Draw(r, "key"))
		remove := rapid.Bool().Draw(r, "remove")
		edited, ok := EditTOML(text.String(), key, "42", remove)
		if !ok {
			r.Fatalf("%s is not edited in\n%s", key, text.String())
		}
		had := maps.Clone(want)
		if delete(want, key); !remove {
			want[key] = "42"
		}
		entries, err := TOML("edited", []byte(edited))
		if err != nil || len(entries) != len(want) {
			r.Fatalf("%d keys, want %d; %v\n%s", len(entries), len(want), err, edited)
		}
		for _, e := range entries {
			if got := edited[e.Start:e.End]; got != want[e.Key] {
				r.Errorf("%s = %s, want %s\n%s", e.Key, got, want[e.Key], edited)
			}
		}
		comments := strings.Count(text.String(), "# note")
		if _, was := had[key]; was && remove {
			comments--
		}
		if got := strings.Count(edited, "# note"); got != comments {
			r.Errorf("%d comments, want %d\n%s", got, comments, edited)
		}
	})
}

// TestEditDocument: after an edit of a YAML or JSON document one key has another value, and all others what they had.
func TestEditDocument(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		isJSON := rapid.Bool().Draw(r, "json")
		read, text := YAML, ""
		if isJSON {
			read = JSON
		}
		had := map[string]string{}
		var sections []string
		for section := range rapid.IntRange(1, 3).Draw(r, "sections") {
			var lines []string
			for k := range rapid.IntRange(1, 4).Draw(r, "keys") {
				v := rapid.SampledFrom([]string{"1", `"x y"`, "true", "null"}).Draw(r, "value")
				had[fmt.Sprintf("s%d.k%d", section, k)] = strings.Trim(strings.Replace(v, "null", "", 1), `"`)
				lines = append(lines, fmt.Sprintf(map[bool]string{true: "    \"k%d\": %s", false: "  k%d: %s # note"}[isJSON], k, v))
			}
			if isJSON {
				sections = append(sections, fmt.Sprintf("  \"s%d\": {\n%s\n  }", section, strings.Join(lines, ",\n")))
			} else {
				text += fmt.Sprintf("s%d:\n%s\n", section, strings.Join(lines, "\n"))
			}
		}
		if isJSON {
			text = "{\n" + strings.Join(sections, ",\n") + "\n}\n"
		}
		entries, err := read("file", []byte(text))
		if err != nil {
			r.Fatal(err, text)
		}
		d := Document{text, entries}
		key := fmt.Sprintf("s%d.k%d", rapid.IntRange(0, 2).Draw(r, "section"), rapid.IntRange(0, 4).Draw(r, "key"))
		remove := rapid.Bool().Draw(r, "remove")
		edit := d.EditYAML
		if isJSON {
			edit = d.EditJSON
		}
		edited, ok := edit(key, "42", remove)
		if !ok {
			if had[key] != "" {
				r.Fatalf("no edit of %s, removed %v, in\n%s", key, remove, text)
			}
			return // of a key that is missing or null an edit may be impossible
		}
		want := maps.Clone(had)
		if delete(want, key); !remove {
			want[key] = "42"
		}
		got := map[string]string{}
		entries, err = read("edited", []byte(edited))
		for _, e := range entries {
			if strings.Contains(e.Key, ".") { // a section that has become empty is a key without value
				got[e.Key] = e.Value
			}
		}
		if err != nil || !maps.Equal(got, want) || isJSON && !json.Valid([]byte(edited)) {
			r.Fatalf("%s = 42, removed %v: %v, want %v; %v\n%s\nwas\n%s", key, remove, got, want, err, edited, text)
		}
		if _, was := had[key]; was && !remove && had[key] != "" && strings.Count(edited, "\n") != strings.Count(text, "\n") {
			r.Fatalf("an edit of a value changes other lines:\n%s\nwas\n%s", edited, text)
		}
	})
}
