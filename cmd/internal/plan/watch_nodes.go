package plan

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler/hook"
)

// reportWait is the time that the node of rank 0 waits, once its command has ended, for the ranks of the others.
const reportWait = 15 * time.Second

// newRun is the age of files that processes of other nodes may have written before this one began.
const newRun = time.Hour

// runDir returns the directory of this run below --shared: in a job of Slurm one of its step, else that directory. An error
// says that it has steps of an earlier run.
func runDir(shared string) (string, error) {
	dir := shared
	if id := os.Getenv("SLURM_JOB_ID"); id != "" {
		restarts, step := os.Getenv("SLURM_RESTART_COUNT"), os.Getenv("SLURM_STEP_ID")
		dir = filepath.Join(shared, fmt.Sprintf("%s.%s.%s", id, restarts, step))
	}
	dir, err := filepath.Abs(dir) // the command may change its directory
	if err != nil {
		return "", err
	}
	files, err := filepath.Glob(filepath.Join(dir, "rank*.jsonl"))
	for _, f := range files {
		if st, err := os.Stat(f); err == nil && time.Since(st.ModTime()) > newRun {
			return "", fmt.Errorf("--shared %s has steps of an earlier run (%s): name a directory of this run", shared, filepath.Base(f))
		}
	}
	return dir, errors.Join(err, os.MkdirAll(dir, 0o700))
}

// hasResult reports whether this process prints the result: on several nodes that of rank 0, once all ranks have ended or the
// time has passed.
func (w *watch) hasResult(wait time.Duration) bool {
	if w.node == "" {
		return true
	}
	for deadline := time.Now().Add(wait); ; time.Sleep(100 * time.Millisecond) {
		all, err := hook.Read(w.hook)
		first, ended := "", map[int]bool{}
		for _, p := range all {
			if p.Rank == 0 {
				first = p.Node
			}
			if p.Ended || p.Error != "" {
				ended[p.Rank] = true
			}
		}
		switch late := !time.Now().Before(deadline); {
		case first != "" && first != w.node:
			return false
		case first == w.node && (late || len(ended) == all[0].World):
			return true
		case late: // no process of rank 0: the node with the first ranks says why there is no result
			return err != nil || len(all) == 0 || all[0].Node == w.node
		}
	}
}

// onlyRanks says which ranks this process saw if there are more: several tasks run pacer watch without --shared.
func (w *watch) onlyRanks() string {
	all, err := hook.Read(w.hook)
	if err != nil || w.node != "" || len(all) == 0 || len(all) >= all[0].World {
		return ""
	}
	return fmt.Sprintf("%s of %d ran here: where several tasks or nodes run pacer watch, all need the same --shared DIR", spec.Count(len(all), "rank"), all[0].World)
}
