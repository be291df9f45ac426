package device

import (
	"os"
	"path/filepath"

	"github.com/prometheus/procfs/sysfs"
)

// activePort is the state of an InfiniBand or RoCE port that carries traffic (linux, include/rdma/ib_verbs.h).
const activePort = 4

// NetworkBps returns the rate of the network of this machine, all NICs together, in bytes/s of one direction: that of its
// active InfiniBand and RoCE ports, or without any of its fastest Ethernet device. 0 = unknown.
func NetworkBps() float64 { return networkBps("/sys") }

func networkBps(sys string) (bps float64) {
	fs, err := sysfs.NewFS(sys)
	if err != nil {
		return 0
	}
	cards, _ := fs.InfiniBandClass() // without any it is an error
	for _, card := range cards {
		for _, port := range card.Ports {
			if port.StateID == activePort {
				bps += float64(port.Rate)
			}
		}
	}
	if bps > 0 {
		return bps
	}
	names, _ := fs.NetClassDevices()
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(sys, "class/net", name, "device")); err != nil {
			continue // not hardware
		}
		if d, err := fs.NetClassByIface(name); err == nil && d.OperState == "up" && d.Speed != nil {
			bps = max(bps, float64(*d.Speed)*1e6/8)
		}
	}
	return bps
}
