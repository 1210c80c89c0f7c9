// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package files reads files and directories that the gateway follows, which anything may happen to while it runs: a
// pipe in their place, a device, a mount whose server does not answer, a file that never ends. A read gives up after
// Timeout, and never reads more than it was asked for. Replace writes such a file. It leaves to others how often to
// read, and what content means.
package files

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
)

// Timeout bounds a read. It is generous: files that the gateway follows are small, and a file system that is this slow
// is not working.
const Timeout = limits.FileTimeout

// ErrNotRegular reports a pipe, a device, a socket or a directory in the place of a file.
var ErrNotRegular = errors.New("not a regular file")

// Reader reads files. A read that does not end costs one goroutine, however often it is tried again: until it has
// ended, further reads of the same name fail at once. The zero value is ready to use and safe for concurrent use.
type Reader struct {
	timeout time.Duration // for tests; zero means Timeout

	mu      sync.Mutex
	pending map[string]bool // the names whose reads have not ended
}

// Read returns the content of a regular file. Of a file larger than limit it returns an error.
func (r *Reader) Read(name string, limit int64) ([]byte, error) {
	return within(r, name, func() ([]byte, error) { return read(name, limit, r.within()) })
}

// ReadDir returns the entries of a directory in the order of their names.
func (r *Reader) ReadDir(name string) ([]fs.DirEntry, error) {
	return within(r, name, func() ([]fs.DirEntry, error) { return os.ReadDir(name) })
}

func (r *Reader) within() time.Duration {
	if r.timeout != 0 {
		return r.timeout
	}
	return Timeout
}

// within returns the result of do, or an error if that takes too long.
func within[T any](r *Reader, name string, do func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	var none T
	if !r.begin(name) {
		return none, fmt.Errorf("an earlier read has taken more than %s, and has not ended yet", r.within())
	}
	done := make(chan result, 1)
	go func() {
		value, err := do()
		r.end(name)
		done <- result{value, err}
	}()
	timer := time.NewTimer(r.within())
	defer timer.Stop()
	select {
	case got := <-done:
		return got.value, got.err
	case <-timer.C:
		return none, fmt.Errorf("the read took more than %s", r.within())
	}
}

// begin reports whether no other read of the name is pending, and marks it as pending.
func (r *Reader) begin(name string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.pending[name] {
		return false
	}
	if r.pending == nil {
		r.pending = map[string]bool{}
	}
	r.pending[name] = true
	return true
}

func (r *Reader) end(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.pending, name)
}

// read opens without waiting for a writer at the other end of a pipe, and looks at what it has opened: a name may stand
// for something else by then.
func read(name string, limit int64, timeout time.Duration) ([]byte, error) {
	file, err := os.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	info, err := file.Stat()
	switch {
	case err != nil:
		return nil, err
	case info.IsDir():
		return nil, syscall.EISDIR
	case !info.Mode().IsRegular():
		return nil, ErrNotRegular
	case info.Size() > limit:
		return nil, tooLarge(limit)
	}
	// Some files of /proc are regular by their mode and wait for content all the same. Others have no deadline, and
	// need none.
	_ = file.SetReadDeadline(time.Now().Add(timeout))
	var data bytes.Buffer
	data.Grow(int(info.Size()) + bytes.MinRead) // so that it does not grow, unless the file does
	_, err = data.ReadFrom(io.LimitReader(file, limit+1))
	switch {
	case err != nil:
		return nil, err
	case int64(data.Len()) > limit:
		return nil, tooLarge(limit)
	}
	return data.Bytes(), nil
}

func tooLarge(limit int64) error { return fmt.Errorf("larger than %d bytes", limit) }

// Replace writes a file beside path and renames it to path, for those who follow it.
func Replace(path string, data []byte, mode os.FileMode) (err error) {
	f, err := os.CreateTemp(filepath.Dir(path), "."+filepath.Base(path)+"-*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(f.Name())
		}
	}()
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(mode)
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}
