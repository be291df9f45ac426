//go:build !nokubernetes

package schedule

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/urfave/cli/v2"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/dynamic"
	kube "k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/scheduler/live/kubernetes"
)

func kubernetesFlags() []cli.Flag {
	const category = "Cluster"
	return []cli.Flag{
		&cli.StringFlag{Name: "kubeconfig", Usage: "reach Kubernetes by `FILE`", DefaultText: "$KUBECONFIG, else ~/.kube/config, else the service account of the pod", Category: category},
		&cli.StringFlag{Name: "context", Usage: "use context `NAME` of the kubeconfig", DefaultText: "its current one", Category: category},
		&cli.StringFlag{Name: "namespace", Usage: "schedule the Jobs, or answer for the workloads, of namespace `NAME`", DefaultText: "all", Category: category},
		&cli.StringFlag{Name: "lease", Usage: "let one pacer at a time write, by the lease `NAMESPACE/NAME`", DefaultText: "pacer, or pacer-admission for kueue, in the namespace of the pod, else in default", Category: category},
		&cli.DurationFlag{Name: "lease-duration", Value: 15 * time.Second, Usage: "let another pacer take the lease `TIME` after the last sign of its holder, at least 1s", Category: category},
	}
}

// kubernetesEngine returns the engine of the cluster that the flags name, once it has read it.
func kubernetesEngine(c *cli.Context) (engine, error) {
	config, err := kubeConfig(c)
	if err != nil {
		return engine{}, err
	}
	client, err := kube.NewForConfig(config)
	if err != nil {
		return engine{}, err
	}
	lease, leaseClient, err := leaseOf(c, config, "pacer")
	if err != nil {
		return engine{}, err
	}
	o := kubernetes.Options{Namespace: c.String("namespace"), ReadOnly: c.Bool("dry-run") || c.Bool("advise"), Model: catalog.Model, NodeType: nodeType}
	if c.Bool("advise") {
		if o.Advised, err = dynamic.NewForConfig(config); err != nil {
			return engine{}, err
		}
	}
	cluster, err := kubernetes.New(client, o)
	if err != nil {
		return engine{}, err
	}
	if o.ReadOnly {
		return engine{Cluster: cluster}, cluster.Run(c.Context)
	}
	lead := func(c *cli.Context, run func(context.Context) error) error {
		return leadByLease(c.Context, c.App.ErrWriter, leaseClient, lease, c.Bool("once"), func(ctx context.Context) error {
			// What was read before this process had the lease may lack writes of the last holder.
			if err := cluster.Run(ctx); err != nil || ctx.Err() != nil {
				return err
			}
			defer cluster.Finish()
			return run(ctx)
		})
	}
	return engine{Cluster: cluster, lead: lead, settle: cluster.Settle}, cluster.Check(c.Context)
}

// kubeConfig returns the connection to the cluster. Requests are limited by the server.
func kubeConfig(c *cli.Context) (*rest.Config, error) {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.ExplicitPath = c.String("kubeconfig")
	overrides := &clientcmd.ConfigOverrides{CurrentContext: c.String("context")}
	config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, overrides).ClientConfig()
	if err != nil {
		return nil, fmt.Errorf("no cluster of Kubernetes: %w", err)
	}
	config.QPS = -1
	config.ContentType, config.AcceptContentTypes = runtime.ContentTypeProtobuf, runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON
	config.UserAgent = "pacer/" + c.App.Version
	return config, nil
}

// leaseOf reads --lease, which is of some name by default, and returns a client for it.
func leaseOf(c *cli.Context, config *rest.Config, name string) (kubernetes.Lease, kube.Interface, error) {
	duration := c.Duration("lease-duration")
	if duration < time.Second {
		return kubernetes.Lease{}, nil, fail.Usagef("schedule: --lease-duration %v, want at least 1s", duration)
	}
	config = rest.CopyConfig(config)
	config.Timeout = duration / 3 // a server that hangs gets another request before the lease ends
	client, err := kube.NewForConfig(config)
	if err != nil {
		return kubernetes.Lease{}, nil, err
	}
	host, err := os.Hostname()
	if err != nil {
		return kubernetes.Lease{}, nil, err
	}
	l := kubernetes.Lease{Namespace: core.NamespaceDefault, Name: name, Duration: duration, Identity: fmt.Sprintf("%s-%d-%d", host, os.Getpid(), time.Now().UnixNano())}
	if given := c.String("lease"); given != "" {
		var ok bool
		if l.Namespace, l.Name, ok = strings.Cut(given, "/"); !ok || l.Namespace == "" || l.Name == "" {
			return l, nil, fail.Usagef("schedule: --lease %q, want NAMESPACE/NAME", given)
		}
	} else if text, err := os.ReadFile("/var/run/secrets/kubernetes.io/serviceaccount/namespace"); err == nil {
		l.Namespace = strings.TrimSpace(string(text))
	}
	return l, client, nil
}

// leadByLease calls run while this process holds a lease. With once it does not wait for another
// holder.
func leadByLease(ctx context.Context, log io.Writer, client kube.Interface, l kubernetes.Lease, once bool, run func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	held := errors.New("another pacer holds the lease")
	waiting := func(holder string) {
		if once {
			cancel(fmt.Errorf("%w %s/%s: %s", held, l.Namespace, l.Name, holder))
			return
		}
		fmt.Fprintf(log, "%s holds the lease %s/%s; waiting for it\n", holder, l.Namespace, l.Name)
	}
	var failed error
	err := kubernetes.Lead(ctx, client, l, waiting, func(ctx context.Context) { failed = run(ctx) })
	if cause := context.Cause(ctx); errors.Is(cause, held) {
		err = errors.Join(err, cause)
	}
	if err = errors.Join(failed, err); err != nil {
		return fmt.Errorf("schedule: %w", err)
	}
	return nil
}
