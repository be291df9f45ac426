package remote_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/planner/remote"
)

// A Client asks pacer serve, here a server with fixed answers. Its errors are the
// planner's.
func ExampleClient() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == remote.PathPredict {
			_ = json.NewEncoder(w).Encode(remote.Prediction{Throughput: 18.6, Lo: 12.9, Hi: 26.8, By: "analytic"})
			return
		}
		w.Header().Set("Content-Type", "application/problem+json")
		w.WriteHeader(http.StatusUnprocessableEntity)
		_ = json.NewEncoder(w).Encode(remote.Problem{Type: remote.TypeInfeasible, Detail: "planner: Llama3-8B, 1 x H100, global batch 8: no feasible plan"})
	}))
	defer server.Close()

	client, err := remote.New(server.URL, remote.Options{})
	if err != nil {
		log.Fatal(err)
	}
	p, err := client.Predict(context.Background(), spec.Config{})
	fmt.Println(p.Throughput, "samples/s by", p.By, err)

	_, err = client.Best(context.Background(), planner.Request{})
	fmt.Println(errors.Is(err, planner.ErrInfeasible), err)
	// Output:
	// 18.6 samples/s by analytic <nil>
	// true planner: Llama3-8B, 1 x H100, global batch 8: no feasible plan
}
