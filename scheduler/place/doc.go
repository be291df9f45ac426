// Package place chooses the nodes for a shape, the devices of a job per node.
//
// A placer never changes the devices per node. A picky placer may decline although the
// shape fits. A scheduler.Chooser may exclude shapes from a job's candidates.
//
// Start with place.go (the registry and the common search), packed.go (the default) and
// topology.go (racks). Every placer has its own file.
package place
