package schedulertest

import (
	"fmt"
	"time"

	"pgregory.net/rapid"

	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// paramServerBatch is the global batch of jobs with parameter servers. Few numbers of replicas
// divide it.
const paramServerBatch = 12

// DrawParamServerCase draws a case with parameter servers: a cluster of nodes with few CPUs, a
// model that trains on devices and one that trains on CPUs, with random speeds, and a
// workload in which every job can run.
func DrawParamServerCase(t *rapid.T) Case {
	c := Case{World: &World{}}
	worker := rapid.Int64Range(1, 2).Draw(t, "CPUs of a replica")
	server := rapid.Int64Range(1, 3).Draw(t, "CPUs of a server")
	for i := range rapid.IntRange(1, 2).Draw(t, "groups") {
		c.Cluster.Groups = append(c.Cluster.Groups, spec.NodeGroup{
			Count:       rapid.IntRange(1, 4).Draw(t, "nodes"),
			Devices:     rapid.SampledFrom([]int{1, 2, 4}).Draw(t, "devices"),
			Accelerator: spec.Accelerator{Name: string(rune('x' + i))},
			CPUs:        int(worker+server) + rapid.IntRange(0, 6).Draw(t, "more CPUs"),
		})
	}
	c.StartCost = rapid.SampledFrom([]time.Duration{0, time.Minute}).Draw(t, "start cost")
	c.Round = rapid.SampledFrom([]time.Duration{0, 0, 5 * time.Minute}).Draw(t, "round")
	for _, model := range []string{"a", "b"} {
		drawParamServerSpeeds(t, c, model)
	}
	for i := range rapid.IntRange(1, 12).Draw(t, "jobs") {
		j := spec.Job{
			ID: spec.JobID(fmt.Sprintf("j%02d", i)), Model: spec.Model{Name: "a"}, Devices: 1, GlobalBatch: paramServerBatch,
			Host: spec.Host{MilliCPUs: 1000 * worker}, ServerHost: spec.Host{MilliCPUs: 1000 * server},
			Submit: time.Duration(rapid.IntRange(0, 20).Draw(t, "submit")) * time.Minute,
			Steps:  rapid.Float64Range(1, 5000).Draw(t, "steps"),
		}
		if rapid.Bool().Draw(t, "on CPUs") {
			j.Model.Name, j.Devices = "b", 0
		}
		if rapid.Bool().Draw(t, "picky") {
			j.Accelerator = c.Cluster.Groups[0].Accelerator.Name
		}
		j.Plan = j.ParamServerPlan(1, 1)
		c.Jobs = append(c.Jobs, j)
	}
	return c
}

// drawParamServerSpeeds draws speeds of a model for all numbers of replicas and servers up to
// random bounds.
func drawParamServerSpeeds(t *rapid.T, c Case, model string) {
	j := spec.Job{GlobalBatch: paramServerBatch}
	for _, g := range c.Cluster.Groups {
		replicas, servers := rapid.IntRange(1, 5).Draw(t, "replicas"), rapid.IntRange(1, 4).Draw(t, "servers")
		for r := 1; r <= replicas; r++ {
			for s := 1; s <= servers; s++ {
				c.World.Add(model, g.Accelerator.Name, j.ParamServerPlan(r, s), spec.Shape{}, rapid.Float64Range(0.1, 10).Draw(t, "rate"))
			}
		}
	}
}
