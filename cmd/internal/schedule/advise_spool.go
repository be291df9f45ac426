package schedule

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/command"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/perfmodel/atomicfile"
	"github.com/pacer-ml/pacer/scheduler/live/slurm"
)

// spool is the directory that job_submit.lua writes into.
type spool struct {
	c       *cli.Context
	options slurm.Options
	dir     string
}

const (
	spoolPause = time.Second
	maxAdvice  = 10_000 // files with advice; then the older half is removed
)

// runSpool answers the submissions in the directory of --spool, or prints the script that writes them.
func runSpool(c *cli.Context) error {
	dir, err := filepath.Abs(c.String("spool"))
	if err != nil {
		return fmt.Errorf("advise: --spool: %w", err)
	}
	if c.Bool("lua") {
		text, err := slurm.JobSubmit(dir)
		if err != nil {
			return fmt.Errorf("advise: --spool: %w", err)
		}
		_, err = io.WriteString(c.App.Writer, text)
		return err
	}
	s := &spool{c: c, dir: dir}
	if s.options, err = adviseOptions(c); err != nil {
		return err
	}
	for _, sub := range []string{"new", "advice"} {
		if err := os.MkdirAll(filepath.Join(dir, sub), 0o700); err != nil {
			return fmt.Errorf("advise: --spool: %w", err)
		}
	}
	for {
		err := s.pass()
		if c.Bool("once") || err != nil {
			return err
		}
		select {
		case <-c.Context.Done():
			return nil
		case <-time.After(spoolPause):
		}
	}
}

// pass answers the submissions that are there.
func (s *spool) pass() error {
	files, err := filepath.Glob(filepath.Join(s.dir, "new", "*.json"))
	if err != nil {
		return err
	}
	for _, path := range files {
		text, err := query.ReadFile("file", path, maxSubmission)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := errors.Join(err, os.Remove(path)); err != nil {
			return fmt.Errorf("advise: --spool: %w", err)
		}
		if err := s.answer(text); err != nil {
			return fmt.Errorf("advise: --spool: %w", err)
		}
	}
	if len(files) == 0 {
		return nil
	}
	return s.prune()
}

// answer prints advice on one submission, and keeps it for the next submission like it. One without a model that cannot be
// read is no training job of a known kind, and is left out.
func (s *spool) answer(text []byte) error {
	job, err := slurm.ReadSpooled(text, s.options)
	if job == nil {
		fmt.Fprintln(s.c.App.ErrWriter, "warning:", command.Message(err))
		return nil
	}
	out := answered{err: err}
	if err == nil {
		j := submitted{name: cmp.Or(job.Name, "job"), job: job.Job, managed: job.Managed, by: "its comment", nodes: job.Nodes, launch: job.Text}
		out = answerBy(s.c, time.Now().Add(s.c.Duration("timeout")), &call{}, func(ctx context.Context) answered {
			return advise(ctx, s.c, &submission{[]submitted{j}, func() *call { return &call{} }})
		})
	}
	if out.err != nil && !job.Managed {
		return nil
	}
	var said strings.Builder
	for i := range out.jobs {
		out.jobs[i].print(&said)
	}
	if out.err != nil {
		fmt.Fprintln(&said, "pacer:", command.Message(out.err))
	}
	if command.Global(s.c, "output") == "json" {
		row := spoolRow{job.User, firstOf(out.jobs)}
		if out.err != nil {
			row.Error = command.Message(out.err)
		}
		err = json.NewEncoder(s.c.App.Writer).Encode(row)
	} else {
		_, err = fmt.Fprintf(s.c.App.Writer, "user %s\n%s", job.User, said.String())
	}
	return errors.Join(err, atomicfile.WriteBytes(filepath.Join(s.dir, "advice", job.Key), 0o600, []byte(said.String())))
}

// spoolRow is a line of JSON about a submission.
type spoolRow struct {
	User string `json:"user"`
	advice
}

// firstOf returns the advice on the only job, if there is any.
func firstOf(jobs []advice) (out advice) {
	if len(jobs) > 0 {
		out = jobs[0]
	}
	return out
}

// prune removes the older half of too many files with advice.
func (s *spool) prune() error {
	entries, err := os.ReadDir(filepath.Join(s.dir, "advice"))
	if err != nil || len(entries) <= maxAdvice {
		return err
	}
	age := func(e os.DirEntry) time.Time {
		if info, err := e.Info(); err == nil {
			return info.ModTime()
		}
		return time.Time{}
	}
	slices.SortFunc(entries, func(a, b os.DirEntry) int { return age(a).Compare(age(b)) })
	for _, e := range entries[:len(entries)/2] {
		err = errors.Join(err, os.Remove(filepath.Join(s.dir, "advice", e.Name())))
	}
	return err
}
