// Package paramserver holds policies for jobs that train with parameter servers, and
// what they are made of: Belief, the predicted speed by number of replicas and
// servers, and Packing, which puts replicas and servers on nodes.
//
// Start with drf.go, policy.go and packing.go.
package paramserver
