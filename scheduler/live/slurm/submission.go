package slurm

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/live"
)

// Submission is a call of sbatch: its arguments, its environment and the #SBATCH lines of its script.
type Submission struct {
	Script string // path of the script, "" = standard input or Wrap
	Wrap   string // command of option wrap
	Stdin  bool   // the script is read from standard input

	Job      spec.Job // as pacer schedule reads it; without a comment of pacer only the request
	Managed  bool     // has a comment of pacer
	Nodes    int      // 0 = as few as possible
	GPUType  string   // of GRES, "" = any
	options  map[string]string
	args     []string // of sbatch
	end      int      // of the options in args
	gpusForm string   // the option that requests GPUs
}

// shortOptions are the long names of the short options of sbatch.
var shortOptions = map[byte]string{'a': "array", 'A': "account", 'b': "begin", 'B': "extra-node-info", 'c': "cpus-per-task", 'C': "constraint", 'd': "dependency",
	'D': "chdir", 'e': "error", 'F': "nodefile", 'G': "gpus", 'h': "help", 'H': "hold", 'i': "input", 'J': "job-name", 'k': "no-kill", 'L': "licenses", 'm': "distribution",
	'M': "clusters", 'n': "ntasks", 'N': "nodes", 'o': "output", 'O': "overcommit", 'p': "partition", 'q': "qos", 'Q': "quiet", 's': "oversubscribe", 'S': "core-spec",
	't': "time", 'v': "verbose", 'V': "version", 'w': "nodelist", 'W': "wait", 'x': "exclude"}

// bareOptions take no value, or only one after =.
var bareOptions = strings.Fields(`consolidate-segments contiguous exclusive get-user-env help hold ignore-pbs nice no-kill no-requeue
	overcommit oom-kill-step oversubscribe parsable propagate quiet reboot requeue share spread-job stepmgr test-only usage use-min-nodes verbose version wait`)

// valueOptions take a value.
var valueOptions = strings.Fields(`account acctg-freq array batch bb bbf begin chdir cluster-constraint clusters comment constraint container
	container-id core-spec cores-per-socket cpu-freq cpus-per-gpu cpus-per-task deadline delay-boot dependency distribution error exclude export export-file
	extra extra-node-info gid gpu-bind gpu-freq gpus gpus-per-node gpus-per-socket gpus-per-task gres gres-flags hint input job-name kill-on-invalid-dep
	licenses mail-type mail-user mcs-label mem mem-bind mem-per-cpu mem-per-gpu mincpus network nodefile nodelist nodes ntasks ntasks-per-core
	ntasks-per-gpu ntasks-per-node ntasks-per-socket open-mode output partition power prefer priority profile qos reservation
	segment signal sockets-per-node switches thread-spec threads-per-core time time-min tmp tres-bind tres-per-task uid wckey wrap`)

// environment are the variables by which sbatch takes options that count here.
var environment = map[string]string{"SBATCH_COMMENT": "comment", "SBATCH_GRES": "gres", "SBATCH_GPUS": "gpus", "SBATCH_GPUS_PER_NODE": "gpus-per-node",
	"SBATCH_GPUS_PER_TASK": "gpus-per-task", "SBATCH_ARRAY_INX": "array", "SBATCH_CPUS_PER_GPU": "cpus-per-gpu", "SBATCH_MEM_PER_NODE": "mem"}

// ParseSubmission reads the arguments of sbatch. An option that is not known is an error: it may have a value, which would
// be taken for the script.
func ParseSubmission(args []string) (*Submission, error) {
	s := &Submission{args: args}
	var err error
	if s.options, s.end, err = readOptions(args); err != nil {
		return nil, fmt.Errorf("slurm: sbatch: %w", err)
	}
	rest := args[s.end:]
	if len(rest) > 0 && rest[0] == "--" {
		rest = rest[1:]
	}
	wrap, wraps := s.options["wrap"]
	switch {
	case wraps:
		s.Wrap = wrap
	case len(rest) > 0:
		s.Script = rest[0]
	default:
		s.Stdin = true
	}
	return s, nil
}

// readOptions reads options up to the first argument that is none, and returns its index.
func readOptions(args []string) (options map[string]string, end int, err error) {
	options = map[string]string{}
	for i := 0; i < len(args); i++ {
		a := args[i]
		switch {
		case a == ":":
			return nil, 0, errors.New("a heterogeneous job, want one with equal nodes")
		case len(a) < 2 || a[0] != '-', a == "--":
			return options, i, nil
		}
		name, value, given := strings.Cut(strings.TrimPrefix(a, "--"), "=")
		if !strings.HasPrefix(a, "--") { // -N2, -N 2, -Hn1
			letters := a[1:]
			for len(letters) > 1 && slices.Contains(bareOptions, shortOptions[letters[0]]) {
				options[shortOptions[letters[0]]], letters = "", letters[1:]
			}
			name, value, given = shortOptions[letters[0]], letters[1:], len(letters) > 1
		}
		bare := slices.Contains(bareOptions, name)
		switch {
		case !bare && !slices.Contains(valueOptions, name):
			return nil, 0, fmt.Errorf("option %.80q is not known", a)
		case !bare && !given:
			if i++; i == len(args) {
				return nil, 0, fmt.Errorf("option %.80q has no value", a)
			}
			value = args[i]
		}
		options[name] = value
	}
	return options, len(args), nil
}

