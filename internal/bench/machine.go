package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// describeMachine says where the figures come from, as far as /proc tells.
func describeMachine() string {
	cpu := "unknown processor"
	if info, err := os.ReadFile("/proc/cpuinfo"); err == nil {
		for line := range strings.Lines(string(info)) {
			if name, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(name) == "model name" {
				cpu = strings.TrimSpace(value)
				break
			}
		}
	}
	kernel := ""
	if release, err := os.ReadFile("/proc/sys/kernel/osrelease"); err == nil {
		version, _, _ := strings.Cut(strings.TrimSpace(string(release)), "-") // the rest names who built it
		kernel = " " + version
	}
	return fmt.Sprintf("%s, GOMAXPROCS %d, %s, %s/%s%s",
		cpu, runtime.GOMAXPROCS(0), runtime.Version(), runtime.GOOS, runtime.GOARCH, kernel)
}

// busy tells whether others were at work before the run, which then says little.
func busy(loadBefore string) bool {
	load, err := strconv.ParseFloat(loadBefore, 64)
	return err == nil && load > float64(runtime.GOMAXPROCS(0))/2
}

// loadAverage is that of the last minute.
func loadAverage() string {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	one, _, _ := strings.Cut(string(text), " ")
	return one
}

// family is a process and those that it started, as far as /proc tells. A peer's
// server may be a child of its launcher.
func family(pid int) []int {
	all := []int{pid}
	for i := 0; i < len(all); i++ {
		lists, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", all[i])) // by the thread that started them
		for _, list := range lists {
			text, err := os.ReadFile(list)
			if err != nil {
				continue // it has ended
			}
			for child := range strings.FieldsSeq(string(text)) {
				if n, err := strconv.Atoi(child); err == nil && !slices.Contains(all, n) {
					all = append(all, n)
				}
			}
		}
	}
	return all
}

// cpuTime is what a process and those that it started have used so far, of all
// their threads; 0 where there is no /proc.
func cpuTime(pid int) time.Duration {
	var sum time.Duration
	for _, p := range family(pid) {
		sum += ownCPUTime(p)
	}
	return sum
}

func ownCPUTime(pid int) time.Duration {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The second field is a name in brackets, with anything in it. After it
	// utime and stime are the 12th and 13th, in ticks of which Linux shows
	// 100 a second on every machine.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 13 {
		return 0
	}
	user, err1 := strconv.ParseInt(string(fields[11]), 10, 64)
	system, err2 := strconv.ParseInt(string(fields[12]), 10, 64)
	if err1 != nil || err2 != nil {
		return 0
	}
	return time.Duration(user+system) * (time.Second / 100)
}

// residentMemory is what a process and those that it started have in memory, in
// bytes; 0 where there is no /proc.
func residentMemory(pid int) int64 { return memoryOf(pid, "VmRSS:") }

// peakMemory is the most that each of them has had.
func peakMemory(pid int) int64 { return memoryOf(pid, "VmHWM:") }

func memoryOf(pid int, field string) int64 {
	var sum int64
	for _, p := range family(pid) {
		sum += ownMemory(p, field)
	}
	return sum
}

func ownMemory(pid int, field string) int64 {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(status)) {
		if size, ok := strings.CutPrefix(line, field); ok {
			kilobytes, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(size), "kB")), 10, 64)
			if err != nil {
				return 0
			}
			return kilobytes << 10
		}
	}
	return 0
}
