package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

type options struct {
	file, tests   string
	most          int
	budget, limit time.Duration
	seed          uint64
}

// run returns 0 if tests noticed every change, 1 if one survived or on failure, and 2
// for wrong usage.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var o options
	f := flag.NewFlagSet("mutate", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.StringVar(&o.file, "file", "", "change only `FILE` of the package")
	f.StringVar(&o.tests, "tests", "", "run the tests of these `PACKAGES`, separated by commas; default: those of the package")
	f.IntVar(&o.most, "most", 100, "try at most `N` changes, drawn at random; 0 for all")
	f.DurationVar(&o.budget, "time", 10*time.Minute, "stop after `TIME`")
	f.DurationVar(&o.limit, "timeout", time.Minute, "count a change as noticed if tests run longer than `TIME`")
	f.Uint64Var(&o.seed, "seed", 1, "`SEED` of the drawn changes")
	if err := f.Parse(args); err != nil {
		return 2
	}
	if f.NArg() != 1 {
		fmt.Fprintln(stderr, "mutate: want one package")
		return 2
	}
	survivors, err := mutate(ctx, f.Arg(0), o, stdout)
	if err != nil {
		fmt.Fprintln(stderr, "mutate:", err)
		return 1
	}
	return min(survivors, 1)
}

func mutate(ctx context.Context, pkg string, o options, stdout io.Writer) (survivors int, err error) {
	all, err := mutantsOfPackage(ctx, pkg, o.file)
	if err != nil {
		return 0, err
	}
	tests := []string{pkg}
	if o.tests != "" {
		tests = strings.Split(o.tests, ",")
	}
	dir, err := os.MkdirTemp("", "pacer-mutate-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	if got, out := try(ctx, nil, dir, tests, 10*o.limit); got != survived {
		return 0, fmt.Errorf("tests of %s fail without any change:\n%s", pkg, out)
	}
	chosen := draw(all, o.most, o.seed)
	began, counts, tried := time.Now(), map[verdict]int{}, 0
	for i := range chosen {
		if time.Since(began) > o.budget || ctx.Err() != nil {
			break
		}
		got, _ := try(ctx, &chosen[i], dir, tests, o.limit)
		if ctx.Err() != nil {
			break
		}
		tried++
		counts[got]++
		if got == survived {
			fmt.Fprintln(stdout, chosen[i])
		}
	}
	fmt.Fprintf(stdout, "%s: %d of %d changes tried: %d noticed, %d survive, %d do not build\n",
		pkg, tried, len(all), counts[noticed], counts[survived], counts[invalid])
	return counts[survived], ctx.Err()
}

// mutantsOfPackage lists the changes of a package's files, or of one of them.
func mutantsOfPackage(ctx context.Context, pkg, only string) ([]mutant, error) {
	out, err := exec.CommandContext(ctx, "go", "list", "-f", `{{.Dir}}{{range .GoFiles}}{{"\n"}}{{.}}{{end}}`, pkg).Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", pkg, err)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	var all []mutant
	for _, name := range lines[1:] {
		if only != "" && name != only {
			continue
		}
		file := filepath.Join(lines[0], name)
		if short, err := filepath.Rel(here, file); err == nil {
			file = short
		}
		source, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		ms, err := mutantsOf(file, source)
		if err != nil {
			return nil, err
		}
		all = append(all, ms...)
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("%s: no code to change in %q", pkg, only)
	}
	return all, nil
}

// draw returns n of the mutants in their order, all of them for 0.
func draw(all []mutant, n int, seed uint64) []mutant {
	if n == 0 || n >= len(all) {
		return all
	}
	at := rand.New(rand.NewPCG(seed, 0)).Perm(len(all))[:n]
	slices.Sort(at)
	out := make([]mutant, n)
	for i, k := range at {
		out[i] = all[k]
	}
	return out
}

type verdict int

const (
	survived verdict = iota // tests pass
	noticed                 // a test fails or does not end
	invalid                 // it does not build
)

// try runs tests with a change, nil for none.
func try(ctx context.Context, m *mutant, dir string, tests []string, limit time.Duration) (verdict, []byte) {
	args := []string{"test", "-short", "-vet=off", "-count=1", "-failfast", "-timeout", limit.String()}
	if m != nil {
		overlay, err := writeOverlay(*m, dir)
		if err != nil {
			return invalid, []byte(err.Error())
		}
		args = append(args, "-overlay", overlay)
	}
	out, err := exec.CommandContext(ctx, "go", append(args, tests...)...).CombinedOutput()
	switch {
	case err == nil:
		return survived, out
	case bytes.Contains(out, []byte("[build failed]")):
		return invalid, out
	}
	return noticed, out
}

func writeOverlay(m mutant, dir string) (string, error) {
	source, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	original, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	changed, overlay := filepath.Join(dir, "changed.go"), filepath.Join(dir, "overlay.json")
	if err := os.WriteFile(changed, m.apply(source), 0o644); err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{original: changed}})
	if err != nil {
		return "", err
	}
	return overlay, os.WriteFile(overlay, text, 0o644)
}
