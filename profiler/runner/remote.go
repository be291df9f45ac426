package runner

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pacer-ml/pacer/perfmodel/atomicfile"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/executor"
)

// RemoteOptions configure a Remote. Cluster, Dir and Args are required.
type RemoteOptions struct {
	Cluster executor.Cluster
	// Dir is a directory that this process and all nodes see. Each job has a directory in it.
	Dir string
	// Args are the command that measures a point: it reads the file Args... FILE and writes the spec.Measurement as JSON
	// to RemoteResult(FILE).
	Args []string
	// Request returns the content of the file for a configuration.
	Request func(c spec.Config) any
	// Run identifies the run among others in Dir, such as campaign/NAME#LABEL.
	Run   string
	GPUs  int           // per node
	Limit time.Duration // of a job once it runs, see executor.Job
}

// Remote measures points as jobs of a cluster, several at a time. The job measures as on its own machine and writes the row
// to a file; so a row is not lost if this process is killed, and UnderWay finds it.
type Remote struct {
	o RemoteOptions

	mu       sync.Mutex
	returned []string // directories of rows that Run returned
}

var (
	_ profiler.Runner  = (*Remote)(nil)
	_ profiler.Resumer = (*Remote)(nil)
)

// NewRemote returns a runner.
func NewRemote(o RemoteOptions) (*Remote, error) {
	if o.Cluster == nil || o.Dir == "" || len(o.Args) == 0 || o.Request == nil {
		return nil, errors.New("runner: remote: no cluster, directory, command or request")
	}
	dir, err := filepath.Abs(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("runner: remote: %w", err)
	}
	o.Dir = dir
	return &Remote{o: o}, nil
}

const (
	remoteRequest = "request.json"
	remoteResult  = "result.json"
	remoteLog     = "log.txt"
)

// RemoteResult returns the file of the result for a request file.
func RemoteResult(request string) string { return filepath.Join(filepath.Dir(request), remoteResult) }

// prefix is that of the keys of all jobs of the run. A cluster has jobs of many directories, and runs of one name in each.
func (r *Remote) prefix() string {
	return fmt.Sprintf("pacer-%.10x-", sha256.Sum256([]byte(r.o.Dir+"\x00"+r.o.Run)))
}

func (r *Remote) key(c spec.Config) string {
	return r.prefix() + fmt.Sprintf("%.10x", sha256.Sum256([]byte(profiler.IdentityOf(c).String())))
}

// Run implements profiler.Runner. It may be called from several goroutines, with different configurations. If ctx ends, the
// job continues, so that a later process has its result.
func (r *Remote) Run(ctx context.Context, c spec.Config) (spec.Measurement, error) {
	m := spec.Measurement{Config: c, At: time.Now().UTC(), Env: map[string]string{}}
	dir := filepath.Join(r.o.Dir, r.key(c))
	if r.wasReturned(dir) { // this point is measured once more
		if err := os.RemoveAll(dir); err != nil {
			return m, fmt.Errorf("runner: remote: %w", err)
		}
	}
	end, err := r.Do(ctx, r.key(c), nodesOf(c), r.o.Args, r.o.Request(c))
	if err != nil {
		return m, err
	}
	err = readResult(dir, &m)
	r.mu.Lock()
	r.returned = append(r.returned, dir)
	r.mu.Unlock()
	m.Config = c
	switch {
	case err == nil:
		return m, nil
	case !errors.Is(err, fs.ErrNotExist):
		return m, fmt.Errorf("runner: remote: %w", err)
	}
	tail := logTail(dir)
	m.Outcome, m.Reason = spec.Failed, fmt.Sprintf("the job ended without a result: %s, exit status %d, last line %q", end.State, end.Code, lastLine(tail))
	m.Env[profiler.EnvLog] = tail
	switch {
	case end.State == executor.JobTimeout:
		m.Outcome, m.Reason = spec.Timeout, fmt.Sprintf("the job did not end within its limit of %s", r.o.Limit)
	case end.External():
		m.Env[profiler.EnvExternal] = "the job was ended from outside: " + string(end.State)
	}
	return m, nil
}

func (r *Remote) wasReturned(dir string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Contains(r.returned, dir)
}

