package family

import (
	"slices"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel"
)

func TestLookupKnowsEveryRegisteredName(t *testing.T) {
	names := Names()
	if !slices.IsSorted(names) || len(names) != len(families) {
		t.Fatalf("Names() = %v for %d families", names, len(families))
	}
	for _, n := range names {
		f, err := Lookup(n)
		if err != nil || f.Name != n {
			t.Errorf("Lookup(%q) = %q, %v", n, f.Name, err)
		}
	}
}

func TestRegisterPanicsOnDuplicatesAndNoName(t *testing.T) {
	families["taken"] = perfmodel.Family{Name: "taken"}
	defer delete(families, "taken")
	for _, name := range []string{"", "taken"} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("register(%q) did not panic", name)
				}
			}()
			register(perfmodel.Family{Name: name})
		}()
	}
}

func TestLookupOffersTheNearestNameFirst(t *testing.T) {
	families["rubik-like"] = perfmodel.Family{Name: "rubik-like"}
	families["zzz"] = perfmodel.Family{Name: "zzz"}
	defer delete(families, "rubik-like")
	defer delete(families, "zzz")
	_, err := Lookup("rubik-lik")
	if err == nil || !strings.Contains(err.Error(), `"rubik-lik", have rubik-like, `) {
		t.Errorf("Lookup error = %v", err)
	}
}

func TestEditDistance(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want int
	}{{"", "", 0}, {"", "abc", 3}, {"kitten", "sitting", 3}, {"rubick", "rubik", 1}, {"ab", "ba", 2}} {
		if got := editDistance(c.a, c.b); got != c.want {
			t.Errorf("editDistance(%q, %q) = %d, want %d", c.a, c.b, got, c.want)
		}
	}
}
