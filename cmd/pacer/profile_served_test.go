package main

import (
	"encoding/json"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/cmd/server"
)

// TestE2EProfileRunWhileServed: a campaign measures into the store that a server has open, also when that is killed and
// started again; the same command goes on after the last point, and no row is there twice.
func TestE2EProfileRunWhileServed(t *testing.T) {
	pacer, data, file := selfAs(t, "pacer"), filepath.Join(t.TempDir(), "data"), filepath.Join(t.TempDir(), "slow.yaml")
	writeFile(t, file, `
name: slow
models:
  - {name: gpt-a, kind: decoder, layers: 4, hidden: 128, ffn: 512, heads: 4, vocab: 1024, seq_len: 64}
accelerator: h100
space: {micro_batch: [1, 2, 4, 8], accumulation: [1, 2]}
choose: grid
runner: {name: synthetic, delay: 150ms}
`)
	s := startServing(t, pacer, data)
	address := strings.TrimPrefix(s.url, "http://")
	cmd := exec.Command(pacer, "--data", data, "profile", "run", file, "--max-points", "6")
	cmd.Env = append(cmd.Environ(), "PACER_TOKEN=")
	said := false
	for line := range start(t, cmd) {
		said = said || strings.Contains(line, "has the store open: rows and progress are posted to it")
		if strings.Contains(line, ": 2 of 6 points: ") {
			if got := campaignsOf(t, s.url); len(got) != 1 || got[0].Name != "slow" || got[0].Done < 1 || got[0].Wanted != 6 || got[0].Stopped != "" {
				t.Errorf("%+v", got)
			}
			if err := s.cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
			<-s.done
			s = startServing(t, pacer, data, "--listen", address)
		}
	}
	if err := cmd.Wait(); err != nil || !said {
		t.Fatalf("%v; it said where the rows go: %v", err, said)
	}
	if got := campaignsOf(t, s.url); len(got) != 1 || got[0].Done != 6 || got[0].Stopped == "" || !strings.Contains(got[0].Last, "gpt-a") {
		t.Errorf("%+v", got)
	}
	all, err := exec.Command(pacer, "--data", data, "profile", "run", file).CombinedOutput()
	if err != nil || !strings.Contains(string(all), "slow: 8 of 8 points: ") || strings.Contains(string(all), "slow: 6 of 8 points: ") {
		t.Errorf("%v: the same command did not go on:\n%s", err, all)
	}
	var out server.Measurements
	get(t, s.url+"/v1/measurements", &out)
	rows := 0
	for _, m := range out.Measurements {
		rows += m.Rows
	}
	if rows != 8 {
		t.Errorf("%d rows, want 8", rows)
	}
}

func campaignsOf(t *testing.T, url string) (out []struct {
	Name          string
	Done, Wanted  int
	Stopped, Last string
}) {
	t.Helper()
	all := struct{ Campaigns any }{&out}
	get(t, url+"/v1/campaigns", &all)
	return out
}

// get decodes an answer.
func get(t *testing.T, url string, into any) {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	if err := json.NewDecoder(r.Body).Decode(into); err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s: %s, %v", url, r.Status, err)
	}
}
