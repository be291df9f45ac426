package scheduling

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strings"
)

// Seeds of the benchmark. Options are chosen on TrainingSeeds; figures that are reported
// come from HeldOutSeeds.
const (
	TrainingSeeds = "1-20"
	HeldOutSeeds  = "1001-1020"
)

// DefaultPolicies run where no others are named. Pollux is not among them: its search takes several times the processor
// time of pacer.
const DefaultPolicies = "pacer,rubick,sia,optimus,elasticflow,synergy,themis,gavel-las,gavel-ftf,las,tiresias,gittins,fifo-backfill,srtf"

// clairvoyant are the policies that know true remaining times: srtf the recorded durations,
// optimus-oracle the remaining steps that optimus estimates. They are no rivals.
var clairvoyant = map[string]bool{"srtf": true, "optimus-oracle": true}

//go:embed cells/*.yaml
var cellFiles embed.FS

// BuiltinNames returns the names of the built-in sets of cells.
func BuiltinNames() []string {
	files, err := fs.Glob(cellFiles, "cells/*.yaml")
	if err != nil {
		panic(err) // the pattern is constant
	}
	for i, f := range files {
		files[i] = strings.TrimSuffix(path.Base(f), ".yaml")
	}
	return files
}

// Builtin returns a built-in set of cells, false if there is none of that name.
func Builtin(name string) (Set, bool) {
	text, err := cellFiles.ReadFile("cells/" + name + ".yaml")
	if err != nil {
		return Set{}, false
	}
	s, err := Read(name, text)
	if err != nil {
		panic(fmt.Sprintf("scheduling: %v", err)) // tests read every set
	}
	return s, true
}
