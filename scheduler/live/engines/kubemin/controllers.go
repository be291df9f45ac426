package main

import (
	"context"
	"time"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/kubernetes/pkg/controller/podgc"
)

const (
	workers = 20
	resync  = 12 * time.Hour
)

func clientConfig(path string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err == nil {
		config.QPS, config.Burst = 1000, 2000
	}
	return config, err
}

// controllers runs those of Jobs, of objects without an owner and of pods without a node.
func controllers(ctx context.Context, kubeconfig string) error {
	config, err := clientConfig(kubeconfig)
	if err != nil {
		return err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	meta, err := metadata.NewForConfig(config)
	if err != nil {
		return err
	}
	types, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return err
	}
	shared := informers.NewSharedInformerFactory(client, resync)
	pods := shared.Core().V1().Pods()
	jobs, err := job.NewController(ctx, client, pods, shared.Batch().V1().Jobs(), nil, nil)
	if err != nil {
		return err
	}
	orphans := podgc.NewPodGCInternal(ctx, client, pods, shared.Core().V1().Nodes(), 0, time.Second, 2*time.Second)

	metas := metadatainformer.NewSharedInformerFactory(meta, resync)
	started := make(chan struct{})
	gc, err := garbagecollector.NewGarbageCollector(ctx, client, meta,
		restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(types)),
		garbagecollector.DefaultIgnoredResources(), informerfactory.NewInformerFactory(shared, metas), started)
	if err != nil {
		return err
	}
	shared.Start(ctx.Done())
	metas.Start(ctx.Done())
	close(started)
	go orphans.Run(ctx)
	go gc.Run(ctx, workers, time.Second)
	go gc.Sync(ctx, types, 2*time.Second)
	jobs.Run(ctx, workers)
	return nil
}
