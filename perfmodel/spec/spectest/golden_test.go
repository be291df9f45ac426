package spectest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// recorder keeps what a test reports.
type recorder struct {
	testing.TB
	errors []string
}

func (r *recorder) Errorf(format string, args ...any) { r.errors = append(r.errors, format) }

func TestGolden(t *testing.T) {
	file := filepath.Join(t.TempDir(), "dir", "expected")
	rewrite := func(value string) {
		if err := flag.Set("rewrite", value); err != nil {
			t.Fatal(err)
		}
	}
	rewrite("true")
	t.Cleanup(func() { rewrite("false") })
	Golden(t, file, []byte("a\nb\n"))
	if b, err := os.ReadFile(file); err != nil || string(b) != "a\nb\n" {
		t.Fatalf("wrote %q, %v", b, err)
	}
	rewrite("false")
	for got, want := range map[string]int{"a\nb\n": 0, "a\nb": 1, "a\nc\n": 1} {
		r := &recorder{TB: t}
		if Golden(r, file, []byte(got)); len(r.errors) != want {
			t.Errorf("%q: reported %q, want %d errors", got, r.errors, want)
		}
	}
	if b, _ := os.ReadFile(file); !strings.HasPrefix(string(b), "a\nb") {
		t.Errorf("a comparison changed the file to %q", b)
	}
}
