package kubernetes

import (
	"fmt"
	"slices"

	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/pacer-ml/pacer/perfmodel/spec"
	"github.com/pacer-ml/pacer/scheduler/live"
)

// admittedSet are equal pods of a workload, as Kueue admits them.
type admittedSet struct {
	name        string
	count, most int // pods admitted, and submitted
	devices     int // of each
	flavor      string
	annotations map[string]string // of the pods
	host        spec.Host         // for each device
}

// admittedPods are the pods of a workload that have devices, all with equally many of one flavor.
type admittedPods []admittedSet

// reduced reports whether Kueue admitted fewer pods than were submitted.
func (a admittedPods) reduced() bool {
	return slices.ContainsFunc(a, func(s admittedSet) bool { return s.count < s.most })
}

// planned reports whether the pods have a plan.
func (a admittedPods) planned() bool {
	return slices.ContainsFunc(a, func(s admittedSet) bool { return s.annotations[PlanAnnotation] != "" })
}

// admittedSets returns the pods with devices of a workload with quota. Without any its error is errNoDevices.
func admittedSets(w *unstructured.Unstructured) (admittedPods, error) {
	var typed struct {
		Spec struct {
			PodSets []struct {
				Name     string
				Count    int
				Template core.PodTemplateSpec
			}
		}
		Status struct {
			Admission struct {
				PodSetAssignments []struct {
					Name    string
					Flavors map[core.ResourceName]string
					Count   *int
				}
			}
		}
	}
	if err := decode(w.Object, &typed); err != nil {
		return nil, err
	}
	var out admittedPods
	for i := range typed.Spec.PodSets {
		p := &typed.Spec.PodSets[i]
		index, resource, devices, err := container(&p.Template.Spec)
		if err == errNoDevices { //nolint:errorlint // it is never wrapped
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("pods %q: %w", p.Name, err)
		}
		set := admittedSet{name: p.Name, count: p.Count, most: p.Count, devices: devices, annotations: p.Template.Annotations,
			host: hostOf(p.Template.Spec.Containers[index].Resources.Requests, devices)}
		for _, a := range typed.Status.Admission.PodSetAssignments {
			if a.Name != p.Name {
				continue
			}
			set.flavor = a.Flavors[resource]
			if a.Count != nil {
				set.count = *a.Count
			}
		}
		switch {
		case set.flavor == "":
			return nil, fmt.Errorf("pods %q: no flavor of %s is assigned", p.Name, resource)
		case set.count < 1 || set.count > mostPods:
			return nil, fmt.Errorf("pods %q: there are %d, want 1 to %d", p.Name, set.count, mostPods)
		}
		out = append(out, set)
	}
	if len(out) == 0 {
		return nil, errNoDevices
	}
	for _, s := range out[1:] {
		if s.devices != out[0].devices || s.flavor != out[0].flavor {
			return nil, fmt.Errorf("pods %q have %d of %s, pods %q %d of %s, want equal ones", out[0].name, out[0].devices, out[0].flavor, s.name, s.devices, s.flavor)
		}
	}
	return out, nil
}

// admitted reads the request of a job with the pods that are admitted.
func (c *Cluster) admitted(job *unstructured.Unstructured, sets admittedPods) (spec.Job, error) {
	var out live.Job
	r := requested{Host: sets[0].host}
	for _, s := range sets {
		r.Devices += s.count * s.devices
	}
	err := c.annotated(&out, job, r)
	return out.Spec, err
}
