//go:build !nokubernetes

package schedule

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/child"
	"github.com/pacer-ml/pacer/cmd/internal/query"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/live/kubernetes"
)

// kubectlCall is what is read of the arguments of kubectl.
type kubectlCall struct {
	files     []string // "-" = standard input
	recursive bool     // below directories
	others    []string // the arguments without the files
}

// parseKubectl reads the arguments of kubectl apply or create.
func parseKubectl(args []string) (*kubectlCall, error) {
	if !slices.Contains(args, "apply") && !slices.Contains(args, "create") {
		return nil, errors.New("advise: kubectl without apply or create")
	}
	k := &kubectlCall{}
	for i := 0; i < len(args); i++ {
		name, value, has := strings.Cut(args[i], "=")
		if strings.HasPrefix(name, "-f") { // also -fFILE
			name, value, has = "-f", strings.TrimPrefix(args[i][len("-f"):], "="), len(args[i]) > len("-f")
		}
		switch name {
		case "-f", "--filename":
			if !has && i+1 < len(args) {
				i++
				value = args[i]
			}
			k.files = append(k.files, strings.Split(value, ",")...)
		case "-k", "--kustomize":
			return nil, errors.New("advise: kubectl wants files by -f to be understood, not a kustomization")
		case "-R", "--recursive":
			k.recursive = !has || value == "true"
			k.others = append(k.others, args[i])
		default:
			k.others = append(k.others, args[i])
		}
	}
	if len(k.files) == 0 || slices.Contains(k.files, "") {
		return nil, errors.New("advise: kubectl wants files by -f to be understood")
	}
	return k, nil
}

func kubectlStdin(args []string) bool {
	k, err := parseKubectl(args)
	return err == nil && slices.Contains(k.files, "-")
}

// read returns all files as one manifest. A directory is its files named *.json, *.yaml and *.yml, as for kubectl.
func (k *kubectlCall) read(stdin []byte) ([]byte, error) {
	var texts [][]byte
	size := 0
	add := func(text []byte, err error) error {
		if size += len(text); err == nil && size > maxSubmission {
			err = fmt.Errorf("the files have more than %d bytes", maxSubmission)
		}
		texts = append(texts, bytes.TrimSuffix(text, []byte("\n")), []byte("\n---\n"))
		return err
	}
	for _, file := range k.files {
		info, err := os.Stat(file)
		switch {
		case file == "-":
			err = add(stdin, nil)
		case strings.Contains(file, "://"):
			err = fmt.Errorf("%s is not read: want a file", file)
		case err == nil && info.IsDir():
			err = filepath.WalkDir(file, func(path string, d fs.DirEntry, err error) error {
				switch {
				case err != nil:
				case d.IsDir() && path != file && !k.recursive:
					return fs.SkipDir
				case !d.IsDir() && slices.Contains([]string{".json", ".yaml", ".yml"}, filepath.Ext(path)):
					return add(query.ReadFile("file", path, maxSubmission))
				}
				return err
			})
		default:
			err = add(query.ReadFile("file", file, maxSubmission))
		}
		if err != nil {
			return nil, fmt.Errorf("advise: %w", err)
		}
	}
	if len(texts) == 0 {
		return nil, fmt.Errorf("advise: no file named *.json, *.yaml or *.yml in %s", strings.Join(k.files, ", "))
	}
	return append(bytes.Join(texts[:len(texts)-1], nil), '\n'), nil
}

// readKubectl reads a call of kubectl apply or create.
func readKubectl(_ *cli.Context, submit *call) (*submission, error) {
	k, err := parseKubectl(submit.args[1:])
	if err != nil {
		return nil, err
	}
	text, err := k.read(submit.stdin)
	if err != nil {
		return nil, err
	}
	m, err := kubernetes.ReadManifest(text, kubernetes.Options{Model: catalog.Model})
	if err != nil {
		return nil, err
	}
	out, set := *submit, false
	var jobs []submitted
	for i := range m.Jobs {
		s := &m.Jobs[i]
		j := submitted{name: s.Name, job: s.Job, managed: s.Managed, by: "its annotations", nodes: s.Pods, err: s.Err}
		if len(s.Command) > 0 {
			text, err := child.Quote(s.Command)
			j.launch, j.err = []byte("#!/bin/sh\n"+text+"\n"), errors.Join(j.err, err)
		}
		if s.Managed {
			j.set = func(shape spec.Shape, plan spec.Plan) error {
				err := m.Set(s, shape, plan)
				set = set || err == nil
				return err
			}
		}
		jobs = append(jobs, j)
	}
	return &submission{jobs, func() *call {
		if set {
			out.stdin = []byte(m.String())
			out.args = slices.Concat(submit.args[:1], k.others, []string{"-f", "-"})
		}
		return &out
	}}, nil
}
