package recipe

import (
	"cmp"
	"reflect"
	"slices"
	"strconv"

	"github.com/pacer-ml/pacer/planner/launch/recipe/keyfile"
	"github.com/pacer-ml/pacer/planner/launch/recipe/shell"
)

// leastScore is the score of a command that starts training.
const leastScore = 6

// launches returns the arguments of the commands of a script, in the form of a format. Where no command has arguments
// of the format, all variables of the script are taken together: fragments are sourced by other scripts.
func (f *format) launches(s *shell.Script) (out [][]keyfile.Entry) {
	most := 0
	for _, words := range s.Commands {
		entries := f.arguments(words)
		out = append(out, entries)
		most = max(most, f.score(entries))
	}
	if most >= leastScore {
		return out
	}
	return append(out, f.arguments(s.Options()))
}

// others counts the commands that start training with other arguments than those that are read. The score of those is
// most.
func (f *format) others(s *shell.Script, read []keyfile.Entry, most int) (n int) {
	seen := [][]keyfile.Entry{read}
	for _, words := range s.Commands {
		entries := f.arguments(words)
		same := func(e []keyfile.Entry) bool { return reflect.DeepEqual(e, entries) }
		if f.score(entries) >= max(leastScore, most*3/4) && !slices.ContainsFunc(seen, same) {
			seen = append(seen, entries)
			n++
		}
	}
	return n
}

// arguments returns the options of a command line, in the form of the format.
func (f *format) arguments(words []string) []keyfile.Entry {
	if f.assignments {
		return shell.Assignments(words)
	}
	return shell.Arguments(words, f.underscores)
}

// anchors are the arguments that every script of a format has: a new one is written before one of them.
func (f *format) anchors() []string {
	if f.assignments {
		return []string{"model_name", "per_device_batch_size", "steps"}
	}
	return []string{"micro-batch-size", "num-layers", "hidden-size", "global-batch-size"}
}

// slurm sets the nodes of the #SBATCH lines, of sbatch and of srun, and the devices of a node: as many as it has GPUs
// or tasks. mpirun, and srun without nodes, say how many devices there are together.
func (r *Recipe) slurm(s *shell.Script, command []string) {
	step := shell.StepOf(command)
	if nodes := cmp.Or(step.Nodes, s.Nodes); nodes != "" {
		r.numbers[Nodes], _ = strconv.Atoi(nodes)
	}
	if ranks, _ := strconv.Atoi(step.Ranks); ranks > 0 && ranks < keyfile.MaxNumber {
		r.numbers[Devices] = ranks
	}
	for _, text := range []string{s.GPUs, s.Tasks, step.GPUs, step.Tasks} {
		if n, _ := strconv.Atoi(text); n > r.numbers[PerNode] {
			r.numbers[PerNode] = n
		}
	}
	if uneven := s.Array("DEVICES"); uneven != nil { // as package launch writes them
		total := 0
		for _, text := range uneven {
			n, _ := strconv.Atoi(text)
			total += n
		}
		if total > 0 && total < keyfile.MaxNumber {
			r.numbers[Devices] = total
		}
	}
}