// Read reads the #SBATCH lines of the script and what the job says of itself. Model and NodeType of o are required.
func (s *Submission) Read(script []byte, o Options) error {
	if err := s.read(script, o); err != nil {
		return fmt.Errorf("slurm: sbatch: %w", err)
	}
	return nil
}

func (s *Submission) read(script []byte, o Options) error {
	lines, err := scriptOptions(string(script))
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(environment)) {
		if value := os.Getenv(name); value != "" {
			lines[environment[name]] = value
		}
	}
	for name, value := range lines { // the arguments win, then the environment
		if _, ok := s.options[name]; !ok {
			s.options[name] = value
		}
	}
	return s.fill(o)
}

// fill reads the job that the options describe.
func (s *Submission) fill(o Options) (err error) {
	if _, ok := s.options["array"]; ok {
		return errors.New("an array, want a job for each of its tasks")
	}
	if s.Nodes, err = s.nodes(); err != nil {
		return err
	}
	j, err := s.asJob()
	if err != nil {
		return err
	}
	c := &Cluster{Options: o}
	if err := j.readRequest(&s.Job, c); err != nil {
		return err
	}
	s.GPUType = j.request.Type
	text, ours := strings.CutPrefix(s.options["comment"], Prefix)
	if s.Managed = ours; !ours {
		return nil
	}
	// No file is read that a submission names.
	text = strings.Join(slices.DeleteFunc(splitKeys(text), func(k string) bool { return strings.HasPrefix(k, "progress=") }), ",")
	out := live.Job{Spec: s.Job}
	out.Spec.ID = "submitted"
	if err := c.readKeys(&out, text); err != nil {
		return fmt.Errorf("comment %.200q: %w", s.options["comment"], err)
	}
	s.Job = out.Spec
	return s.Job.Validate()
}

// scriptOptions returns the options of the #SBATCH lines, which end before the first command.
func scriptOptions(script string) (map[string]string, error) {
	var args []string
	for line := range strings.Lines(script) {
		line = strings.TrimSpace(line)
		if text, ok := strings.CutPrefix(line, "#SBATCH"); ok {
			words, err := splitWords(text)
			if err != nil {
				return nil, fmt.Errorf("line %.200q: %w", line, err)
			}
			args = append(args, words...)
		} else if line != "" && line[0] != '#' {
			break
		}
	}
	options, end, err := readOptions(args)
	if err == nil && end < len(args) {
		err = fmt.Errorf("#SBATCH line: %.80q is no option", args[end])
	}
	return options, err
}

// splitWords splits at spaces outside of quotes, up to a comment.
func splitWords(text string) (words []string, err error) {
	var word strings.Builder
	in, quote := false, rune(0)
	for i, r := range text {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote == 0 && (r == '"' || r == '\''):
			in, quote = true, r
		case quote == 0 && (r == ' ' || r == '\t'):
			if in {
				words = append(words, word.String())
				word.Reset()
			}
			in = false
		case quote == 0 && r == '#' && !in:
			return words, nil
		case quote == 0 && r == '\\':
			return nil, fmt.Errorf("a backslash at column %d", i+1)
		default:
			in = true
			word.WriteRune(r)
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("a quote %c without its end", quote)
	}
	if in {
		words = append(words, word.String())
	}
	return words, nil
}

