package server

import (
	"context"
	"fmt"
	"iter"
	"os"
	"strings"
	"testing"

	"github.com/pacer-ml/pacer/cmd/server/batches"
	"github.com/pacer-ml/pacer/perfmodel"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/planner"
	"github.com/pacer-ml/pacer/planner/remote"
)

// goGuide is the program of docs/guides/serve.md, section "From Go".
func goGuide(ctx context.Context, address, rpc string, model spec.Model, h100 spec.Accelerator, questions []remote.Question, rows iter.Seq2[spec.Measurement, error]) (out string, err error) {
	c, err := remote.New(address, remote.Options{Flight: rpc})
	if err != nil {
		return "", err
	}
	defer c.Close()
	choice, err := c.Best(ctx, planner.Request{Model: model, Accelerator: h100, Devices: 64, GlobalBatch: 512})
	if err != nil {
		return "", err
	}
	answers, err := c.PredictAll(ctx, questions)
	if err != nil {
		return "", err
	}
	stored, err := c.PutRows(ctx, rows)
	if err != nil {
		return "", err
	}
	read := 0
	for m, err := range c.Rows(ctx, remote.Filter{Models: []string{"llama3-8b"}}) {
		if err != nil {
			return "", err
		}
		read += len(m.StepSec)
	}
	return fmt.Sprint(choice.Fits, len(answers), stored.Added, read), nil
}

// The program of docs/guides/serve.md is goGuide, and it works. The guide names the columns of Arrow Flight.
func TestGoGuide(t *testing.T) {
	s := newServer(t, Options{})
	conn, _ := serveRPC(t, s)
	_, plain := remoteClients(t, s, remote.Options{})
	rows := measured(t, s, 1)
	c := rows[0].Config
	questions := []remote.Question{{Model: "llama3-8b", Accelerator: "h100", Plan: "dp=8,zero=3"}}
	out, err := goGuide(t.Context(), plain.Address(), conn.Target(), c.Model, c.Accelerator, questions, perfmodel.Rows(rows))
	if want := fmt.Sprint(true, 1, len(rows), len(rows)); out != want || err != nil {
		t.Errorf("%q, %v, want %q", out, err, want)
	}

	source, err := os.ReadFile("go_docs_test.go")
	if err != nil {
		t.Fatal(err)
	}
	guide, err := os.ReadFile("../../docs/guides/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(guide), "\n## From Go\n")
	_, code, _ := strings.Cut(section, "```go\n")
	code, _, _ = strings.Cut(code, "```")
	lines := 0
	for line := range strings.Lines(code) {
		program, _, _ := strings.Cut(line, " // ")
		if lines++; !strings.Contains(string(source), "\n\t"+strings.TrimRight(program, " \n")+"\n") {
			t.Errorf("the guide has %q, which no test runs", line)
		}
	}
	if lines < 5 {
		t.Errorf("%d lines of programs", lines)
	}
	_, section, _ = strings.Cut(string(guide), "\n## gRPC and Arrow Flight\n")
	section, _, _ = strings.Cut(section, "\n## ")
	var names []string
	for _, f := range batches.Schema.Fields() {
		names = append(names, f.Name)
	}
	for _, name := range append(names, batches.Names()...) {
		if !strings.Contains(section, "`"+name+"`") {
			t.Errorf("the guide does not name the column %s", name)
		}
	}
}
