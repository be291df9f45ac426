//go:build cgo && linux

package device

import "github.com/NVIDIA/go-nvml/pkg/nvml"

// watchEvents subscribes to the Xid events of the devices that support and permit it.
func (s *nvmlSource) watchEvents() {
	for _, symbol := range []string{"nvmlEventSetCreate", "nvmlEventSetWait_v2", "nvmlDeviceRegisterEvents", "nvmlDeviceGetSupportedEventTypes"} {
		if !s.d.has(symbol) {
			return
		}
	}
	set, ret := s.d.EventSetCreate()
	if ret != nvml.SUCCESS {
		return
	}
	registered := 0
	for _, v := range s.devices {
		if v.fault != "" {
			continue
		}
		kinds, ret := v.GetSupportedEventTypes()
		if ret != nvml.SUCCESS || kinds&nvml.EventTypeXidCriticalError == 0 {
			continue
		}
		if v.RegisterEvents(nvml.EventTypeXidCriticalError, set) == nvml.SUCCESS {
			registered++
		}
	}
	if registered == 0 {
		_ = set.Free()
		return
	}
	s.events = set
}

// xids returns the pending events without blocking.
func (s *nvmlSource) xids() []xid {
	if s.events == nil {
		return nil
	}
	var out []xid
	for len(out) < maxKept {
		e, ret := s.events.Wait(0)
		if ret != nvml.SUCCESS {
			break
		}
		if e.EventType&nvml.EventTypeXidCriticalError == 0 {
			continue
		}
		out = append(out, xid{s.position(e.Device), e.EventData})
	}
	return out
}

// position returns the position of the device of an event, -1 if unknown.
func (s *nvmlSource) position(of nvml.Device) int {
	if of == nil {
		return -1
	}
	uuid, ret := of.GetUUID()
	if i, ok := s.byUUID[uuid]; ok && ret == nvml.SUCCESS {
		return i
	}
	return -1
}
