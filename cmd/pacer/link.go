package main

import (
	"github.com/urfave/cli/v2"

	"github.com/pacer-ml/pacer/cmd/internal/fail"
	"github.com/pacer-ml/pacer/cmd/internal/query"
)

// interconnectFlags are the settings of --network, which replace a machine's interconnect.
func interconnectFlags() []cli.Flag {
	return []cli.Flag{
		&cli.Float64Flag{Name: "inter-node-gbps", Usage: "network of one node in Gbit/s, one direction, all NICs", DefaultText: "that of the usual node"},
		&cli.Float64Flag{Name: "intra-node-gbytes", Usage: "link between the devices of a node in GB/s per device, one direction", DefaultText: "that of the usual node"},
	}
}

// readLinkFlags returns the figures of an interconnect that were given.
func readLinkFlags(c *cli.Context) (l query.Link, err error) {
	for _, f := range []struct {
		name  string
		bytes float64 // per unit of the flag
		to    *float64
	}{{"inter-node-gbps", 1e9 / 8, &l.InterBps}, {"intra-node-gbytes", 1e9, &l.IntraBps}} {
		if !c.IsSet(f.name) {
			continue
		}
		v := c.Float64(f.name)
		if !(v > 0 && v < 1e9) {
			return l, fail.Usagef("%s: --%s %g is not positive", c.Command.Name, f.name, v)
		}
		*f.to = v * f.bytes
	}
	return l, nil
}
