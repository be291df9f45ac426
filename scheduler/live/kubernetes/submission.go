package kubernetes

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	batch "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	yamlreader "k8s.io/apimachinery/pkg/util/yaml"
	"sigs.k8s.io/yaml"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/live"
)

// Manifest is a text of YAML or JSON documents, as kubectl reads it.
type Manifest struct {
	Jobs      []Submission // those with devices
	documents [][]byte
}

// Submission is a Job of a Manifest.
type Submission struct {
	Name string
	Err  error // why it cannot be used; Job has what was read before
	// Job is as pacer schedule reads it. Without a model of its annotations it is only the request.
	Job     spec.Job
	Managed bool // its annotations name a model
	Pods    int
	Command []string // command and arguments of the container with devices

	object   *batch.Job
	document int
}

// ReadManifest reads the Jobs of a manifest. Model of o is required. The error says which document cannot be read.
func ReadManifest(text []byte, o Options) (*Manifest, error) {
	m := &Manifest{}
	c := &Cluster{Options: o}
	for docs := yamlreader.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return m, nil
		}
		m.documents = append(m.documents, doc)
		var is struct{ APIVersion, Kind string }
		if err == nil {
			err = yaml.Unmarshal(doc, &is)
		}
		var j batch.Job
		if err == nil && is.APIVersion == "batch/v1" && is.Kind == "Job" {
			err = yaml.Unmarshal(doc, &j)
		}
		if err != nil {
			return nil, fmt.Errorf("kubernetes: document %d: %w", len(m.documents), err)
		}
		if j.Kind == "" {
			continue
		}
		if s, has := c.submission(&j); has {
			s.document = len(m.documents) - 1
			m.Jobs = append(m.Jobs, s)
		}
	}
}

// submission reads a Job, false if it requests no devices.
func (c *Cluster) submission(j *batch.Job) (s Submission, has bool) {
	s = Submission{Name: j.Name, object: j, Pods: 1, Managed: j.Annotations[ModelAnnotation] != ""}
	if s.Name == "" {
		s.Name = j.GenerateName
	}
	index, _, _, err := container(&j.Spec.Template.Spec)
	if err != nil && !s.Managed {
		return s, false
	}
	if j.Spec.Parallelism != nil {
		s.Pods = int(*j.Spec.Parallelism)
	}
	if s.Managed {
		var job live.Job
		job, s.Err = c.jobOf(j)
		s.Job = job.Spec
	} else {
		var r requested
		r, s.Err = requestOf(j)
		s.Job.Devices, s.Job.Host = r.Devices, r.Host
	}
	if err == nil {
		of := &j.Spec.Template.Spec.Containers[index]
		s.Command = append(append(s.Command, of.Command...), of.Args...)
	}
	for _, label := range AcceleratorLabels {
		if s.Job.Accelerator == "" {
			s.Job.Accelerator = j.Spec.Template.Spec.NodeSelector[label]
		}
	}
	return s, true
}

// Set changes the numbers of pods and devices and the plan of a Job. CPUs and memory change in proportion to the devices.
func (m *Manifest) Set(s *Submission, shape spec.Shape, plan spec.Plan) error {
	index, resource, _, err := container(&s.object.Spec.Template.Spec)
	if err != nil {
		return fmt.Errorf("kubernetes: job %s: %w", s.Name, err)
	}
	pods, of := len(shape.PerNode()), &s.object.Spec.Template.Spec.Containers[index]
	planned := object{"annotations": object{PlanAnnotation: plan.String()}}
	patch, err := json.Marshal(object{
		"metadata": planned,
		"spec": object{
			"parallelism": pods, "completions": pods,
			"template": object{
				"metadata": planned,
				"spec": object{"containers": []object{{
					"name": of.Name, "resources": resources(of, resource, shape.Most(), &live.Job{Spec: s.Job}),
				}}},
			},
		},
	})
	if err != nil {
		return err
	}
	text, err := yaml.YAMLToJSON(m.documents[s.document])
	if err == nil {
		text, err = strategicpatch.StrategicMergePatch(text, patch, batch.Job{})
	}
	if err == nil {
		text, err = yaml.JSONToYAML(text)
	}
	if err != nil {
		return fmt.Errorf("kubernetes: job %s: %w", s.Name, err)
	}
	m.documents[s.document] = text
	return nil
}

// String returns the manifest. Documents that were not changed are as they were read.
func (m *Manifest) String() string {
	texts := make([]string, len(m.documents))
	for i, d := range m.documents {
		texts[i] = strings.TrimSuffix(strings.TrimPrefix(string(d), "---\n"), "\n") + "\n"
	}
	return strings.Join(texts, "---\n")
}
