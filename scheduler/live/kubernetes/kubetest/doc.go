// Package kubetest runs a real Kubernetes for tests: etcd, API server, scheduler and the
// controller of Jobs, built by make engines, with nodes and kubelets that are not real.
//
// Start with cluster.go.
package kubetest
