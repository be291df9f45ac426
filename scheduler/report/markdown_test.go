package report

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

func TestMarkdown(t *testing.T) {
	got := Table{Header: []string{"policy", "JCT"}, Rows: [][]string{{"a|b", "1 s\n(2)"}, {"c*"}}}.Markdown()
	want := "| policy | JCT |\n|---|---|\n| a\\|b | 1 s (2) |\n| c\\* |  |\n"
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if got := (Table{}).Markdown(); got != "" {
		t.Errorf("nothing is %q", got)
	}
}

func TestSplice(t *testing.T) {
	const doc = "before\n<!-- a -->\nold\n<!-- /a -->\nafter\n<!-- b -->\n<!-- /b -->\n"
	got, err := Splice([]byte(doc), []byte("\nnew\n"), "a")
	if want := "before\n<!-- a -->\n\nnew\n\n<!-- /a -->\nafter\n<!-- b -->\n<!-- /b -->\n"; err != nil || string(got) != want {
		t.Errorf("got %q, %v", got, err)
	}
	again, err := Splice(got, []byte("new"), "a")
	if err != nil || string(again) != string(got) {
		t.Errorf("a second time gives %q, %v", again, err)
	}
	for _, bad := range []string{"", "text", "<!-- a -->\n", "<!-- /a -->\n<!-- a -->\n", doc + doc} {
		if _, err := Splice([]byte(bad), nil, "a"); !errors.Is(err, ErrNoMarks) {
			t.Errorf("%q: %v, want ErrNoMarks", bad, err)
		}
	}
}

func TestSpliceFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "doc.md")
	spectest.WriteFile(t, path, []byte("<!-- a -->\n<!-- /a -->\n"), 0o640)
	if err := SpliceFile(path, []byte("text"), "a"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	info, statErr := os.Stat(path)
	if err != nil || statErr != nil || string(got) != "<!-- a -->\n\ntext\n\n<!-- /a -->\n" || info.Mode().Perm() != 0o640 {
		t.Errorf("got %q, %v, %v, %v", got, info, err, statErr)
	}
	if err := SpliceFile(path, nil, "b"); !errors.Is(err, ErrNoMarks) {
		t.Errorf("error %v, want ErrNoMarks", err)
	}
	if left, _ := os.ReadDir(filepath.Dir(path)); len(left) != 1 {
		t.Errorf("%d files are left, want 1", len(left))
	}
}
