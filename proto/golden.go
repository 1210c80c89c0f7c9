// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package golden embeds the golden vectors of testdata, for programs that send them; testdata/README.md describes
// them. It is safe for concurrent use.
package golden

import (
	"embed"
	"strings"

	"github.com/hookgate/hookgate/hook"
)

//go:embed testdata/v1alpha1/*.request.json testdata/infrastructure/v1alpha1/*.request.json
//go:embed testdata/machines/v1alpha1/*.request.json
var files embed.FS

// Directory returns the directory of the vectors of a hook, below testdata. There may be none.
func Directory(gvh hook.GroupVersionHook) string {
	switch gvh.Group {
	case hook.InfrastructureGroup:
		return "infrastructure/" + gvh.Version
	case hook.MachinesGroup:
		return "machines/" + gvh.Version
	}
	return gvh.Version
}

// Request returns the request of a hook in the mandated JSON, or nil if there is no such hook. The caller may change
// it.
func Request(gvh hook.GroupVersionHook) []byte {
	data, err := files.ReadFile("testdata/" + Directory(gvh) + "/" + strings.ToLower(gvh.Hook) + ".request.json")
	if err != nil {
		return nil
	}
	return data
}
