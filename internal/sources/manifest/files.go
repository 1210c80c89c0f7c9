// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/hookgate/hookgate/internal/base/files"
	"github.com/hookgate/hookgate/internal/base/limits"
)

// File is a file of the directory.
type File struct {
	file    string
	content []byte
	err     error // why it could not be read
}

// Name returns the path of f.
func (f *File) Name() string { return f.file }

// Equal reports whether f and o have the same name and content, or cannot be read either of them.
func (f *File) Equal(o *File) bool {
	return f.file == o.file && bytes.Equal(f.content, o.content) && (f.err == nil) == (o.err == nil)
}

// ReadFiles returns the manifests of a directory in the order of their names. An error in one file is its own. It waits
// for no file for long.
func ReadFiles(reader *files.Reader, dir string) ([]File, error) {
	return RereadFiles(reader, dir, nil, nil)
}

// RereadFiles returns the manifests of a directory as ReadFiles does. It takes them over from before, the result of an
// earlier call, except for those that were not there or could not be read, those whose names within the directory are
// in changed, and links, whose targets may have changed.
func RereadFiles(
	reader *files.Reader, dir string, before []File, changed map[string]struct{},
) ([]File, error) {
	entries, err := readDir(reader, dir)
	if err != nil {
		return nil, err
	}
	known := make(map[string]*File, len(before))
	for i := range before {
		known[before[i].file] = &before[i]
	}
	manifests := make([]File, 0, len(entries))
	left := int64(limits.ManifestsBytes)
	for _, e := range entries {
		// Editors and mounted ConfigMaps create hidden files and directories.
		if extensions := []string{".yaml", ".yml", ".json"}; strings.HasPrefix(e.Name(), ".") ||
			!slices.Contains(extensions, strings.ToLower(filepath.Ext(e.Name()))) {
			continue
		}
		m := File{file: filepath.Join(dir, e.Name())}
		if len(manifests) == limits.ManifestFiles {
			m.err = fmt.Errorf("the directory has more than %d manifests: this manifest and those after it are not used",
				limits.ManifestFiles)
			return append(manifests, m), nil
		}
		_, read := changed[e.Name()]
		if old := known[m.file]; old != nil && old.err == nil && e.Type().IsRegular() && !read {
			m.content = old.content
		} else {
			m.content, m.err = reader.Read(m.file, limits.ManifestBytes)
		}
		gone := errors.Is(m.err, fs.ErrNotExist) && e.Type()&fs.ModeSymlink == 0
		if gone || errors.Is(m.err, syscall.EISDIR) {
			continue // deleted just now, or a directory; what a link without a target would define is not known
		}
		if left -= int64(len(m.content)); left < 0 {
			m.content, m.err = nil, fmt.Errorf("the manifests of the directory are larger than %d bytes in total",
				limits.ManifestsBytes)
		}
		if cause, ok := errors.AsType[*fs.PathError](m.err); ok {
			m.err = fmt.Errorf("%s file: %w", cause.Op, cause.Err)
		}
		manifests = append(manifests, m)
	}
	return manifests, nil
}

// CheckDir returns the error that ReadFiles would return, without reading the files.
func CheckDir(reader *files.Reader, dir string) error {
	_, err := readDir(reader, dir)
	return err
}

func readDir(reader *files.Reader, dir string) ([]fs.DirEntry, error) {
	entries, err := reader.ReadDir(dir)
	if err != nil {
		if cause, ok := errors.AsType[*fs.PathError](err); ok {
			err = cause.Err // which does not repeat the path
		}
		return nil, fmt.Errorf("read directory %q: %w", dir, err)
	}
	return entries, nil
}

// documents returns the documents of the manifest.
func (f *File) documents() ([]document, []Problem) {
	begin := Place{File: f.file, Line: 1}
	if f.err != nil {
		return nil, []Problem{{Place: begin, Err: f.err, unidentified: true, unreadable: true}}
	}
	if len(bytes.TrimSpace(f.content)) == 0 {
		// Many programs empty a file before they write it, and may take long to write it.
		err := errors.New("the file is empty; delete it if it is meant to define nothing")
		return nil, []Problem{{Place: begin, Err: err, unidentified: true, unreadable: true, Warning: true}}
	}
	return parse(f.file, f.content)
}
