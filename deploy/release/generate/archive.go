// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"time"
)

// date is the time of the files in an archive: any fixed one gives the same bytes each time.
var date = time.Date(1980, 1, 1, 0, 0, 0, 0, time.UTC)

// member is a file of an archive.
type member struct {
	name    string
	mode    int64
	content []byte
}

// pack returns a compressed tar archive.
func pack(members []member) ([]byte, error) {
	var archive bytes.Buffer
	compressed := gzip.NewWriter(&archive)
	files := tar.NewWriter(compressed)
	for _, m := range members {
		header := &tar.Header{
			Typeflag: tar.TypeReg, Name: m.name, Mode: m.mode, Size: int64(len(m.content)),
			ModTime: date, Format: tar.FormatUSTAR,
		}
		if err := files.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := files.Write(m.content); err != nil {
			return nil, err
		}
	}
	if err := files.Close(); err != nil {
		return nil, err
	}
	if err := compressed.Close(); err != nil {
		return nil, err
	}
	return archive.Bytes(), nil
}
