package access

import "testing"

func TestLoopback(t *testing.T) {
	for host, want := range map[string]bool{
		"localhost": true, "127.0.0.1": true, "127.9.9.9": true, "::1": true, "0:0:0:0:0:0:0:1": true, "::ffff:127.0.0.1": true,
		"": false, "10.0.0.1": false, "::ffff:10.0.0.1": false, "127.0.0.01": false, "127.1": false, "::1%lo": false, "[::1]": false, "localhost.example.com": false,
	} {
		if got := Loopback(host); got != want {
			t.Errorf("Loopback(%q) = %t, want %t", host, got, want)
		}
	}
}
