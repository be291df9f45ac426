package profile

import (
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/kubejob"
	"github.com/pacer-ml/pacer/profiler/executor"
)

// clusters are those of --on, with the flags that they read.
var clusters = map[string]struct {
	flags []string
	open  func(c *cli.Context) (executor.Cluster, error)
}{
	"slurm":      {[]string{"gpus"}, func(*cli.Context) (executor.Cluster, error) { return executor.Slurm{}, nil }},
	"kubernetes": {[]string{"gpus", "pod-template", "kubeconfig", "namespace"}, kubejob.Open},
	"ssh":        {[]string{"hosts"}, openHosts},
}

// clusterOf returns the cluster of --on, nil without it.
func clusterOf(c *cli.Context) (executor.Cluster, error) {
	on := c.String("on")
	of, ok := clusters[on]
	if on != "" && !ok {
		return nil, fail.Usagef("%s: --on %q is no cluster, want slurm, kubernetes or ssh", c.Command.Name, on)
	}
	for _, name := range []string{"gpus", "hosts", "pod-template", "kubeconfig", "namespace"} {
		if c.IsSet(name) && !slices.Contains(of.flags, name) {
			return nil, fail.Usagef("%s: --%s is not for --on %q, see pacer profile run --help", c.Command.Name, name, on)
		}
	}
	if !ok {
		return nil, nil
	}
	return of.open(c)
}

// openHosts returns the cluster of --hosts. Python is that of this process.
func openHosts(c *cli.Context) (executor.Cluster, error) {
	var env []string
	if v, ok := os.LookupEnv("PACER_PYTHON"); ok {
		env = append(env, "PACER_PYTHON="+v)
	}
	var hosts []string
	for _, h := range c.StringSlice("hosts") {
		hosts = append(hosts, strings.TrimSpace(h))
	}
	s, err := executor.NewSSH(executor.SSHOptions{Hosts: hosts, Env: env})
	if err != nil {
		return nil, fail.Usagef("%s: --hosts: %w", c.Command.Name, err)
	}
	return s, nil
}
