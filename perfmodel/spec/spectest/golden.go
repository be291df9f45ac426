package spectest

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	_ "github.com/cockroachdb/datadriven" // registers -rewrite
	"github.com/google/go-cmp/cmp"
)

// Rewrite reports whether the test was run with -rewrite, the flag that renews expected files in all packages.
func Rewrite() bool { return flag.Lookup("rewrite").Value.String() == "true" }

// Golden compares got with an expected file. With -rewrite it writes the file instead.
func Golden(t testing.TB, file string, got []byte) {
	t.Helper()
	if Rewrite() {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v (write it with -rewrite)", err)
	}
	if string(want) != string(got) {
		diff := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(string(got), "\n"))
		t.Errorf("%s differs (-want +got), renew it with go test -run '^%s$' -rewrite:\n%s", file, t.Name(), diff)
	}
}
