package shell

import (
	"cmp"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/syntax"

	"github.com/pacer-ml/pacer/planner/launch/recipe/keyfile"
)

// expansion matches what Kubernetes replaces in commands by variables of the container.
var expansion = regexp.MustCompile(`\$\(([A-Za-z_]\w*)\)`)

// ofContainer matches the keys of a container itself.
var ofContainer = regexp.MustCompile(`^(.*containers\[\]|spec\.trainer)\.(\w+)$`)

// container has the values of a container by key. One begins where a key comes again: files have keys in any order.
type container struct {
	path  string
	words map[string][]string
}

// Container returns a script with the commands that a job of Kubernetes runs, such as a Job, a JobSet, or a
// PyTorchJob, MPIJob or TrainJob of Kubeflow. Its nodes and the devices of each stand in it as for Slurm. kind is ""
// for other files.
func Container(entries []keyfile.Entry) (script, kind string) {
	var all []container
	var name string
	variables := map[string]string{}
	var replicas, completions []int // of each part of a JobSet
	nodes, procs, devices := 0, 0, 0
	for _, e := range entries {
		n, _ := strconv.Atoi(e.Value)
		words := e.List
		if words == nil && e.Value != "" {
			words = []string{e.Value}
		}
		if m := ofContainer.FindStringSubmatch(e.Key); m != nil {
			if k := len(all); k == 0 || all[k-1].path != m[1] || all[k-1].words[m[2]] != nil {
				all = append(all, container{m[1], map[string][]string{}})
			}
			all[len(all)-1].words[m[2]] = slices.Concat([]string{}, words)
		}
		switch key := e.Key; {
		case key == "kind":
			kind = e.Value
		case strings.HasSuffix(key, "env[].name"):
			name = e.Value
		case strings.HasSuffix(key, "env[].value"):
			variables[name] = e.Value
		case key == "spec.replicatedJobs[].replicas":
			replicas = append(replicas, n)
		case key == "spec.replicatedJobs[].template.spec.completions":
			completions = append(completions, n)
		case strings.HasSuffix(key, ".replicas") && !strings.Contains(key, "Launcher"), key == "spec.completions", key == "spec.trainer.numNodes", strings.HasSuffix(key, "template.spec.completions"):
			nodes += n
		case key == "spec.nprocPerNode", key == "spec.trainer.numProcPerNode":
			procs = n
		case strings.HasSuffix(key, "resources.limits.nvidia.com/gpu"), strings.HasSuffix(key, "resources.limits.amd.com/gpu"):
			devices = max(devices, n)
		}
	}
	for i := range max(len(replicas), len(completions)) {
		part := 1
		for _, counts := range [][]int{replicas, completions} {
			if i < len(counts) {
				part *= counts[i]
			}
		}
		nodes += part
	}
	var commands [][]string
	for _, c := range all {
		if words := slices.Concat(c.words["command"], c.words["args"]); len(words) > 0 {
			commands = append(commands, words)
		}
	}
	if kind == "" || len(commands) == 0 {
		return "", ""
	}
	var text strings.Builder
	fmt.Fprintf(&text, "#SBATCH --nodes=%d\n", max(nodes, 1))
	if per := cmp.Or(procs, devices); per > 0 {
		fmt.Fprintf(&text, "#SBATCH --gpus-per-node=%d\n", per)
	}
	for _, name := range slices.Sorted(maps.Keys(variables)) {
		if value, err := syntax.Quote(variables[name], syntax.LangBash); err == nil && expansion.MatchString("$("+name+")") {
			fmt.Fprintf(&text, "export %s=%s\n", name, value)
		}
	}
	for _, words := range commands {
		for _, w := range words {
			w = expansion.ReplaceAllStringFunc(w, func(found string) string { return cmp.Or(variables[found[2:len(found)-1]], found) })
			if quoted, err := syntax.Quote(w, syntax.LangBash); err == nil {
				text.WriteString(quoted + " ")
			}
		}
		text.WriteString("\n")
	}
	return text.String(), kind
}
