//go:build cgo && linux

package device

import (
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// nvlink describes the NVLinks of h, nil if there are none. It looks up peers in gpus.
func (h *gpuHandle) nvlink(gpus []GPU) *NVLink {
	var n *NVLink
	for link := range nvml.NVLINK_MAX_LINKS {
		state := call(h, "nvmlDeviceGetNvLinkState", func() (nvml.EnableState, nvml.Return) { return h.GetNvLinkState(link) })
		if state == nil {
			continue // it has fewer links
		}
		if n == nil {
			n = &NVLink{}
		}
		if *state != nvml.FEATURE_ENABLED {
			continue
		}
		n.ActiveLinks++
		version := valueOf(call(h, "nvmlDeviceGetNvLinkVersion", func() (uint32, nvml.Return) { return h.GetNvLinkVersion(link) }))
		rate := nvlinkRates[int(version)]
		n.Version = rate.name
		n.Bps += rate.bps
		n.join(h.peer(link, gpus))
	}
	return n
}

// join adds a link to a peer.
func (n *NVLink) join(to NVLinkPeer) {
	i := slices.IndexFunc(n.Peers, func(p NVLinkPeer) bool {
		same := p.Device == nil && to.Device == nil || p.Device != nil && to.Device != nil && *p.Device == *to.Device
		return same && p.Switch == to.Switch && p.BusID == to.BusID
	})
	if i < 0 {
		n.Peers = append(n.Peers, to)
		i = len(n.Peers) - 1
	}
	n.Peers[i].Links++
}

// peer returns the other end of a link.
func (h *gpuHandle) peer(link int, gpus []GPU) NVLinkPeer {
	kind := call(h, "nvmlDeviceGetNvLinkRemoteDeviceType", func() (nvml.IntNvLinkDeviceType, nvml.Return) {
		return h.GetNvLinkRemoteDeviceType(link)
	})
	if kind != nil && *kind == nvml.NVLINK_DEVICE_TYPE_SWITCH {
		return NVLinkPeer{Switch: true}
	}
	pci := call(h, "nvmlDeviceGetNvLinkRemotePciInfo", func() (nvml.PciInfo, nvml.Return) { return h.GetNvLinkRemotePciInfo(link) })
	if pci == nil {
		return NVLinkPeer{}
	}
	bus := busID(*pci)
	for _, g := range gpus {
		if bus != "" && g.PCIBusID == bus {
			return NVLinkPeer{Device: &g.Index}
		}
	}
	return NVLinkPeer{BusID: bus}
}
