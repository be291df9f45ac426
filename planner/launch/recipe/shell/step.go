package shell

import (
	"path"
	"regexp"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
)

// Step holds the options of srun or mpirun in front of a program, "" = not given.
type Step struct {
	Nodes, GPUs, Tasks string // as in Script
	Ranks              string // of all nodes
}

var (
	// program matches the word at which the options of srun or mpirun end.
	program = regexp.MustCompile(`^(python[0-9.]*|torchrun|accelerate|deepspeed|bash|sh|env|numactl|nsys|singularity|apptainer|.*\.(py|sh))$`)
	// launcher matches programs that start the ranks of a node themselves.
	launcher = regexp.MustCompile(`^(torchrun|accelerate|deepspeed|torch\.distributed\.(run|launch))$`)
)

// StepOf returns the options of srun or mpirun with which a command starts. Ranks are counted only where they are
// those of the training program.
func StepOf(command []string) (step Step) {
	at := slices.IndexFunc(command, func(w string) bool {
		return slices.Contains([]string{"srun", "mpirun", "mpiexec"}, path.Base(w))
	})
	if at < 0 {
		return step
	}
	words := command[at+1:]
	if i := slices.IndexFunc(words, func(w string) bool { return program.MatchString(path.Base(w)) }); i >= 0 {
		words = words[:i]
	}
	if path.Base(command[at]) == "srun" {
		s := &Script{vars: map[string]expand.Variable{}}
		s.sbatch(words)
		step = Step{Nodes: s.Nodes, GPUs: s.GPUs, Tasks: s.Tasks}
	}
	if slices.ContainsFunc(command, launcher.MatchString) {
		return step
	}
	for i, w := range words {
		name, value, ok := strings.Cut(w, "=")
		if !ok && i+1 < len(words) {
			value = words[i+1]
		}
		if digits, ok := strings.CutPrefix(w, "-n"); ok && strings.Trim(digits, "0123456789") == "" && digits != "" {
			name, value = "n", digits
		}
		switch strings.TrimLeft(name, "-") {
		case "n", "np", "ntasks":
			step.Ranks = value
		case "npernode", "ppn":
			step.Tasks = value
		}
	}
	return step
}
