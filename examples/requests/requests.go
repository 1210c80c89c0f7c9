// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package requests has an example of a request for each hook of Cluster API and of infrastructure, in YAML, with
// comments that say what to change. It is safe for concurrent use.
package requests

import (
	"bytes"
	"embed"
	"regexp"
	"strings"

	"github.com/hookgate/hookgate/hook"
)

//go:embed *.yaml
var files embed.FS

// place is the place of an example in this repository.
var place = regexp.MustCompile(`examples/requests/\S+`)

var words = regexp.MustCompile(`[A-Z][a-z]*`)

// Example returns the example of a request of a hook, which the caller may change, or nil if there is none. Its
// comments name no file.
func Example(gvh hook.GroupVersionHook) []byte {
	name := strings.ToLower(strings.Join(words.FindAllString(gvh.Hook, -1), "-")) + ".yaml"
	text, err := files.ReadFile(name)
	if err != nil || !bytes.Contains(text, []byte("\napiVersion: "+gvh.Group+"/"+gvh.Version+"\n")) {
		return nil
	}
	return place.ReplaceAll(text, []byte("<file>"))
}
