// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package bugreport writes an archive about a gateway for those who look for a defect in it. Secrets are removed from
// every file: those that are known, such as the token of the user and the settings of extensions, and what has the
// shape of one.
//
// An Archive must not be used concurrently.
package bugreport

import (
	"archive/zip"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/hookgate/hookgate/internal/limits"
	"github.com/hookgate/hookgate/internal/text"
)

const (
	// MaxFile is the size of the largest file, which is far more than a reader wants.
	MaxFile = limits.ReportFileBytes
	// minSecret is the length of the shortest text that is removed wherever it occurs. Shorter ones, such as "on", are
	// part of many words.
	minSecret = 6

	// Removed stands in place of what is removed.
	Removed = "[removed]"
)

// Entry is a file of an archive.
type Entry struct {
	Name string
	Size int
	// Note says what is missing; empty for a file that is complete.
	Note string
}

// Archive is the report that is being collected.
type Archive struct {
	files   []file
	total   int
	secrets map[string]bool
}

type file struct {
	Entry
	content string
}

// Secret makes an archive have no such text. It applies to files that are added before, too.
func (a *Archive) Secret(values ...string) {
	if a.secrets == nil {
		a.secrets = map[string]bool{}
	}
	for _, v := range values {
		for line := range strings.Lines(v) { // files may indent the lines of a longer one
			if line = strings.TrimSpace(line); len(line) >= minSecret {
				a.secrets[line] = true
			}
		}
	}
}

// Add adds a file with the content, which is cut if it is too large.
func (a *Archive) Add(name, content string) {
	e := Entry{Name: name}
	if most := min(MaxFile, limits.ReportBytes-a.total); len(content) > most {
		e.Note = fmt.Sprintf("its first %d of %d bytes", most, len(content))
		content = strings.ToValidUTF8(content[:most], "")
	}
	a.total += len(content)
	a.files = append(a.files, file{e, content})
}

// AddJSON adds a value as indented JSON.
func (a *Archive) AddJSON(name string, v any) {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		a.Missing(name, err)
		return
	}
	a.Add(name, b.String())
}

// Missing adds a file that says why there is none.
func (a *Archive) Missing(name string, err error) {
	content := text.Bounded(err.Error(), 4<<10) + "\n"
	a.total += len(content)
	a.files = append(a.files, file{Entry{Name: name, Note: "could not be read"}, content})
}

// Write writes the archive, a ZIP file, and returns what is in it, in the order of names.
func (a *Archive) Write(w io.Writer, at time.Time) ([]Entry, error) {
	slices.SortStableFunc(a.files, func(x, y file) int { return strings.Compare(x.Name, y.Name) })
	secrets := newRedactor(a.secrets)
	z := zip.NewWriter(w)
	entries := make([]Entry, 0, len(a.files))
	for _, f := range a.files {
		content := text.Mask(secrets.redact(f.content))
		f.Size = len(content)
		out, err := z.CreateHeader(&zip.FileHeader{Name: f.Name, Method: zip.Deflate, Modified: at})
		if err == nil {
			_, err = io.WriteString(out, content)
		}
		if err != nil {
			return nil, err
		}
		entries = append(entries, f.Entry)
	}
	return entries, z.Close()
}
