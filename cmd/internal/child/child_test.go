package child

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
)

// TestQuote: a shell reads the words that were given.
func TestQuote(t *testing.T) {
	args := []string{"-x", "--a=b,c", "", "a b", "it's", `"$HOME"`, "*", "a=b", "-$(touch x)", "\\", "ünï", "line\nline", "~", "#"}
	text, err := Quote(args)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(text, "-x --a=b,c ''") {
		t.Errorf("flags are quoted: %s", text)
	}
	out, err := exec.Command("bash", "-c", `printf '%s\0' `+text).Output()
	if got := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00"); err != nil || !slices.Equal(got, args) {
		t.Errorf("%q, %v, want %q", got, err, args)
	}
	if _, err := Quote([]string{"a\x00"}); err == nil || !strings.Contains(err.Error(), `"a\x00"`) {
		t.Errorf("a zero byte: %v", err)
	}
}
