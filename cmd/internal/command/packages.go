package command

import (
	"regexp"
	"strings"
)

// errorPackages are the packages that begin their errors with their names, as libraries do;
// messages leave the names out. Packages named as their verb are missing. A test compares the list
// with the sources.
var errorPackages = strings.Fields(`
	access accuracy admission analytic answer api bayes catalog colocation compat compose datasets device drift
	executor experiment family goodput gp hook hostspeed huggingface hybrid kubejob kubernetes
	kubetest launch lbfgsb live livetest lp measured memory named nn nnls online optimus order
	perfmodel place planner policy profiler query recipe recording registry remote replay report
	rowfile rubick runner scheduler schedulertest server sim slurm slurmtest snapshot spec stack store study
	synthetic trainlog unfitted worker
`)

// packagePrefix matches the name of a package in an error, at the beginning of each of its lines.
var packagePrefix = regexp.MustCompile(`(?m)(^|: )(` + strings.Join(errorPackages, "|") + `): `)

// plain is the text of an error for people, without packages.
func plain(err error) string {
	text := err.Error()
	for packagePrefix.MatchString(text) { // one may follow another
		text = packagePrefix.ReplaceAllString(text, "$1")
	}
	return text
}
