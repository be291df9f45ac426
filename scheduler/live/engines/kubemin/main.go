package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"go.etcd.io/etcd/server/v3/etcdmain"
	_ "k8s.io/client-go/plugin/pkg/client/auth" // clients of kubectl
	"k8s.io/component-base/cli"
	_ "k8s.io/component-base/metrics/prometheus/clientgo" // metrics of the components
	kubectl "k8s.io/kubectl/pkg/cmd"
	kubectlutil "k8s.io/kubectl/pkg/cmd/util"
	apiserver "k8s.io/kubernetes/cmd/kube-apiserver/app"
	kubescheduler "k8s.io/kubernetes/cmd/kube-scheduler/app"
)

const usage = "usage: kubemin up [DIR] | etcd | kube-apiserver | kube-scheduler | controllers KUBECONFIG | kubelet KUBECONFIG DIR | kubectl"

func main() {
	name := filepath.Base(os.Args[0])
	if name != "kubectl" && len(os.Args) > 1 {
		name = os.Args[1]
		os.Args = append([]string{name}, os.Args[2:]...)
	}
	switch name {
	case "etcd":
		etcdmain.Main(os.Args)
	case "kube-apiserver":
		os.Exit(cli.Run(apiserver.NewAPIServerCommand()))
	case "kube-scheduler":
		os.Exit(cli.Run(kubescheduler.NewSchedulerCommand()))
	case "kubectl":
		if err := cli.RunNoErrOutput(kubectl.NewDefaultKubectlCommand()); err != nil {
			kubectlutil.CheckErr(err)
		}
	case "up":
		if len(os.Args) == 1 {
			os.Args = append(os.Args, "")
		}
		run(1, func(ctx context.Context) error { return up(ctx, os.Args[1]) })
	case "controllers":
		run(1, func(ctx context.Context) error { return controllers(ctx, os.Args[1]) })
	case "kubelet":
		run(2, func(ctx context.Context) error { return kubelets(ctx, os.Args[1], os.Args[2]) })
	default:
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
}

// run calls f, which needs n arguments, with a context that ends with SIGTERM or SIGINT.
func run(n int, f func(context.Context) error) {
	if len(os.Args) != n+1 {
		fmt.Fprintln(os.Stderr, usage)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	if err := f(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "kubemin:", err)
		os.Exit(1)
	}
}
