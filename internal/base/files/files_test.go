// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package files

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestReadReturnsAFileUpToItsLimit(t *testing.T) {
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	var r Reader
	if got, err := r.Read(name, 5); err != nil || string(got) != "12345" {
		t.Errorf("at the limit: %q, %v", got, err)
	}
	if got, err := r.Read(name, 4); err == nil || err.Error() != "larger than 4 bytes" {
		t.Errorf("beyond the limit: %q, %v", got, err)
	}
	if _, err := r.Read(name+"x", 5); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("no file: %v", err)
	}
}

// A file of /proc has no size.
func TestReadLimitsAFileThatStatesNoSize(t *testing.T) {
	var r Reader
	if _, err := r.Read("/proc/self/status", 10); err == nil || err.Error() != "larger than 10 bytes" {
		t.Errorf("got %v", err)
	}
}

func TestReadRefusesWhatIsNoFile(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "pipe")
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(dir, "link")
	if err := os.Symlink(pipe, link); err != nil {
		t.Fatal(err)
	}
	var r Reader
	for _, name := range []string{pipe, link, "/dev/zero"} {
		if _, err := r.Read(name, 10); !errors.Is(err, ErrNotRegular) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := r.Read(dir, 10); !errors.Is(err, syscall.EISDIR) {
		t.Errorf("a directory: %v", err)
	}
}

// A read that does not end, as of a mount whose server has gone, is given up, and is not tried again until it ends.
func TestReadGivesUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Reader
		block := make(chan struct{})
		var attempts atomic.Int32
		attempt := func() (string, error) {
			return within(&r, "hung", func() (string, error) {
				attempts.Add(1)
				<-block
				return "content", nil
			})
		}
		began := time.Now()
		if _, err := attempt(); err == nil || !strings.Contains(err.Error(), "took more than 5s") {
			t.Errorf("got %v", err)
		}
		if took := time.Since(began); took != Timeout {
			t.Errorf("gave up after %s", took)
		}
		if _, err := attempt(); err == nil || !strings.Contains(err.Error(), "has not ended") || attempts.Load() != 1 {
			t.Errorf("the second attempt: %v, attempts: %d", err, attempts.Load())
		}
		if got, err := within(&r, "other", func() (string, error) { return "x", nil }); got != "x" || err != nil {
			t.Errorf("another file: %q, %v", got, err)
		}
		close(block)
		synctest.Wait()
		if got, err := attempt(); got != "content" || err != nil {
			t.Errorf("after it has ended: %q, %v", got, err)
		}
	})
}
