// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// ambiguous is a command for ExtensionConfigs that does not say of which group. Beside Cluster API core, kubectl takes the
// core's.
var ambiguous = regexp.MustCompile(`kubectl\b[^` + "`" + `\n]*\bextensionconfigs?(?:[^.\w]|$)`)

// TestCommandsNameTheGroup reads what the repository tells people to type.
func TestCommandsNameTheGroup(t *testing.T) {
	root := filepath.Join("..", "..")
	commands := 0
	read := func(path string) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		commands += strings.Count(string(text), "kubectl ")
		for _, command := range ambiguous.FindAllString(string(text), -1) {
			t.Errorf("%s: %q also means the group of Cluster API core: use hext, or the name with its group", path, command)
		}
	}
	for _, dir := range []string{"docs", "deploy", "examples"} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() && (d.Name() == "node_modules" || d.Name() == "target") {
				return fs.SkipDir
			}
			if extension := filepath.Ext(path); !d.IsDir() && (extension == ".md" || extension == ".yaml" || extension == ".sh") {
				read(path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, page := range []string{"README.md", "CONTRIBUTING.md", "SECURITY.md"} {
		read(filepath.Join(root, page))
	}
	if commands < 20 {
		t.Errorf("%d commands were found: there are more", commands)
	}
}

func TestAmbiguousCommands(t *testing.T) {
	for command, want := range map[string]bool{
		"kubectl get extensionconfig acme": true, "kubectl get extensionconfigs": true, "kubectl delete extensionconfig/acme": true,
		"kubectl -n x get extensionconfigs,extensionpolicies": true,
		"kubectl get extensionconfigs.runtime.hookgate.dev":   false, "kubectl get hext": false, "an extensionconfig": false,
		"kubectl get extensionpolicies": false, "`kubectl` and extensionconfig": false,
	} {
		if got := ambiguous.MatchString(command); got != want {
			t.Errorf("%q: %t, want %t", command, got, want)
		}
	}
}
