//go:build nokubernetes

package schedule

import (
	"errors"

	"github.com/urfave/cli/v2"
)

// The tag nokubernetes leaves out the client of Kubernetes, which is half of the binary: for machines that measure.

func kubernetesFlags() []cli.Flag { return nil }

func kubernetesEngine(*cli.Context) (engine, error) {
	return engine{}, errors.New("this pacer was built with the tag nokubernetes: --on kubernetes needs one built without it")
}

func answerKueue(*cli.Context) error {
	return errors.New("schedule: this pacer was built with the tag nokubernetes: --on kueue needs one built without it")
}

func kubectlStdin([]string) bool { return false }

func readKubectl(*cli.Context, *call) (*submission, error) {
	return nil, errors.New("advise: this pacer was built with the tag nokubernetes, and reads no manifests")
}
