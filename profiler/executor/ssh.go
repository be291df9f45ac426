package executor

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pacer-ml/pacer/profiler"
)

// SSH runs jobs on a list of hosts, each with a host for itself. It logs in with ssh, without a password: names, users and
// keys are those of ~/.ssh/config. A host needs sh, flock, setsid and timeout, as every Linux has, and keeps what it runs in
// $TMPDIR or /tmp: so a later process finds a job, and a host never runs two, whoever began them.
type SSH struct {
	o     SSHOptions
	turn  chan struct{} // held by the one that takes hosts, so that a job on many gets them
	mu    sync.Mutex
	taken map[string]bool // hosts of jobs of this process
}

// SSHOptions configure an SSH. Only Hosts is required.
type SSHOptions struct {
	Hosts    []string
	Env      []string      // "NAME=value" for the commands
	Poll     time.Duration // between two looks at a job, 0 = 2 s
	Patience time.Duration // for hosts that do not answer, 0 = 2 minutes
	// Command runs a script of sh on a host and returns its standard output; nil = with ssh. The error wraps ErrUnreachable
	// if the host did not run it.
	Command func(ctx context.Context, host, script string) ([]byte, error)
}

// ErrUnreachable means that a host did not answer.
var ErrUnreachable = errors.New("unreachable")

var _ Cluster = (*SSH)(nil)

// NewSSH returns a cluster of hosts. They must differ.
func NewSSH(o SSHOptions) (*SSH, error) {
	for i, h := range o.Hosts {
		if h == "" || strings.HasPrefix(h, "-") || strings.ContainsAny(h, " \t\n,") {
			return nil, fmt.Errorf("executor: ssh: %q is not the name of a host", h)
		}
		if slices.Contains(o.Hosts[:i], h) {
			return nil, fmt.Errorf("executor: ssh: host %s is listed twice", h)
		}
	}
	if len(o.Hosts) == 0 {
		return nil, errors.New("executor: ssh: no hosts")
	}
	if o.Poll <= 0 {
		o.Poll = 2 * time.Second
	}
	if o.Patience <= 0 {
		o.Patience = 2 * time.Minute
	}
	if o.Command == nil {
		o.Command = overSSH
	}
	return &SSH{o: o, turn: make(chan struct{}, 1), taken: map[string]bool{}}, nil
}

// overSSH runs a script with ssh, which ends with 255 if it is not connected.
func overSSH(ctx context.Context, host, script string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "ssh", "-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=10", host, "sh -s")
	cmd.Stdin = strings.NewReader(script)
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	var exit *exec.ExitError
	switch {
	case errors.Is(err, exec.ErrNotFound):
		return nil, fmt.Errorf("executor: %w: install a client of ssh: %w", err, profiler.ErrSetup)
	case errors.As(err, &exit) && exit.ExitCode() == 255:
		return nil, fmt.Errorf("executor: host %s is %w: %s", host, ErrUnreachable, strings.TrimSpace(errs.String()))
	case err != nil:
		return nil, fmt.Errorf("executor: host %s: %w: %s", host, err, strings.TrimSpace(errs.String()))
	}
	return out, nil
}

// What a host says of a job.
const (
	sshRunning = "running" // and the number of its nodes
	sshEnded   = "ended"   // and the exit status
	sshLost    = "lost"    // its processes are gone, and left no exit status
	sshNone    = "none"
	sshIsFree  = "free"
	sshBusy    = "busy" // another job runs
	sshStarted = "started"
)

// The scripts begin with the directory d of jobs on the host, which only this user can write to, and k, that of the job.
const (
	sshBegin = `set -eu
umask 077
d=${TMPDIR:-/tmp}/pacer-jobs-$(id -u)
mkdir -p "$d"
[ -O "$d" ] && [ ! -L "$d" ] || { echo "$d belongs to another user" >&2; exit 1; }
k="$d/%s"
exec 9>>"$d/lock"
`
	sshFree = `flock -n 9 && echo free || echo busy
`
	// The lock is held until the job has ended, whatever becomes of the connection.
	sshStart = `flock -n 9 || { echo busy; exit; }
rm -rf "$k"
mkdir "$k"
echo %d > "$k/nodes"
cat > "$k/job" <<'END-OF-PACER-JOB'
%s
END-OF-PACER-JOB
setsid sh -c 'sh "$1/job"; echo $? > "$1/exit.new"; mv "$1/exit.new" "$1/exit"' sh "$k" > /dev/null 2>&1 < /dev/null &
echo $! > "$k/group"
echo started
`
	sshState = `if [ -e "$k/exit" ]; then echo ended "$(cat "$k/exit")"
elif [ ! -e "$k" ]; then echo none
elif flock -n 9; then if [ -e "$k/exit" ]; then echo ended "$(cat "$k/exit")"; else echo lost; fi
else echo running "$(cat "$k/nodes")"; fi
`
	// The processes get SIGTERM: a pacer among them ends what it began.
	sshCancel = `if [ -e "$k/group" ] && [ ! -e "$k/exit" ] && ! flock -n 9; then
	kill -s TERM -- "-$(cat "$k/group")" 2> /dev/null || true
	flock -w 20 9 || { kill -s KILL -- "-$(cat "$k/group")" 2> /dev/null || true; }
fi
rm -rf "$k"
`
)

