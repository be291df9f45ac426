package main

import (
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/cmd/server"
	"github.com/pacer-ml/pacer/perfmodel"
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
		said = said || strings.Contains(line, "rows and progress are posted to pacer serve at "+s.url)
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

// TestE2EMeasuredElsewhere: runs and campaigns of machines without the data directory of a server leave their rows there by
// --server, and nothing in their own; the server fits the model of the rows.
func TestE2EMeasuredElsewhere(t *testing.T) {
	pacer, own, dir := selfAs(t, "pacer"), filepath.Join(t.TempDir(), "own"), t.TempDir()
	s := startServing(t, pacer, filepath.Join(t.TempDir(), "data"), "--refit", "10ms")
	run := func(args ...string) {
		t.Helper()
		cmd := exec.Command(pacer, append([]string{"--data", own}, args...)...)
		cmd.Env = append(cmd.Environ(), "PACER_TOKEN=")
		if out, err := cmd.CombinedOutput(); err != nil || !strings.Contains(string(out), s.url) {
			t.Fatalf("%v: %v\n%s", args, err, out)
		}
	}
	log, campaign := filepath.Join(dir, "run.log"), filepath.Join(dir, "short.yaml")
	writeFile(t, log, `
 iteration        5/      15 | consumed samples: 320 | elapsed time per iteration (ms): 9310.4 | global batch size:    64 |
 iteration       10/      15 | consumed samples: 640 | elapsed time per iteration (ms): 2810.4 | global batch size:    64 |
 iteration       15/      15 | consumed samples: 960 | elapsed time per iteration (ms): 2812.4 | global batch size:    64 |
`)
	writeFile(t, campaign, `
name: short
models:
  - {name: gpt-a, kind: decoder, layers: 4, hidden: 128, ffn: 512, heads: 4, vocab: 1024, seq_len: 64}
accelerator: h100
space: {micro_batch: [1, 2, 4], accumulation: [1]}
choose: grid
runner: {name: synthetic}
`)
	run("watch", "--server", s.url, "-m", "llama2-7b", "-a", "h100", "--plan", "dp=8,mb=2,ga=4,zero=1", "--", "cat", log)
	run("profile", "run", campaign, "--server", s.url)
	var out server.Measurements
	get(t, s.url+"/v1/measurements", &out)
	rows := map[string]int{}
	for _, m := range out.Measurements {
		rows[m.Model] += m.Rows
	}
	if rows["Llama2-7B"] != 1 || rows["gpt-a"] != 3 {
		t.Errorf("the server has rows %v", rows)
	}
	if _, err := os.Stat(filepath.Join(own, "store")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("rows in the directory of the machine itself: %v", err)
	}
	for range 1000 {
		var fitted server.Cards
		if get(t, s.url+"/v1/cards", &fitted); slices.ContainsFunc(fitted.Cards, func(c perfmodel.Card) bool { return c.Model == "gpt-a" }) {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Error("the server fits no model of gpt-a")
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
