package device

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	prom "github.com/prometheus/procfs"

	"github.com/pacer-ml/pacer/profiler/internal/procfs"
)

// A controlGroup lists the directories of a version 2 control group and its ancestors, innermost first
// (kernel.org, admin-guide/cgroup-v2). It is empty on systems without control groups.
type controlGroup []string

// ownControlGroup returns the group of this process. root is "/".
func ownControlGroup(root string) controlGroup {
	fs, err := procfs.FS(root)
	if err != nil {
		return nil
	}
	self, err := fs.Self()
	if err != nil {
		return nil
	}
	groups, _ := self.Cgroups()
	i := slices.IndexFunc(groups, func(g prom.Cgroup) bool { return g.HierarchyID == 0 })
	if i < 0 {
		return nil
	}
	var g controlGroup
	mount := filepath.Join(root, "sys/fs/cgroup")
	for path := filepath.Clean("/" + groups[i].Path); path != "/"; path = filepath.Dir(path) {
		g = append(g, filepath.Join(mount, path))
	}
	return append(g, mount)
}

// cpus returns the lowest CPU quota in CPUs, false without a quota.
func (g controlGroup) cpus() (least float64, ok bool) {
	for _, dir := range g {
		f := strings.Fields(readText(filepath.Join(dir, "cpu.max")))
		if len(f) != 2 {
			continue
		}
		quota, err1 := strconv.ParseFloat(f[0], 64)
		period, err2 := strconv.ParseFloat(f[1], 64)
		if err1 == nil && err2 == nil && quota > 0 && period > 0 && (!ok || quota/period < least) {
			least, ok = quota/period, true
		}
	}
	return least, ok
}

// memory returns the lowest memory limit in bytes, false without a limit.
func (g controlGroup) memory() (least float64, ok bool) {
	for _, dir := range g {
		v, err := strconv.ParseFloat(strings.TrimSpace(readText(filepath.Join(dir, "memory.max"))), 64)
		if err == nil && v > 0 && (!ok || v < least) {
			least, ok = v, true
		}
	}
	return least, ok
}

// throttled returns the time that CPU quotas have delayed the group since its creation, false without a quota.
func (g controlGroup) throttled() (total time.Duration, ok bool) {
	for _, dir := range g {
		for line := range strings.Lines(readText(filepath.Join(dir, "cpu.stat"))) {
			if v, found := strings.CutPrefix(line, "throttled_usec "); found {
				us, _ := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
				total, ok = total+time.Duration(us)*time.Microsecond, true
			}
		}
	}
	return total, ok
}

// readText returns the text of a file, "" if it cannot be read.
func readText(path string) string {
	text, _ := os.ReadFile(path)
	return string(text)
}
