// Command kubemin runs the real control plane of Kubernetes on one machine, without
// containers, for tests: etcd, kube-apiserver, kube-scheduler, the controllers of Jobs and
// of garbage collection, and a fake kubelet for every node.
//
//	kubemin up DIR        # start all of them, with DIR/kubeconfig; end by SIGTERM
//	kubemin kubectl ...   # so does a link named kubectl
//
// The fake kubelet makes every pod ready at once. A pod with the annotation
// kubemin/run: "true" runs the command of its first container as a process of this machine.
//
// Start with up.go, then kubelet.go.
package main
