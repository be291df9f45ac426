package device

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pacer-ml/pacer/perfmodel/spec/spectest"
)

// TestNetworkBps: the rates of active InfiniBand ports add up; without any the fastest Ethernet device that is up counts.
func TestNetworkBps(t *testing.T) {
	sys := t.TempDir()
	write := func(path, text string) {
		t.Helper()
		path = filepath.Join(sys, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		spectest.WriteFile(t, path, []byte(text+"\n"), 0o644)
	}
	if got := networkBps(sys); got != 0 {
		t.Errorf("a machine without devices: %g, want 0", got)
	}
	ethernet := func(name, speed, state string, hardware bool) {
		write("class/net/"+name+"/speed", speed)
		write("class/net/"+name+"/operstate", state)
		if hardware {
			write("class/net/"+name+"/device/vendor", "0x8086")
		}
	}
	ethernet("lo", "-1", "unknown", false)
	ethernet("docker0", "400000", "up", false)
	ethernet("eth0", "10000", "up", true)
	ethernet("eth1", "25000", "up", true)
	ethernet("eth2", "100000", "down", true)
	if got, want := networkBps(sys), 25e9/8; got != want {
		t.Errorf("Ethernet: %g, want %g", got, want)
	}
	card := func(name, state, rate string) {
		port := "class/infiniband/" + name + "/ports/1/"
		write("class/infiniband/"+name+"/fw_ver", "28.39")
		write(port+"state", state)
		write(port+"phys_state", "5: LinkUp")
		write(port+"rate", rate)
		write(port+"link_layer", "InfiniBand")
		if err := os.MkdirAll(filepath.Join(sys, port, "counters"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	card("mlx5_0", "4: ACTIVE", "400 Gb/sec (4X NDR)")
	card("mlx5_1", "4: ACTIVE", "400 Gb/sec (4X NDR)")
	card("mlx5_2", "1: DOWN", "400 Gb/sec (4X NDR)")
	if got, want := networkBps(sys), 2*400e9/8; got != want {
		t.Errorf("InfiniBand: %g, want %g", got, want)
	}
}
