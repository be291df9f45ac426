package registry

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// A registry that installs the files of another has its models, and no others.
func TestInstall(t *testing.T) {
	a, b, c := spec.Key{Model: "a", Accelerator: "x"}, spec.Key{Model: "b", Accelerator: "x"}, spec.Key{Model: "c", Accelerator: "x"}
	from, to := newRegistry(t), newRegistry(t)
	put(t, from, a, 1)
	put(t, from, b, 2)
	put(t, to, b, 3)
	put(t, to, c, 3)
	files, err := from.Files()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]string{}
	for name, b := range files {
		all[name] = Sum(b)
	}
	changed, err := to.Install(files, all)
	slices.SortFunc(changed, perfmodel.CompareKeys)
	if diff := cmp.Diff([]spec.Key{a, b, c}, changed); err != nil || diff != "" {
		t.Fatal(err, diff)
	}
	got, err := to.Files()
	if diff := cmp.Diff(files, got); err != nil || diff != "" {
		t.Fatal(err, diff)
	}
	if changed, err := to.Install(nil, all); err != nil || changed != nil {
		t.Errorf("what is there already: %v, %v", changed, err)
	}

	for what, bad := range map[string]func(files map[string][]byte, all map[string]string, name string){
		"damaged": func(f map[string][]byte, _ map[string]string, n string) { f[n] = append(slices.Clone(f[n]), 'x') },
		"missing": func(f map[string][]byte, all map[string]string, n string) { delete(f, n); all[n] = "1" },
		"another": func(_ map[string][]byte, all map[string]string, n string) { all[n] = "1" },
		"another name": func(f map[string][]byte, all map[string]string, n string) {
			f["../x.model"], all["../x.model"] = f[n], all[n]
		},
	} {
		files, all := maps.Clone(files), maps.Clone(all)
		bad(files, all, slices.Sorted(maps.Keys(files))[0])
		if _, err := to.Install(files, all); err == nil {
			t.Errorf("%s: installed", what)
		}
		if now, err := to.Files(); err != nil || !cmp.Equal(got, now) {
			t.Errorf("%s: the models changed", what)
		}
	}
}