// timeoutCode is the exit status of timeout(1) if the time passed.
const timeoutCode = "124"

// jobScript is the script of node number of a job, in the form of sh.
func (s *SSH) jobScript(j *Job, host string, number int, attempt string) string {
	var b strings.Builder
	if j.Dir != "" {
		fmt.Fprintf(&b, "cd %s || exit\n", quoteWord(j.Dir))
	}
	for _, v := range append(slices.Clone(s.o.Env), fmt.Sprintf("%s=%d", NodeVar, number), fmt.Sprintf("%s=%d", NodesVar, max(j.Nodes, 1)),
		AttemptVar+"="+attempt, NameVar+"="+host) {
		name, value, _ := strings.Cut(v, "=")
		fmt.Fprintf(&b, "export %s=%s\n", name, quoteWord(value))
	}
	if j.Limit > 0 {
		fmt.Fprintf(&b, "timeout --foreground -k 30 %d ", max(1, int((j.Limit+time.Second-1)/time.Second)))
	}
	for _, a := range j.Args {
		b.WriteString(quoteWord(a) + " ")
	}
	if j.Output != "" {
		fmt.Fprintf(&b, ">> %s 2>&1", quoteWord(j.Output))
	}
	return b.String()
}

// ask runs a script about a job on a host, and returns the words that it prints.
func (s *SSH) ask(ctx context.Context, host, key, script string, args ...any) ([]string, error) {
	out, err := s.o.Command(ctx, host, fmt.Sprintf(sshBegin, key)+fmt.Sprintf(script, args...))
	words := strings.Fields(string(out))
	if err == nil && len(words) == 0 {
		words = []string{""}
	}
	return words, err
}

