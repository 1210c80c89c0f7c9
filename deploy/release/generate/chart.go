// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// charts are the names of the charts, and of the directories in their archives.
var charts = []string{"hookgate", "hookgate-infrastructure", "hookgate-sidecar"}

// chart returns the name of the file and the archive of a chart, as `helm package` writes them: with the version of the release, and
// with the files that links point to.
func (o *options) chart(chartName string) (string, []byte, error) {
	dir := filepath.Join(o.source, "..", "helm", chartName)
	version := strings.TrimPrefix(o.version, "v")
	replaced := map[string][][2]string{
		"Chart.yaml":  {{"\nversion: 0.0.0\n", "\nversion: " + version + "\n"}, {"\nappVersion: dev\n", "\nappVersion: " + o.version + "\n"}},
		"values.yaml": {{"repository: " + manifestImage + "\n", "repository: " + o.image + "\n"}},
	}
	var packed []member
	err := filepath.WalkDir(dir, func(file string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(dir, file)
		if err != nil {
			return err
		}
		content, err := os.ReadFile(file) //nolint:gosec // a file of the chart
		if err != nil {
			return err
		}
		name := filepath.ToSlash(relative)
		for _, r := range replaced[name] {
			if bytes.Count(content, []byte(r[0])) != 1 {
				return fmt.Errorf("%s: want the line %q once", file, strings.TrimSpace(r[0]))
			}
			content = bytes.Replace(content, []byte(r[0]), []byte(r[1]), 1)
		}
		packed = append(packed, member{name: path.Join(chartName, name), mode: 0o644, content: content})
		return nil
	})
	if err != nil {
		return "", nil, err
	}
	archive, err := pack(packed)
	return chartName + "-" + version + ".tgz", archive, err
}
