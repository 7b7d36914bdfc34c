package bridge

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// portHolder finds the process that listens on a TCP port by its socket's
// inode. It returns "" when that is another user's, or gone.
func portHolder(port int) string {
	inodes := make(map[string]bool)
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		listeningInodes(table, port, inodes)
	}
	fds, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, fd := range fds {
		link, err := os.Readlink(fd)
		if err != nil || !inodes[link] {
			continue
		}
		pid := strings.Split(fd, "/")[2]
		name, err := os.ReadFile("/proc/" + pid + "/comm")
		if err != nil {
			continue
		}
		return fmt.Sprintf("%s (pid %s)", clean(strings.TrimSpace(string(name))), pid)
	}
	return ""
}

// listeningInodes reads one of the kernel's socket tables (proc_net_tcp(5)).
func listeningInodes(table string, port int, into map[string]bool) {
	f, err := os.Open(table)
	if err != nil {
		return
	}
	defer f.Close()
	const stateListen = "0A"
	for lines := bufio.NewScanner(f); lines.Scan(); {
		field := strings.Fields(lines.Text())
		if len(field) < 10 || field[3] != stateListen {
			continue
		}
		_, hex, _ := strings.Cut(field[1], ":")
		if p, err := strconv.ParseUint(hex, 16, 16); err == nil && int(p) == port {
			into["socket:["+field[9]+"]"] = true
		}
	}
}
