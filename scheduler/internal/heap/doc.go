// Package heap is a binary heap of values of one type: event queues, job queues and
// searches by bound all use it.
//
// Start with heap.go.
package heap
