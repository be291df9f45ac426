//go:build nokubernetes

package kubejob

import (
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/profiler/executor"
)

// Flags returns the flags of Open.
func Flags(string) []cli.Flag { return nil }

// Open returns an error.
func Open(*cli.Context) (executor.Cluster, error) {
	return nil, errors.New("this pacer was built with the tag nokubernetes: --on kubernetes needs one built without it")
}
