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

	"github.com/hookgate/hookgate/internal/files"
	"github.com/hookgate/hookgate/internal/limits"
)

// File is a file of the directory.
type File struct {
	file    string
	content []byte
	err     error // why it could not be read
}

// Equal reports whether f and o have the same name and content, or cannot be read either of them.
func (f *File) Equal(o *File) bool {
	return f.file == o.file && bytes.Equal(f.content, o.content) && (f.err == nil) == (o.err == nil)
}

// ReadFiles returns the manifests of a directory in the order of their names. An error in one file is its own. It waits
// for no file for long.
func ReadFiles(reader *files.Reader, dir string) ([]File, error) {
	entries, err := reader.ReadDir(dir)
	if err != nil {
		if cause, ok := errors.AsType[*fs.PathError](err); ok {
			err = cause.Err // which does not repeat the path
		}
		return nil, fmt.Errorf("read directory %q: %w", dir, err)
	}
	manifests := []File{}
	left := int64(limits.ManifestsBytes)
	for _, e := range entries {
		// Editors and mounted ConfigMaps create hidden files and directories.
		if extensions := []string{".yaml", ".yml", ".json"}; strings.HasPrefix(e.Name(), ".") ||
			!slices.Contains(extensions, filepath.Ext(e.Name())) {
			continue
		}
		m := File{file: filepath.Join(dir, e.Name())}
		m.content, m.err = reader.Read(m.file, limits.ManifestBytes)
		if errors.Is(m.err, fs.ErrNotExist) || errors.Is(m.err, syscall.EISDIR) {
			continue // deleted just now, a link that a ConfigMap has left behind, or a directory
		}
		if left -= int64(len(m.content)); left < 0 {
			m.content, m.err = nil, fmt.Errorf("the manifests of the directory are larger than %d bytes together",
				limits.ManifestsBytes)
		}
		if cause, ok := errors.AsType[*fs.PathError](m.err); ok {
			m.err = fmt.Errorf("%s file: %w", cause.Op, cause.Err)
		}
		manifests = append(manifests, m)
	}
	return manifests, nil
}

// documents returns the documents of the manifest.
func (f *File) documents() ([]document, []Problem) {
	begin := Place{File: f.file, Line: 1}
	if f.err != nil {
		return nil, []Problem{{Place: begin, Err: f.err, unidentified: true}}
	}
	if len(bytes.TrimSpace(f.content)) == 0 {
		// Many programs empty a file before they write it, and may take long to write it.
		err := errors.New("the file is empty; delete it if it is meant to define nothing")
		return nil, []Problem{{Place: begin, Err: err, unidentified: true, Warning: true}}
	}
	return parse(f.file, f.content)
}
