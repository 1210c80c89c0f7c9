// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hookgate/hookgate/internal/base/files"
	"github.com/hookgate/hookgate/internal/base/limits"
)

// The names of files: their order is that of the times at which they were made.
const (
	filePrefix = "calls-"
	fileSuffix = ".jsonl"
	fileTime   = "20060102T150405.000000000Z"
)

// Files are the files of a recording in a directory, whose size together is bounded: the oldest give way. It belongs to
// one goroutine, and the directory to one Files.
type Files struct {
	dir            string
	most, mostFile int64 // bytes

	all   []file // oldest first; the last one is written to if open is not nil
	total int64
	open  *os.File
	retry time.Time // before which no file is made, after a failure
	err   error     // that failure
}

type file struct {
	name string
	size int64
}

// OpenFiles returns the files in a directory, which it makes if need be. Together they have at most so many bytes. It
// is an error if no file can be made there: that is better known before calls are lost.
func OpenFiles(dir string, most int64) (*Files, error) {
	if most < limits.LeastRecordBytes {
		return nil, fmt.Errorf("want at least %d MiB, so that the largest call fits", limits.LeastRecordBytes>>20)
	}
	f := &Files{dir: dir, most: most, mostFile: min(most/limits.RecordFilesPart, limits.RecordFileBytes)}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	entries, err := new(files.Reader).ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), filePrefix) || !strings.HasSuffix(e.Name(), fileSuffix) || !e.Type().IsRegular() {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		f.all = append(f.all, file{filepath.Join(dir, e.Name()), info.Size()})
		f.total += info.Size()
	}
	if err := f.next(0); err != nil {
		return nil, err
	}
	return f, nil
}

// Write writes lines, all of them or none.
func (f *Files) Write(lines []byte) error {
	size := int64(len(lines))
	if f.open != nil {
		if _, err := os.Lstat(f.current().name); err != nil { // someone has removed it
			f.forget()
		}
	}
	if f.open == nil || f.current().size > 0 && f.current().size+size > f.mostFile {
		if err := f.next(size); err != nil {
			return err
		}
	}
	if err := f.free(size); err != nil {
		return err
	}
	n, err := f.open.Write(lines)
	if err == nil {
		f.current().size += size
		f.total += size
		return nil
	}
	// A part of a line would be read as a part of the next one.
	if n > 0 {
		if cut := f.open.Truncate(f.current().size); cut != nil {
			f.current().size += int64(n)
			f.total += int64(n)
		}
	}
	f.Close()
	return f.failed(err)
}

// Close closes the file that is written to. One that is empty is removed.
func (f *Files) Close() {
	if f.open == nil {
		return
	}
	_ = f.open.Close() // what was written is there, or reading it shows that it is not
	f.open = nil
	if last := f.current(); last.size == 0 {
		_ = os.Remove(last.name) // it has no calls
		f.all = f.all[:len(f.all)-1]
	}
}

// forget closes a file that is not there any more.
func (f *Files) forget() {
	_ = f.open.Close()
	f.open = nil
	f.total -= f.current().size
	f.all = f.all[:len(f.all)-1]
}

func (f *Files) current() *file { return &f.all[len(f.all)-1] }

// next begins a file, with room for so many bytes.
func (f *Files) next(size int64) (err error) {
	f.Close()
	if time.Now().Before(f.retry) {
		return f.err
	}
	for len(f.all) >= limits.RecordFiles {
		if err := f.removeOldest(); err != nil {
			return f.failed(err)
		}
	}
	if err := f.free(size); err != nil {
		return err
	}
	name := filepath.Join(f.dir, filePrefix+time.Now().UTC().Format(fileTime)+fileSuffix)
	if f.open, err = os.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY|os.O_APPEND, 0o600); err != nil {
		f.open = nil
		return f.failed(err)
	}
	f.all = append(f.all, file{name: name})
	return nil
}

// free removes the oldest files until there is room for so many bytes.
func (f *Files) free(size int64) error {
	for f.total+size > f.most {
		if len(f.all) == 0 || len(f.all) == 1 && f.open != nil {
			return nil // the largest line has room in a file of its own
		}
		if err := f.removeOldest(); err != nil {
			return f.failed(err)
		}
	}
	return nil
}

func (f *Files) removeOldest() error {
	if err := os.Remove(f.all[0].name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f.total -= f.all[0].size
	f.all = f.all[1:]
	return nil
}

// failed makes the next attempt wait.
func (f *Files) failed(err error) error {
	f.err, f.retry = err, time.Now().Add(limits.RecordRetry)
	return err
}
