package query

import "github.com/pacer-ml/pacer/perfmodel/spec"

// ResolveConfig returns the request for exactly c, and the model that answers it.
func (r *Resolver) ResolveConfig(c spec.Config) (found Resolved, err error) {
	plan := c.Plan.Normal()
	found.Model, found.SeqLen, found.Accelerator, found.Link, found.Framework = c.Model, c.SeqLen, c.Accelerator, c.Link, c.Framework
	found.Plan, found.Shape, found.GlobalBatch, found.Devices, found.PerNode = &plan, c.Shape, plan.GlobalBatch(), plan.Devices(), c.Shape.Most()
	if found.Card, err = r.BestCard(spec.Key{Model: c.Model.Name, Accelerator: c.Accelerator.Name}, Auto); err != nil {
		return found, err
	}
	found.Predictor, found.Family, err = r.Predictor(found.Card, Auto)
	return found, err
}

// Config returns the configuration of a request with a plan on a shape.
func (r *Resolved) Config() spec.Config {
	return spec.Config{Model: r.Model, SeqLen: r.SeqLen, Plan: r.Plan.Normal(), Accelerator: r.Accelerator, Shape: r.Shape, Link: r.Link, Framework: r.Framework}
}
