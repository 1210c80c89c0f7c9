// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// maxManifest bounds the size of a file in bytes. A ConfigMap has at most 1 MiB.
const maxManifest = 8 << 20

// manifest is a file of the directory.
type manifest struct {
	file    string
	content []byte
	err     error // why it could not be read
}

func sameManifest(a, b manifest) bool {
	return a.file == b.file && bytes.Equal(a.content, b.content) && (a.err == nil) == (b.err == nil)
}

// readDirectory returns the manifests of a directory in the order of their names. An error in one file is its own.
func readDirectory(dir string) ([]manifest, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		var cause *fs.PathError
		if errors.As(err, &cause) {
			err = cause.Err // which does not repeat the path
		}
		return nil, fmt.Errorf("read directory %q: %w", dir, err)
	}
	manifests := []manifest{}
	for _, e := range entries {
		// Hidden files are those of editors, and the directories behind a ConfigMap that is mounted.
		if extensions := []string{".yaml", ".yml", ".json"}; strings.HasPrefix(e.Name(), ".") ||
			!slices.Contains(extensions, filepath.Ext(e.Name())) {
			continue
		}
		m := manifest{file: filepath.Join(dir, e.Name())}
		info, err := os.Stat(m.file) // follows links, which files of a mounted ConfigMap are
		switch {
		case errors.Is(err, fs.ErrNotExist):
			continue // deleted just now, or a link that a ConfigMap has left behind
		case err != nil:
			m.err = fmt.Errorf("read file: %w", err)
		case info.IsDir():
			continue
		case !info.Mode().IsRegular():
			m.err = errors.New("not a regular file")
		case info.Size() > maxManifest:
			m.err = fmt.Errorf("larger than %d bytes", maxManifest)
		default:
			m.content, m.err = os.ReadFile(m.file)
			if errors.Is(m.err, fs.ErrNotExist) {
				continue
			}
		}
		var cause *fs.PathError
		if errors.As(m.err, &cause) {
			m.err = fmt.Errorf("%s file: %w", cause.Op, cause.Err)
		}
		manifests = append(manifests, m)
	}
	return manifests, nil
}

// documents returns the documents of the manifest.
func (m *manifest) documents() ([]document, []problem) {
	begin := place{file: m.file, line: 1}
	if m.err != nil {
		return nil, []problem{{place: begin, err: m.err, unidentified: true}}
	}
	if len(bytes.TrimSpace(m.content)) == 0 {
		// Many programs empty a file before they write it, and may take long to write it.
		err := errors.New("the file is empty; delete it if it is meant to define nothing")
		return nil, []problem{{place: begin, err: err, unidentified: true, warning: true}}
	}
	return parse(m.file, m.content)
}
