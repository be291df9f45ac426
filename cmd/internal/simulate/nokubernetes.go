//go:build nokubernetes

package simulate

import (
	"errors"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/profiler/executor"
)

func kubernetesFlags(string) []cli.Flag { return nil }

func kubernetesCluster(*cli.Context) (executor.Cluster, error) {
	return nil, errors.New("this pacer was built with the tag nokubernetes: --on kubernetes needs one built without it")
}
