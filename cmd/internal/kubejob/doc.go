// Package kubejob runs commands as Jobs of Kubernetes: an executor.Cluster.
//
// Start with kubejob.go.
package kubejob
