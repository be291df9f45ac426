package query

import (
	"slices"
	"testing"
)

// TestCatalogNames: an accelerator takes its name of the catalog; other names stay.
func TestCatalogNames(t *testing.T) {
	given := []string{"h100", "Acme Turnip", "a100-80gb"}
	want := []string{"H100-80GB-SXM", "Acme Turnip", "A100-80GB-SXM"}
	if got := CatalogNames(given); !slices.Equal(got, want) || given[0] != "h100" {
		t.Errorf("CatalogNames of %q returns %q, want %q", given, got, want)
	}
}
