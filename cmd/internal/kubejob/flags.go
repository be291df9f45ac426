//go:build !nokubernetes

package kubejob

import (
	"fmt"

	"github.com/urfave/cli/v2"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/profiler/executor"
)

// Flags returns the flags of Open.
func Flags(category string) []cli.Flag {
	return []cli.Flag{
		&cli.StringFlag{Name: "pod-template", Usage: "run pods of Kubernetes as `FILE` says, a YAML with metadata and spec of a pod: its first container has pacer and the shared directories at the paths of this machine", Category: category},
		&cli.StringFlag{Name: "program", Usage: "run pacer at `PATH` of the nodes, the same build", DefaultText: "this one", Category: category},
		&cli.StringFlag{Name: "kubeconfig", Usage: "reach Kubernetes by `FILE`", DefaultText: "$KUBECONFIG, else ~/.kube/config, else the service account of the pod", Category: category},
		&cli.StringFlag{Name: "namespace", Usage: "submit to namespace `NAME` of Kubernetes", DefaultText: "that of the kubeconfig", Category: category},
	}
}

// Open returns the cluster of the flags of c.
func Open(c *cli.Context) (executor.Cluster, error) {
	if c.String("pod-template") == "" {
		return nil, fail.Usagef("--on kubernetes needs --pod-template, with the image and the volumes of the pods")
	}
	template, err := ReadTemplate(c.String("pod-template"))
	if err != nil {
		return nil, err
	}
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.String("kubeconfig")
	loader := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, nil)
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("no cluster of Kubernetes: %w", err)
	}
	config.UserAgent = "pacer/" + c.App.Version
	namespace := c.String("namespace")
	if namespace == "" {
		if namespace, _, err = loader.Namespace(); err != nil {
			return nil, fmt.Errorf("no namespace of Kubernetes: %w", err)
		}
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	return Cluster{Client: client, Namespace: namespace, Template: template}, nil
}
