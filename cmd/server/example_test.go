package server_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"

	"github.com/pacer-ml/pacer/cmd/server"
	"github.com/pacer-ml/pacer/perfmodel/registry"
	"github.com/pacer-ml/pacer/profiler/store"
)

// A server answers from a store of measurements and a registry of fitted models.
// Over empty ones the analytic model answers.
func ExampleServer() {
	dir, err := os.MkdirTemp("", "server")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	db, err := store.Open(filepath.Join(dir, "store"), store.Options{})
	if err != nil {
		log.Fatal(err)
	}
	defer db.Close()
	models, err := registry.Open(filepath.Join(dir, "models"))
	if err != nil {
		log.Fatal(err)
	}
	s, err := server.New(db, models, server.Options{})
	if err != nil {
		log.Fatal(err)
	}
	site := httptest.NewServer(s.Handler())
	defer site.Close()

	body := []byte(`{"model": "llama3-8b", "accelerator": "h100", "devices": 16, "global_batch": 128, "top": 1}`)
	response, err := http.Post(site.URL+"/v1/plan", "application/json", bytes.NewReader(body))
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	var answer struct {
		Plans []struct {
			Plan, By string
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		log.Fatal(err)
	}
	fmt.Println(response.Status, answer.Plans[0].Plan, "by", answer.Plans[0].By)
	// Output:
	// 200 OK dp=8,tp=2,pp=1,mb=2,ga=8,zero=3,sp=1,precision=bf16 by analytic
}
