package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	core "k8s.io/api/core/v1"
	"k8s.io/kubernetes/pkg/fieldpath"
	"k8s.io/kubernetes/third_party/forked/golang/expansion"
)

// process is the command of a container, run on this machine.
type process struct {
	cmd  *exec.Cmd
	done chan struct{}
	code int
}

// startProcess starts the command of the first container of p with its environment, in a
// directory of its own below dir; its output is the file log there.
func startProcess(p *core.Pod, dir string) (*process, error) {
	c := p.Spec.Containers[0]
	env, vars, err := environment(p, c)
	if err != nil {
		return nil, err
	}
	var args []string
	for _, a := range append(append([]string{}, c.Command...), c.Args...) {
		args = append(args, expansion.Expand(a, expansion.MappingFuncFor(vars)))
	}
	if len(args) == 0 {
		return nil, errors.New("the container has no command, and its image is not run here")
	}
	home := filepath.Join(dir, p.Namespace+"_"+p.Name)
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, err
	}
	log, err := os.Create(filepath.Join(home, "log"))
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Dir, cmd.Env, cmd.Stdout, cmd.Stderr = home, env, log, log
	if c.WorkingDir != "" {
		cmd.Dir = c.WorkingDir
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: true}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	run := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		cmd.Wait() // its error is the exit code
		run.code = cmd.ProcessState.ExitCode()
		close(run.done)
	}()
	return run, nil
}

// environment returns the variables of a container, after those of this process that name
// where programs and files are.
func environment(p *core.Pod, c core.Container) (env []string, vars map[string]string, err error) {
	for _, name := range []string{"PATH", "HOME", "TMPDIR"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	vars = map[string]string{}
	for _, e := range c.Env {
		value := expansion.Expand(e.Value, expansion.MappingFuncFor(vars))
		switch from := e.ValueFrom; {
		case from == nil:
		case from.FieldRef == nil:
			return nil, nil, fmt.Errorf("variable %q: only values and fieldRef are supported", e.Name)
		case from.FieldRef.FieldPath == "spec.nodeName":
			value = p.Spec.NodeName
		case from.FieldRef.FieldPath == "status.podIP":
			value = "127.0.0.1"
		default:
			if value, err = fieldpath.ExtractFieldPathAsString(p, from.FieldRef.FieldPath); err != nil {
				return nil, nil, fmt.Errorf("variable %q: %w", e.Name, err)
			}
		}
		vars[e.Name] = value
		env = append(env, e.Name+"="+value)
	}
	return env, vars, nil
}

// wait returns the exit code, -1 after a signal.
func (p *process) wait() int {
	<-p.done
	return p.code
}

// stop ends the process and its children: SIGTERM, and SIGKILL after grace.
func (p *process) stop(grace time.Duration) {
	group := -p.cmd.Process.Pid
	if grace > 0 {
		syscall.Kill(group, syscall.SIGTERM)
		select {
		case <-p.done:
		case <-time.After(grace):
		}
	}
	syscall.Kill(group, syscall.SIGKILL)
	<-p.done
}