// number returns the value of an option, 0 if it is not given.
func (s *Submission) number(name string) (int, error) {
	text, ok := s.options[name]
	if !ok {
		return 0, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maxHosts {
		return 0, fmt.Errorf("option %s: %.80q is no number in 1..%d", name, text, maxHosts)
	}
	return n, nil
}

// nodes returns the number of nodes, 0 if it follows from the devices.
func (s *Submission) nodes() (int, error) {
	if least, most, ok := strings.Cut(s.options["nodes"], "-"); ok {
		if least != most {
			return 0, fmt.Errorf("option nodes: %.80q is a range, want one number", s.options["nodes"])
		}
		s.options["nodes"] = most
	}
	n, err := s.number("nodes")
	tasks, err2 := s.number("ntasks")
	per, err3 := s.number("ntasks-per-node")
	if n == 0 && tasks > 0 && per > 0 {
		n = (tasks + per - 1) / per
	}
	return n, errors.Join(err, err2, err3)
}

// tasks returns the number of tasks.
func (s *Submission) tasks() int {
	n, _ := s.number("ntasks")
	per, _ := s.number("ntasks-per-node")
	switch nodes := max(s.Nodes, 1); {
	case n > 0:
		return n
	case per > 0:
		return per * nodes
	default:
		return nodes
	}
}

// gpuForms are the options that request GPUs.
var gpuForms = []string{"gres", "gpus-per-node", "gpus", "gpus-per-task"}

// asJob returns what Slurm would show of the job.
func (s *Submission) asJob() (*job, error) {
	j := &job{NodeCount: number(max(s.Nodes, 1))}
	for _, form := range gpuForms {
		text, ok := s.options[form]
		if form != "gres" {
			text = "gpu:" + text
		}
		_, n, err := gres(text)
		if err != nil {
			return nil, err
		}
		if !ok || n == 0 {
			continue
		}
		if s.gpusForm != "" {
			return nil, fmt.Errorf("options %s and %s both request GPUs, want one", s.gpusForm, form)
		}
		s.gpusForm = form
		switch form {
		case "gpus":
			j.TresPerJob = text
		case "gpus-per-task":
			typ, _, _ := gres(text)
			j.TresPerJob = fmt.Sprintf("gpu:%s:%d", typ, n*s.tasks())
			if typ == "" {
				j.TresPerJob = fmt.Sprintf("gpu:%d", n*s.tasks())
			}
		default:
			j.TresPerNode = text
		}
	}
	return j, nil
}

// Set returns the arguments of sbatch with another number of nodes and devices on each, and a plan. Tasks, CPUs and memory
// change in proportion to the devices. Only a job with a comment of pacer gets a plan.
func (s *Submission) Set(shape spec.Shape, plan spec.Plan) ([]string, error) {
	nodes, per := len(shape.PerNode()), shape.Most()
	wasNodes := max(s.Nodes, 1)
	wasPer := float64(s.Job.Devices) / float64(wasNodes)
	out := []string{fmt.Sprintf("--nodes=%d", nodes)}
	set := func(name string, value any) { out = append(out, fmt.Sprintf("--%s=%v", name, value)) }
	typ := ""
	if s.GPUType != "" {
		typ = s.GPUType + ":"
	}
	tasksPerDevice := false
	ntasks, _ := s.number("ntasks")
	perNode, _ := s.number("ntasks-per-node")
	if ntasks > 0 || perNode > 0 {
		switch t := s.tasks(); t {
		case s.Job.Devices:
			tasksPerDevice = true
			ntasks, perNode = min(ntasks, 1)*nodes*per, min(perNode, 1)*per
		case wasNodes:
			ntasks, perNode = min(ntasks, 1)*nodes, min(perNode, 1)
		default:
			return nil, fmt.Errorf("slurm: sbatch: %d tasks for %d devices on %d nodes: one per device or node can be changed", t, s.Job.Devices, wasNodes)
		}
		if ntasks > 0 {
			set("ntasks", ntasks)
		}
		if perNode > 0 {
			set("ntasks-per-node", perNode)
		}
	}
	switch s.gpusForm {
	case "gres":
		others := []string{fmt.Sprintf("gpu:%s%d", typ, per)}
		for _, item := range splitOutside(s.options["gres"]) {
			if _, n, _ := gres(item); n == 0 {
				others = append(others, item)
			}
		}
		set("gres", strings.Join(others, ","))
	case "gpus":
		set("gpus", fmt.Sprintf("%s%d", typ, nodes*per))
	case "gpus-per-node":
		set("gpus-per-node", fmt.Sprintf("%s%d", typ, per))
	case "gpus-per-task":
		if !tasksPerDevice {
			set("gpus-per-task", fmt.Sprintf("%s%d", typ, per))
		}
	}
	for _, name := range []string{"cpus-per-task", "mem"} {
		if text, ok := s.options[name]; ok && !(name == "cpus-per-task" && tasksPerDevice) {
			scaled, err := scaled(text, float64(per)/wasPer)
			if err != nil {
				return nil, fmt.Errorf("slurm: sbatch: option %s: %w", name, err)
			}
			set(name, scaled)
		}
	}
	if s.Managed {
		keys := slices.DeleteFunc(splitKeys(strings.TrimPrefix(s.options["comment"], Prefix)), func(k string) bool { return strings.HasPrefix(k, "plan=") })
		set("comment", Prefix+strings.Join(append(keys, "plan="+strings.ReplaceAll(plan.String(), ",", "+")), ","))
	}
	return slices.Concat(s.args[:s.end], out, s.args[s.end:]), nil
}

// scaled multiplies a number with a unit, and rounds up.
func scaled(text string, by float64) (string, error) {
	number := strings.TrimRight(text, "KMGTkmgt")
	n, err := strconv.Atoi(number)
	if err != nil || n < 0 {
		return "", fmt.Errorf("%.80q is no number with one of K, M, G, T", text)
	}
	return strconv.Itoa(int(float64(n)*by+0.999)) + text[len(number):], nil
}

// JobName returns the name of the job, "" if it is that of its script.
func (s *Submission) JobName() string { return s.options["job-name"] }
