package main

import (
	"context"
	_ "embed"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"time"
)

//go:embed commands.txt
var commandList string

//go:embed renames.txt
var renameTable string

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

type options struct {
	commit, old, new, pattern, cache string
	renames                          string
	list, slow, cost                 bool
	parallel, most                   int
	timeout                          time.Duration
}

func parseOptions(args []string, stderr io.Writer) (options, error) {
	var o options
	f := flag.NewFlagSet("compare", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.commit, "commit", "", "build the old binary at this `COMMIT`")
	f.StringVar(&o.old, "old", "", "the old `BINARY`, in place of -commit")
	f.StringVar(&o.new, "new", "", "the new `BINARY`; default: built from this working tree")
	f.StringVar(&o.pattern, "run", "", "only groups with a name that matches `REGEXP`")
	f.StringVar(&o.cache, "cache", defaultCache(), "keep outputs of the old binary in `DIR`, empty to run it always")
	f.StringVar(&o.renames, "renames", "", "read further renames from `FILE`, in the form of renames.txt")
	f.BoolVar(&o.list, "list", false, "print the commands, as the new binary is given them, and stop")
	f.BoolVar(&o.slow, "slow", false, "also run slow groups")
	f.BoolVar(&o.cost, "cost", false, "print CPU seconds of each group, old and new")
	f.IntVar(&o.parallel, "parallel", 2, "run `N` groups at a time")
	f.IntVar(&o.most, "max", 10, "print at most `N` differences of a command, 0 for all")
	f.DurationVar(&o.timeout, "timeout", 5*time.Minute, "end a command after `TIME`")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if f.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", f.Arg(0))
	}
	if !o.list && (o.commit == "") == (o.old == "") {
		return o, fmt.Errorf("want -commit or -old")
	}
	return o, nil
}

func defaultCache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "pacer", "compare")
}

// run returns 0 where the outputs are the same, 1 where some differ or it failed,
// and 2 for wrong usage.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	o, err := parseOptions(args, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "compare:", err)
		return 2
	}
	differ, err := compare(ctx, o, stdout, stderr)
	if err != nil {
		fmt.Fprintln(stderr, "compare:", err)
		return 1
	}
	if differ {
		return 1
	}
	return 0
}

func compare(ctx context.Context, o options, stdout, stderr io.Writer) (differ bool, err error) {
	groups, err := parseList(commandList)
	if err != nil {
		return false, err
	}
	more, err := readIfNamed(o.renames)
	if err != nil {
		return false, err
	}
	table, err := parseRenames(renameTable + "\n" + more)
	if err != nil {
		return false, err
	}
	groups, skipped, err := selectGroups(groups, o.pattern, o.slow, sharedDir())
	if err != nil {
		return false, err
	}
	if o.list {
		list(stdout, groups, table)
		return false, nil
	}
	for _, s := range skipped {
		fmt.Fprintln(stderr, "compare: skipped", s)
	}
	old, new, done, err := runners(ctx, o, table)
	if err != nil {
		return false, err
	}
	defer done()
	return compareGroups(ctx, o, groups, old, new, stdout)
}

func readIfNamed(file string) (string, error) {
	if file == "" {
		return "", nil
	}
	text, err := os.ReadFile(file)
	return string(text), err
}

// runners builds what is not given.
func runners(ctx context.Context, o options, table *renames) (old, new *runner, done func(), err error) {
	dir, err := os.MkdirTemp("", "pacer-compare-bin-")
	if err != nil {
		return nil, nil, nil, err
	}
	done = func() { os.RemoveAll(dir) }
	defer func() {
		if err != nil {
			done()
		}
	}()
	if o.new == "" {
		o.new = filepath.Join(dir, "pacer")
		if err := build(ctx, ".", o.new, buildArgs); err != nil {
			return nil, nil, nil, err
		}
	}
	if o.old == "" {
		cache := o.cache
		if cache == "" {
			cache = dir
		}
		if o.old, err = buildCommit(ctx, o.commit, cache); err != nil {
			return nil, nil, nil, err
		}
	}
	if old, err = newRunner(o.old, true, table, o.cache, o.timeout); err != nil {
		return nil, nil, nil, err
	}
	new, err = newRunner(o.new, false, table, "", o.timeout)
	return old, new, done, err
}

func list(w io.Writer, groups []group, table *renames) {
	for _, g := range groups {
		for _, s := range g.Steps {
			if s.Show == "" {
				r := &runner{renames: table, shared: "$SHARED"}
				fmt.Fprintf(w, "%s: pacer %q\n", g.Name, r.args(s))
			}
		}
	}
}

type result struct {
	old, new []outcome
	err      error
}

func compareGroups(ctx context.Context, o options, groups []group, old, new *runner, stdout io.Writer) (bool, error) {
	results := make([]chan result, len(groups))
	for i := range results {
		results[i] = make(chan result, 1)
	}
	var wait sync.WaitGroup
	defer wait.Wait()
	slots := make(chan struct{}, max(1, o.parallel))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	wait.Go(func() {
		for i, g := range groups {
			slots <- struct{}{}
			wait.Go(func() {
				defer func() { <-slots }()
				var r result
				if r.old, r.err = old.run(ctx, g); r.err == nil {
					r.new, r.err = new.run(ctx, g)
				}
				results[i] <- r
			})
		}
	})
	p := printer{w: stdout, most: o.most, cost: o.cost, table: old.renames}
	for i, g := range groups {
		r := <-results[i]
		if r.err != nil {
			return true, r.err
		}
		p.group(g, r)
	}
	p.end()
	return p.differ > 0, nil
}

// printer prints differences and counts them.
type printer struct {
	w                          io.Writer
	most                       int
	cost                       bool
	table                      *renames
	commands, differ, expected int
	oldSeconds, newSeconds     float64
}

func (p *printer) group(g group, r result) {
	var was, is float64
	for i := range r.old {
		was, is = was+r.old[i].Seconds, is+r.new[i].Seconds
		p.commands++
		var found []string
		for _, d := range differences(canonical(r.old[i], p.table, true), canonical(r.new[i], p.table, false)) {
			if p.table.wanted(g.Name + ": " + r.new[i].Command + ": " + d) {
				p.expected++
				continue
			}
			found = append(found, d)
		}
		if len(found) == 0 {
			continue
		}
		p.differ++
		fmt.Fprintf(p.w, "%s: %s\n", g.Name, r.new[i].Command)
		for n, d := range found {
			if p.most > 0 && n == p.most {
				fmt.Fprintf(p.w, "    and %d more\n", len(found)-n)
				break
			}
			fmt.Fprintf(p.w, "    %s\n", d)
		}
	}
	p.oldSeconds, p.newSeconds = p.oldSeconds+was, p.newSeconds+is
	if p.cost {
		fmt.Fprintf(p.w, "%s: %.1f s -> %.1f s of CPU\n", g.Name, was, is)
	}
}

func (p *printer) end() {
	fmt.Fprintf(p.w, "%d of %d outputs differ, %d expected differences, %.0f s -> %.0f s of CPU\n",
		p.differ, p.commands, p.expected, p.oldSeconds, p.newSeconds)
}
