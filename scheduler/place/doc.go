// Package place chooses the nodes of a wanted shape. Placers never change how
// many devices a job gets on each node, only which nodes these are. A picky one may decline, a scheduler.Chooser may rule layouts out.
//
// Start with place.go for the registry; one file per placer.
package place
