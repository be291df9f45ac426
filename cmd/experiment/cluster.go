package experiment

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/pacer-ml/pacer/datasets/catalog"
	"github.com/pacer-ml/pacer/perfmodel/spec"
)

// cluster returns the cluster of o: given, by its spec, or from a YAML file.
func (o *Options) cluster() (spec.Cluster, error) {
	if len(o.Given.Cluster.Groups) > 0 {
		return o.Given.Cluster, nil
	}
	ext := strings.ToLower(filepath.Ext(o.Cluster))
	if ext != ".yaml" && ext != ".yml" {
		cl, err := catalog.Cluster(o.Cluster)
		var unknown *catalog.UnknownError
		if err != nil && !errors.As(err, &unknown) {
			return cl, invalidBecause("cluster", o.Cluster, err)
		}
		return cl, err
	}
	f, err := os.Open(o.Cluster)
	if err != nil {
		return spec.Cluster{}, err
	}
	defer f.Close()
	return catalog.ClusterYAML(f, o.Cluster)
}

// ClusterText describes a cluster as "8 x 8 x A800, ...".
func ClusterText(cl spec.Cluster) string {
	var parts []string
	for _, g := range cl.Groups {
		parts = append(parts, fmt.Sprintf("%d x %d x %s", g.Count, g.Devices, g.Accelerator.Name))
	}
	return strings.Join(parts, ", ")
}
