package registry_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/family/analytic"
	"github.com/pacer-ml/pacer/perfmodel/registry"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// A fitted model is stored under its key and family, and predicts only configurations of that key.
func ExampleRegistry() {
	dir, err := os.MkdirTemp("", "registry")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	r, err := registry.Open(dir)
	if err != nil {
		fmt.Println(err)
		return
	}
	key := spec.Key{Model: "7b", Accelerator: "A100"}
	if err := r.Put(perfmodel.Card{Key: key, Family: "analytic"}, &analytic.Model{}); err != nil {
		fmt.Println(err)
		return
	}
	cards, err := r.List()
	fmt.Println(len(cards), cards[0].Key, err)
	p, err := r.Predictor("analytic", strings.ToLower)
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = p.Predict(context.Background(), spec.Config{Model: spec.Model{Name: "13b"}, Accelerator: spec.Accelerator{Name: "A100"}})
	fmt.Println(errors.Is(err, perfmodel.ErrNotCovered))
	// Output:
	// 1 7b on A100 <nil>
	// true
}
