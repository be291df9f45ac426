package family

import (
	"slices"
	"strings"
	"testing"
)

func TestLookupKnowsEveryRegisteredName(t *testing.T) {
	names := Names()
	if !slices.IsSorted(names) || len(names) != len(All()) {
		t.Fatalf("Names() = %v for %d families", names, len(All()))
	}
	for _, n := range names {
		f, err := Lookup(n)
		if err != nil || f.Name != n {
			t.Errorf("Lookup(%q) = %q, %v", n, f.Name, err)
		}
	}
	if _, err := Lookup("rubik"); err == nil || !strings.Contains(err.Error(), `unknown performance model "rubik", there are: rubick, `) {
		t.Errorf("Lookup error = %v", err)
	}
}
