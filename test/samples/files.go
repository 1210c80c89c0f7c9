// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package samples

import (
	"bytes"
	"embed"
	"encoding/json"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"
)

// files are the objects: YAML for those that have a Go type in every request, JSON for those that travel raw, because
// escapes and the spelling of numbers matter there.
//
//go:embed testdata
var files embed.FS

// decode reads a YAML file into out. The files are compiled in and a test reads them all, so a bad one is a panic.
func decode(file string, out any) {
	if err := yaml.UnmarshalStrict(read(file), out); err != nil {
		panic(fmt.Sprintf("samples: decode %s: %v", file, err))
	}
}

// raw returns a JSON file compacted, with text replaced; replacements are pairs of old and new.
func raw(file string, replacements ...string) []byte {
	text := strings.NewReplacer(replacements...).Replace(string(read(file)))
	var compact bytes.Buffer
	if err := json.Compact(&compact, []byte(text)); err != nil {
		panic(fmt.Sprintf("samples: compact %s: %v", file, err))
	}
	return compact.Bytes()
}

func read(file string) []byte {
	data, err := files.ReadFile("testdata/" + file)
	if err != nil {
		panic(fmt.Sprintf("samples: %v", err))
	}
	return data
}
