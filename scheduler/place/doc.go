// Package place chooses the nodes of a wanted shape. A placer never changes how many
// devices a job gets on each node. A picky one may decline, and a scheduler.Chooser may
// exclude layouts.
//
// Start with place.go (the registry and the common search), packed.go (the default) and
// topology.go (racks). Every placer has a file.
package place
