package runner

import (
	"context"
	"errors"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/executor"
)

// joined returns the teams of all nodes of a job.
func joined(t *testing.T, nodes int, attempt, dir string) []*Team {
	t.Helper()
	all, errs := make([]*Team, nodes), make(chan error)
	for i := range nodes {
		go func() {
			var err error
			all[i], err = JoinTeam(t.Context(), executor.Node{Number: i, Nodes: nodes, Attempt: attempt}, dir)
			errs <- err
		}()
	}
	for range nodes {
		if err := <-errs; err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// TestTeamMeets: all nodes meet at node 0, and those of another attempt elsewhere.
func TestTeamMeets(t *testing.T) {
	dir := t.TempDir()
	a, b := joined(t, 3, "1.0", dir), joined(t, 2, "1.1", dir)
	for i, node := range a {
		if node.at != a[0].at || node.at.Port == 0 || node.gloo() == "" || node.Nodes() != 3 || node.number() != i || node.First() != (i == 0) {
			t.Errorf("node %d: %+v, node 0 %+v", i, node, a[0])
		}
	}
	if a[0].path("own", "x") != a[1].path("other", "x") || a[0].path("", "x") == b[0].path("", "x") {
		t.Error("the nodes of an attempt do not share a directory of their own")
	}
	if one, err := JoinTeam(t.Context(), executor.Node{Nodes: 1}, dir); one != nil || err != nil || !one.First() || one.Nodes() != 1 || one.path("own", "x") != "own/x" {
		t.Errorf("a node by itself: %+v, %v", one, err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := JoinTeam(ctx, executor.Node{Number: 1, Nodes: 2, Attempt: "2"}, dir); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "node 1 of 2 waited for node 0") {
		t.Error(err)
	}
}

// TestTeamReports: node 0 learns what the others saw.
func TestTeamReports(t *testing.T) {
	all := joined(t, 2, "1.0", t.TempDir())
	other := nodeReport{profiler.Exit{Code: -1, Signal: "killed", Tail: "Killed", Stray: 1}, true,
		Watched{Doubt: "shared", EnergyJoules: 5, AvgWatts: 2, Env: map[string]string{profiler.EnvShared: "gpu 1"}}}
	if _, _, err := all[1].report(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	own := nodeReport{profiler.Exit{Code: 1, Tail: "peer lost"}, false, Watched{EnergyJoules: 4, AvgWatts: 3}}
	got, silent, err := all[0].report(t.Context(), own)
	w := got.Watched
	if err != nil || silent != nil || !got.OutOfMemoryKill || got.Exit.Signal != "killed" || got.Exit.Stray != 1 || got.Exit.Tail != "peer lost\nnode 1:\nKilled" ||
		w.EnergyJoules != 9 || w.AvgWatts != 5 || w.Doubt != "node 1: shared" || w.Env[profiler.EnvShared] != "node 1: gpu 1" {
		t.Errorf("%+v, %v, %v", got, silent, err)
	}
	own.Watched.add(2, Watched{})
	if own.Watched.EnergyJoules != 0 || own.Watched.AvgWatts != 0 {
		t.Errorf("%+v: the energy of a node is unknown, so that of all is", own.Watched)
	}
	var nothing Watched
	if err := waitFor(t.Context(), "none.json", 0, &nothing); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// TestTorchrunArgs: the launchers of all nodes have the same meeting, each its number.
func TestTorchrunArgs(t *testing.T) {
	all := joined(t, 2, "1.0", t.TempDir())
	first, second := torchrunArgs("python3", 8, all[0], 1, "/log"), torchrunArgs("python3", 8, all[1], 1, "/log")
	for _, want := range []string{"--nnodes=2", "--nproc_per_node=8", "--master_addr=" + all[0].at.Address} {
		if !slices.Contains(first, want) || !slices.Contains(second, want) {
			t.Errorf("%v and %v, want %s", first, second, want)
		}
	}
	if !slices.Contains(first, "--node_rank=0") || !slices.Contains(second, "--node_rank=1") {
		t.Errorf("%v and %v", first, second)
	}
	if one := torchrunArgs("python3", 8, nil, 17, "/log"); !slices.Contains(one, "--nnodes=1") || !slices.Contains(one, "--master_addr=127.0.0.1") || !slices.Contains(one, "--master_port=17") {
		t.Errorf("%v", one)
	}
}
