//go:build cgo && linux

package device

import "github.com/NVIDIA/go-nvml/pkg/nvml"

// watchEvents subscribes to the Xid events of the devices, as far as they have
// them and let us.
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

// xids takes the events that are waiting, without waiting for any.
func (s *nvmlSource) xids() []xid {
	if s.events == nil {
		return nil
	}
	var out []xid
	for len(out) < kept {
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

// position returns which of the devices an event is of, -1 if it does not say.
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