// Submit implements Cluster. It waits until hosts are free. GPUs has no effect: a job has its hosts for itself.
func (s *SSH) Submit(ctx context.Context, j Job) (Handle, error) {
	if err := j.Validate(); err != nil {
		return nil, err
	}
	if j.Tasks > 0 {
		return nil, fmt.Errorf("executor: ssh: job %s is an array of %d tasks, which a list of hosts does not run", j.Key, j.Tasks)
	}
	if n := max(j.Nodes, 1); n > len(s.o.Hosts) {
		return nil, fmt.Errorf("executor: ssh: job %s needs %d hosts, %d are listed", j.Key, n, len(s.o.Hosts))
	}
	if h, err := s.Find(ctx, j.Key); err != nil || h != nil {
		return h, err
	}
	select {
	case s.turn <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	defer func() { <-s.turn }()
	for began := time.Now(); ; {
		h, unreachable, err := s.start(ctx, &j)
		if h != nil || err != nil {
			return h, err
		}
		if unreachable == nil {
			began = time.Now()
		} else if time.Since(began) > s.o.Patience {
			return nil, unreachable
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(s.o.Poll):
		}
	}
}

// start begins a job on the first free hosts. It returns nil if too few are free: because hosts are unreachable, or run
// something else.
func (s *SSH) start(ctx context.Context, j *Job) (_ Handle, unreachable, _ error) {
	want := max(j.Nodes, 1)
	var free []string
	for _, host := range s.o.Hosts {
		if len(free) == want || !s.take(host) {
			continue
		}
		yes, err := s.answers(ctx, host, j.Key, sshIsFree, sshFree)
		if yes {
			free = append(free, host)
			continue
		}
		s.release(host)
		if errors.Is(err, ErrUnreachable) {
			unreachable = err
		} else if err != nil {
			s.release(free...)
			return nil, nil, err
		}
	}
	if len(free) < want {
		s.release(free...)
		return nil, unreachable, nil
	}
	h := &sshJob{s: s, key: j.Key, hosts: free, limited: j.Limit > 0}
	attempt := rand.Text()
	for number, host := range free {
		yes, err := s.answers(ctx, host, j.Key, sshStarted, sshStart, want, s.jobScript(j, host, number, attempt))
		if !yes { // another process was faster, or the host has gone
			return nil, err, h.Cancel(context.WithoutCancel(ctx))
		}
	}
	return h, nil, nil
}

// answers reports whether a host answers with a word; a busy one does not.
func (s *SSH) answers(ctx context.Context, host, key, want, script string, args ...any) (bool, error) {
	words, err := s.ask(ctx, host, key, script, args...)
	if err != nil || words[0] == want || words[0] == sshBusy {
		return err == nil && words[0] == want, err
	}
	return false, fmt.Errorf("executor: host %s answered %q about job %s", host, strings.Join(words, " "), key)
}

func (s *SSH) take(host string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken[host] {
		return false
	}
	s.taken[host] = true
	return true
}

func (s *SSH) release(hosts ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range hosts {
		delete(s.taken, h)
	}
}

// Find implements Cluster. A host that does not answer has none. A job that runs on some of its hosts only is ended.
func (s *SSH) Find(ctx context.Context, key string) (Handle, error) {
	h := &sshJob{s: s, key: key, limited: true}
	nodes := ""
	for _, host := range s.o.Hosts {
		words, err := s.ask(ctx, host, key, sshState)
		switch {
		case errors.Is(err, ErrUnreachable):
		case err != nil:
			return nil, err
		case words[0] == sshRunning && len(words) == 2:
			nodes = words[1]
			h.hosts = append(h.hosts, host)
		}
	}
	if len(h.hosts) == 0 {
		return nil, nil
	}
	for _, host := range h.hosts {
		s.take(host)
	}
	if fmt.Sprint(len(h.hosts)) != nodes {
		return nil, h.Cancel(ctx)
	}
	return h, nil
}

// sshJob is a job on hosts, node 0 first unless it was found.
type sshJob struct {
	s       *SSH
	key     string
	hosts   []string
	limited bool
}

// Wait implements Handle. Once the job has ended, its hosts are free.
func (h *sshJob) Wait(ctx context.Context, done func() bool) (JobEnd, error) {
	answered := time.Now()
	for {
		// A result is written just before the end: the hosts are free only then.
		end, running, err := h.state(ctx)
		switch {
		case ctx.Err() != nil:
			return JobEnd{}, ctx.Err()
		case errors.Is(err, ErrUnreachable) && time.Since(answered) < h.s.o.Patience:
		case errors.Is(err, ErrUnreachable):
			return JobEnd{JobNodeFail, -1}, h.Cancel(ctx)
		case err != nil:
			return JobEnd{}, err
		case !running:
			if done != nil && done() {
				end = JobEnd{}
			}
			return end, h.Cancel(ctx)
		default:
			answered = time.Now()
		}
		select {
		case <-ctx.Done():
			return JobEnd{}, ctx.Err()
		case <-time.After(h.s.o.Poll):
		}
	}
}

// state returns whether the job runs, and its end: the worst of those of its hosts. If one host has lost it, the rest does
// not go on.
func (h *sshJob) state(ctx context.Context) (end JobEnd, running bool, err error) {
	end = JobEnd{JobEnded, 0}
	for _, host := range h.hosts {
		words, err := h.s.ask(ctx, host, h.key, sshState)
		if err != nil {
			return end, true, err
		}
		switch {
		case words[0] == sshRunning:
			running = true
		case words[0] == sshEnded && len(words) == 2:
			code := 0
			if _, err := fmt.Sscan(words[1], &code); err != nil {
				return end, false, fmt.Errorf("executor: host %s: exit status %q of job %s is no number", host, words[1], h.key)
			}
			if h.limited && words[1] == timeoutCode {
				end.State = JobTimeout
			}
			if end.Code == 0 {
				end.Code = code
			}
		case words[0] == sshLost || words[0] == sshNone:
			return JobEnd{JobNodeFail, -1}, false, nil
		default:
			return end, false, fmt.Errorf("executor: host %s answered %q about job %s", host, strings.Join(words, " "), h.key)
		}
	}
	return end, running, nil
}

// Cancel implements Handle. Hosts that do not answer keep their part until its limit.
func (h *sshJob) Cancel(ctx context.Context) error {
	var errs []error
	for _, host := range h.hosts {
		if _, err := h.s.ask(ctx, host, h.key, sshCancel); err != nil && !errors.Is(err, ErrUnreachable) {
			errs = append(errs, err)
		}
	}
	h.s.release(h.hosts...)
	return errors.Join(errs...)
}
