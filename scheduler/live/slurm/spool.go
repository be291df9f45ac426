package slurm

import (
	_ "embed" // job_submit.lua
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

//go:embed job_submit.lua
var jobSubmit string

// JobSubmit returns a job_submit.lua that writes submissions into the directory new of dir, and shows advice of the
// directory advice there. The path of dir may not have quotes, backslashes or control characters.
func JobSubmit(dir string) (string, error) {
	if strings.ContainsAny(dir, "\"\\\n\r") {
		return "", fmt.Errorf("slurm: directory %q has a quote or backslash", dir)
	}
	return strings.Replace(jobSubmit, "@DIR@", dir, 1), nil
}

// Spooled is a submission that job_submit.lua wrote.
type Spooled struct {
	Key, Name, User string // Key names the file with advice on such submissions
	Text            []byte // of the script
	Submission
}

// spoolKey matches a key of job_submit.lua.
var spoolKey = regexp.MustCompile(`^[0-9]{1,10}-[0-9]{1,10}$`)

// ReadSpooled reads a file of job_submit.lua. If only the job cannot be used, the Spooled has the rest.
func ReadSpooled(text []byte, o Options) (*Spooled, error) {
	var in struct {
		Key, Name, User, Comment, Array, Script string
		TresPerNode                             string `json:"tres_per_node"`
		TresPerJob                              string `json:"tres_per_job"`
		TresPerTask                             string `json:"tres_per_task"`
		Nodes, Tasks                            int
	}
	if err := json.Unmarshal(text, &in); err != nil {
		return nil, fmt.Errorf("slurm: submission: %w", err)
	}
	if !spoolKey.MatchString(in.Key) {
		return nil, fmt.Errorf("slurm: submission: key %.80q is not what job_submit.lua writes", in.Key)
	}
	s := &Spooled{Key: in.Key, Name: in.Name, User: in.User, Text: []byte(in.Script), Submission: Submission{options: map[string]string{}}}
	set := func(name, value string) {
		if value != "" {
			s.options[name] = value
		}
	}
	set("comment", in.Comment)
	set("array", in.Array)
	set("gres", in.TresPerNode)
	for name, n := range map[string]int{"nodes": in.Nodes, "ntasks": in.Tasks} {
		if n > 0 {
			set(name, strconv.Itoa(n))
		}
	}
	for name, tres := range map[string]string{"gpus": in.TresPerJob, "gpus-per-task": in.TresPerTask} {
		typ, n, err := gres(tres)
		if err != nil {
			return s, fmt.Errorf("slurm: submission: %w", err)
		}
		if n > 0 {
			set(name, strings.TrimPrefix(fmt.Sprintf("%s:%d", typ, n), ":"))
		}
	}
	if err := s.fill(o); err != nil {
		return s, fmt.Errorf("slurm: submission: %w", err)
	}
	return s, nil
}
