package main

import (
	"bufio"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// usage is the processor time used so far.
type usage struct{ server, client time.Duration }

// used returns the processor time of the server at address, by its metrics, and of
// this process.
func used(address string) (usage, error) {
	server, err := serverTime(address)
	if err != nil {
		return usage{}, err
	}
	own, err := ownTime()
	return usage{server, own}, err
}

// ownTime returns the processor time of this process.
func ownTime() (time.Duration, error) {
	var own syscall.Rusage
	err := syscall.Getrusage(syscall.RUSAGE_SELF, &own)
	return time.Duration(own.Utime.Nano() + own.Stime.Nano()), err
}

func serverTime(address string) (time.Duration, error) {
	res, err := http.Get("http://" + address + "/metrics")
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	for sc := bufio.NewScanner(res.Body); sc.Scan(); {
		if v, ok := strings.CutPrefix(sc.Text(), "process_cpu_seconds_total "); ok {
			sec, err := strconv.ParseFloat(v, 64)
			return time.Duration(sec * float64(time.Second)), err
		}
	}
	return 0, fmt.Errorf("%s/metrics has no process_cpu_seconds_total", address)
}
