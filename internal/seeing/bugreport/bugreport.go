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

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/contract/redact"
)

const (
	// MaxFile is the size of the largest file, which is far more than a reader wants.
	MaxFile = limits.ReportFileBytes

	// Removed stands in place of what is removed.
	Removed = redact.Mask
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
	files []file
	total int
	known redact.Known
}

type file struct {
	Entry
	content string
}

// Secret makes an archive have no such text. It applies to files that are added before, too.
func (a *Archive) Secret(values ...string) { a.known.Add(values...) }

// Add adds a file with the content, which is cut if it is too large.
func (a *Archive) Add(name, content string) {
	e := Entry{Name: name}
	if most := min(MaxFile, limits.ReportBytes-a.total); len(content) > most {
		e.Note = fmt.Sprintf("only the first %d of %d bytes", most, len(content))
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
	content := redact.Bounded(err.Error(), 4<<10) + "\n"
	a.total += len(content)
	a.files = append(a.files, file{Entry{Name: name, Note: "could not be read"}, content})
}

// Write writes the archive, a ZIP file, and returns what is in it, in the order of names.
func (a *Archive) Write(w io.Writer, at time.Time) ([]Entry, error) {
	slices.SortStableFunc(a.files, func(x, y file) int { return strings.Compare(x.Name, y.Name) })
	z := zip.NewWriter(w)
	entries := make([]Entry, 0, len(a.files))
	for _, f := range a.files {
		content := redact.Text(a.known.Remove(f.content))
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
