package campaign

import (
	"cmp"
	"context"
	"strings"
	"time"

	"github.com/pacer-ml/pacer/profiler"
	"github.com/pacer-ml/pacer/profiler/device"
	"github.com/pacer-ml/pacer/profiler/executor"
)

// busyTime is the least time that the devices are watched before the first point.
const busyTime = time.Second

// clear ends what killed runs left on this machine, and starts to watch the devices of s. The caller may use them, then
// calls ready, which adds a note to s if other processes were using them. Dry, nothing is ended or watched.
func (o *Options) clear(ctx context.Context, s *Setup, watch *device.Watcher) (ready func(), err error) {
	if o.Dry {
		return func() {}, nil
	}
	killed, err := executor.Sweep(ctx)
	if len(killed) > 0 {
		s.Notes = append(s.Notes, "ended the processes that a killed run left: "+strings.Join(killed, ", "))
	}
	if err != nil {
		return nil, err
	}
	if o.job { // a job has no time to wait: its point is watched anyway
		return func() {}, nil
	}
	began, stop := time.Now(), watch.Watch(s.Machine.Devices, nil)
	return func() {
		select {
		case <-ctx.Done():
		case <-time.After(busyTime - time.Since(began)):
		}
		if text := busy(stop(time.Time{}, time.Time{})); text != "" {
			s.Notes = append(s.Notes, text)
		}
	}, nil
}

// busy says that other processes use the devices, "" if they do not.
func busy(w device.Watched) string {
	why := w.Env[profiler.EnvShared]
	for warning := range strings.SplitSeq(w.Env[profiler.EnvWarning], "; ") {
		if strings.HasPrefix(warning, "other processes") {
			why = cmp.Or(why, warning)
		}
	}
	switch {
	case why == "":
		return ""
	case w.Doubt != "":
		why += "; points measured meanwhile are in doubt"
	}
	return "this machine is busy: " + why
}
