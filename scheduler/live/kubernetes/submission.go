package kubernetes

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	batch "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"
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

// Submission is an object of a Manifest that trains: a Job, JobSet, PyTorchJob or TrainJob.
type Submission struct {
	Name string
	Err  error // why it cannot be used; Job has what was read before
	// Job is as pacer schedule reads it. Without a model of its annotations it is only the request.
	Job     spec.Job
	Managed bool // its annotations name a model
	Pods    int
	Command []string // command and arguments of the container with devices

	object   object
	pods     *podSets // nil if they cannot be used
	document int
}

// ReadManifest reads what trains in a manifest. Model of o is required. The error says which document cannot be read.
func ReadManifest(text []byte, o Options) (*Manifest, error) {
	m := &Manifest{}
	c := &Cluster{Options: o}
	for docs := yamlreader.NewYAMLReader(bufio.NewReader(bytes.NewReader(text))); ; {
		doc, err := docs.Read()
		if errors.Is(err, io.EOF) {
			return m, nil
		}
		m.documents = append(m.documents, doc)
		s, has := Submission{}, false
		if err == nil {
			s, has, err = c.submission(doc)
		}
		if err != nil {
			return nil, fmt.Errorf("kubernetes: document %d: %w", len(m.documents), err)
		}
		if has {
			s.document = len(m.documents) - 1
			m.Jobs = append(m.Jobs, s)
		}
	}
}

// submission reads a document, false if it does not train or requests no devices.
func (c *Cluster) submission(document []byte) (s Submission, has bool, err error) {
	var is struct{ APIVersion, Kind string }
	if err := yaml.Unmarshal(document, &is); err != nil {
		return s, false, err
	}
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.apiVersion == is.APIVersion && k.name == is.Kind })
	if i < 0 {
		return s, false, nil
	}
	text, err := yaml.YAMLToJSON(document)
	if err == nil {
		err = utiljson.Unmarshal(text, &s.object)
	}
	of := unstructured.Unstructured{Object: s.object}
	fields, ok := s.object["spec"].(object)
	if err == nil && (!ok || s.object["metadata"] != nil && at(s.object, "metadata") == nil) {
		err = fmt.Errorf("%s without a spec, or with metadata that are no map", is.Kind)
	}
	if err != nil {
		return s, false, err
	}
	if s.Name = of.GetName(); s.Name == "" {
		s.Name = of.GetGenerateName()
	}
	s.Pods, s.Managed = 1, of.GetAnnotations()[ModelAnnotation] != ""
	pods, err := kinds[i].read(fields)
	if err == nil {
		err = pods.check()
	}
	if err != nil {
		s.Err = err
		return s, s.Managed || !errors.Is(err, errNoDevices), nil
	}
	s.pods = pods
	s.Pods, _ = pods.pods()
	r := pods.request()
	s.Job.Devices, s.Job.Host = r.Devices, r.Host
	if s.Managed {
		s.Err = c.managed(&s, of, r)
	}
	first := pods.sets[0]
	s.Command = append(append(s.Command, first.container.Command...), first.container.Args...)
	for _, label := range AcceleratorLabels {
		if s.Job.Accelerator == "" {
			s.Job.Accelerator = first.nodeSelector[label]
		}
	}
	return s, true, nil
}

// managed reads the annotations of a submission. Of a Job it demands what pacer schedule does.
func (c *Cluster) managed(s *Submission, of unstructured.Unstructured, r requested) error {
	var out live.Job
	var err error
	if of.GetKind() == "Job" {
		var j batch.Job
		if err = decode(s.object, &j); err == nil {
			out, err = c.jobOf(&j)
		}
	} else {
		err = c.annotated(&out, &of, r)
	}
	s.Job = out.Spec
	return err
}

// Set changes the numbers of pods and devices and the plan of an object. CPUs and memory change in proportion to the devices.
func (m *Manifest) Set(s *Submission, shape spec.Shape, plan spec.Plan) error {
	err := s.Err
	if s.pods != nil {
		pods, devices := len(shape.PerNode()), shape.Most()
		if err = s.pods.setPods(pods, devices); err == nil {
			s.pods.setResources(devices, s.Job.Host)
			child(s.object, "metadata", "annotations")[PlanAnnotation] = plan.String()
			err = s.pods.setPlan(plan.String())
		}
	}
	var text []byte
	if err == nil {
		text, err = yaml.Marshal(s.object)
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
