// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package memory

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"syscall"
)

// releaseProgram unmaps the pages of the program's own file: most of what a sidecar has resident is code and tables
// that only its start, or a hub, needs. The kernel maps a page again, from the page cache and in microseconds, when it
// is used.
func releaseProgram() error {
	self, err := os.Readlink("/proc/self/exe")
	if err != nil {
		return err
	}
	maps, err := os.Open("/proc/self/maps")
	if err != nil {
		return err
	}
	defer func() { _ = maps.Close() }()
	lines := bufio.NewScanner(maps)
	for lines.Scan() {
		var start, end uintptr
		var permissions string
		if !strings.HasSuffix(lines.Text(), " "+self) {
			continue
		}
		if _, err := fmt.Sscanf(lines.Text(), "%x-%x %s", &start, &end, &permissions); err != nil {
			return fmt.Errorf("read /proc/self/maps: %w", err)
		}
		if strings.Contains(permissions, "w") {
			continue // what was written would be lost
		}
		if _, _, errno := syscall.Syscall(syscall.SYS_MADVISE, start, end-start, syscall.MADV_DONTNEED); errno != 0 {
			return fmt.Errorf("madvise: %w", errno)
		}
	}
	return lines.Err()
}

// resident returns the resident memory of the process, in bytes; 0 if it is not known.
func resident() int64 {
	var size, pages int64
	statm, err := os.ReadFile("/proc/self/statm")
	if err == nil {
		_, err = fmt.Sscan(string(statm), &size, &pages)
	}
	if err != nil {
		return 0
	}
	return pages * int64(os.Getpagesize())
}
