package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"
)

//go:embed inputs
var inputs embed.FS

// An outcome is the output of a step, or the file that it shows.
type outcome struct {
	Command string // as it was run
	Exit    int
	Stdout  []byte
	Stderr  []byte
	File    []byte // of show
	Seconds float64
}

// A runner runs groups with one binary.
type runner struct {
	binary  string
	id      string // of the binary's bytes
	old     bool
	renames *renames
	shared  string
	cache   string // directory, empty for none
	timeout time.Duration
}

func newRunner(binary string, old bool, r *renames, cache string, timeout time.Duration) (*runner, error) {
	abs, err := filepath.Abs(binary)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(abs)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return nil, err
	}
	return &runner{binary: abs, id: fmt.Sprintf("%x", h.Sum(nil)), old: old, renames: r, shared: sharedDir(),
		cache: cache, timeout: timeout}, nil
}

// run returns the outcomes of a group's steps, from the cache if they are there.
func (r *runner) run(ctx context.Context, g group) ([]outcome, error) {
	file := ""
	if r.cache != "" {
		key, err := r.key(g)
		if err != nil {
			return nil, err
		}
		file = filepath.Join(r.cache, key+".json")
		var kept []outcome
		if text, err := os.ReadFile(file); err == nil && json.Unmarshal(text, &kept) == nil {
			return kept, nil
		}
	}
	dir, err := os.MkdirTemp("", "pacer-compare-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	if err := r.writeInputs(dir); err != nil {
		return nil, err
	}
	var outcomes []outcome
	for _, s := range g.Steps {
		o, err := r.step(ctx, filepath.Join(dir, g.Dir), s)
		if err != nil {
			return nil, fmt.Errorf("%s: %s: %w", g.Name, o.Command, err)
		}
		outcomes = append(outcomes, o)
	}
	if file == "" {
		return outcomes, nil
	}
	text, err := json.Marshal(outcomes)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(r.cache, 0o755); err != nil {
		return nil, err
	}
	return outcomes, os.WriteFile(file, text, 0o644)
}

// key identifies a binary, the steps of a group and the inputs they may read.
func (r *runner) key(g group) (string, error) {
	h := sha256.New()
	fmt.Fprintln(h, r.id, r.shared, g.Dir)
	for _, s := range g.Steps {
		fmt.Fprintf(h, "%q %q %q\n", s.Show, r.args(s), s.Stdin)
	}
	err := eachInput(func(name string, text []byte) error {
		_, err := fmt.Fprintf(h, "%q %q\n", name, r.input(name, text))
		return err
	})
	return fmt.Sprintf("%x", h.Sum(nil)), err
}

func (r *runner) args(s step) []string {
	args := s.Args
	switch {
	case !r.old && s.New != nil:
		args = s.New
	case !r.old:
		args = r.renames.arguments(args)
	}
	out := make([]string, len(args))
	for i, a := range args {
		out[i] = strings.ReplaceAll(a, "$SHARED", r.shared)
	}
	return out
}

// input is a file as the binary reads it.
func (r *runner) input(name string, text []byte) []byte {
	if r.old || strings.HasSuffix(name, ".tar.gz") {
		return text
	}
	return []byte(r.renames.text(string(text)))
}

func (r *runner) writeInputs(dir string) error {
	return eachInput(func(name string, text []byte) error {
		if strings.HasSuffix(name, ".tar.gz") {
			return unpack(dir, text)
		}
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		return os.WriteFile(file, []byte(strings.ReplaceAll(string(r.input(name, text)), "$SHARED", r.shared)), 0o644)
	})
}

func eachInput(f func(name string, text []byte) error) error {
	return fs.WalkDir(inputs, "inputs", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := inputs.ReadFile(name)
		if err != nil {
			return err
		}
		return f(strings.TrimPrefix(name, "inputs"+"/"), text)
	})
}

func (r *runner) step(ctx context.Context, dir string, s step) (outcome, error) {
	if s.Show != "" {
		text, err := os.ReadFile(filepath.Join(dir, filepath.FromSlash(path.Clean(s.Show))))
		if errors.Is(err, fs.ErrNotExist) {
			text, err = []byte("no such file"), nil
		}
		return outcome{Command: "show " + s.Show, File: r.hide(text, dir)}, err
	}
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	args := r.args(s)
	o := outcome{Command: strings.ReplaceAll("pacer "+strings.Join(args, " "), r.sharedOrNever(), "$SHARED")}
	cmd := exec.CommandContext(ctx, r.binary, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "XDG_DATA_HOME="+dir+"/xdg", "XDG_CACHE_HOME="+dir+"/cache", "COLUMNS=", "PACER_SHARED="+r.shared)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if s.Stdin != "" {
		f, err := os.Open(filepath.Join(dir, s.Stdin))
		if err != nil {
			return o, err
		}
		defer f.Close()
		cmd.Stdin = f
	}
	err := cmd.Run()
	if ctx.Err() != nil {
		return o, fmt.Errorf("not done after %v: %w", r.timeout, ctx.Err())
	}
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		return o, err
	}
	o.Exit = cmd.ProcessState.ExitCode()
	o.Seconds = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
	o.Stdout, o.Stderr = r.hide(stdout.Bytes(), dir), r.hide(stderr.Bytes(), dir)
	return o, nil
}

// hide replaces the names of directories that differ from run to run.
func (r *runner) hide(text []byte, dir string) []byte {
	text = bytes.ReplaceAll(text, []byte(dir), []byte("$WORK"))
	return bytes.ReplaceAll(text, []byte(r.sharedOrNever()), []byte("$SHARED"))
}

func (r *runner) sharedOrNever() string {
	if r.shared == "" {
		return "\x00"
	}
	return r.shared
}