// nodesOf returns the nodes that a point needs: a rank alone needs one.
func nodesOf(c spec.Config) int {
	if c.Alone() {
		return 1
	}
	return max(c.Shape.Nodes(), 1)
}

// Do runs a job on nodes with a request and waits until its result is there or the job has ended. A result that is there
// already is taken.
func (r *Remote) Do(ctx context.Context, key string, nodes int, args []string, request any) (executor.JobEnd, error) {
	dir := filepath.Join(r.o.Dir, key)
	done := func() bool { _, err := os.Stat(filepath.Join(dir, remoteResult)); return err == nil }
	if done() {
		return executor.JobEnd{}, nil
	}
	file := filepath.Join(dir, remoteRequest)
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		err = atomicfile.Write(file, 0o644, func(w io.Writer) error { return json.NewEncoder(w).Encode(request) })
	}
	if err != nil {
		return executor.JobEnd{}, fmt.Errorf("runner: remote: %w", err)
	}
	h, err := r.o.Cluster.Submit(ctx, executor.Job{Key: key, Args: append(append([]string{}, args...), file), Dir: dir,
		Output: filepath.Join(dir, remoteLog), Nodes: nodes, GPUs: r.o.GPUs, Limit: r.o.Limit})
	if err != nil {
		return executor.JobEnd{}, fmt.Errorf("runner: remote: %w", err)
	}
	end, err := h.Wait(ctx, done)
	if err != nil {
		return end, fmt.Errorf("runner: remote: %w", err)
	}
	return end, nil
}

// Ask runs a job of the run that is no point, with a request, and reads its answer.
func (r *Remote) Ask(ctx context.Context, name string, args []string, request, answer any) error {
	key := r.prefix() + name
	dir := filepath.Join(r.o.Dir, key)
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("runner: remote: %w", err)
	}
	defer os.RemoveAll(dir)
	end, err := r.Do(ctx, key, 1, args, request)
	if err != nil {
		return err
	}
	if err = readResult(dir, answer); errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("runner: remote: the job %s ended without an answer: %s, exit status %d, last line %q: %w", key, end.State, end.Code,
			lastLine(logTail(dir)), profiler.ErrSetup)
	}
	return err
}

// readResult reads the result of a job. Nodes may see a new file a little later than each other; the job has ended.
func readResult(dir string, into any) error {
	text, err := os.ReadFile(filepath.Join(dir, remoteResult))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(dir, remoteResult), err)
	}
	return nil
}

// logTail returns the end of the output of a job.
func logTail(dir string) string {
	const most = 8 << 10
	text, _ := os.ReadFile(filepath.Join(dir, remoteLog))
	return strings.ToValidUTF8(string(text[max(len(text)-most, 0):]), "?")
}

// UnderWay implements profiler.Resumer.
func (r *Remote) UnderWay(ctx context.Context, open []spec.Config) (found []spec.Config, err error) {
	keep := map[string]bool{}
	for _, c := range open {
		key := r.key(c)
		dir := filepath.Join(r.o.Dir, key)
		if _, err := os.Stat(filepath.Join(dir, remoteRequest)); err != nil {
			continue // nothing was submitted
		}
		_, err := os.Stat(filepath.Join(dir, remoteResult))
		if err != nil {
			h, err := r.o.Cluster.Find(ctx, key)
			if err != nil {
				return nil, fmt.Errorf("runner: remote: %w", err)
			}
			if h == nil {
				continue
			}
		}
		keep[key] = true
		found = append(found, c)
	}
	return found, r.clean(func(key string) bool { return !keep[key] })
}

// Close removes the directories of the rows that Run returned.
func (r *Remote) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	var errs []error
	for _, dir := range r.returned {
		errs = append(errs, os.RemoveAll(dir))
	}
	r.returned = nil
	return errors.Join(errs...)
}

// clean removes the directories of jobs of the run for which drop returns true.
func (r *Remote) clean(drop func(key string) bool) error {
	entries, err := os.ReadDir(r.o.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), r.prefix()) && drop(e.Name()) {
			err = cmp.Or(err, os.RemoveAll(filepath.Join(r.o.Dir, e.Name())))
		}
	}
	return err
}
