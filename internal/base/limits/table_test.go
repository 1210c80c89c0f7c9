// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestEveryLimitIsInTheTable checks that the table names each constant, and that the product uses it: what the page says
// is what bounds.
func TestEveryLimitIsInTheTable(t *testing.T) {
	constants := map[string]bool{}
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.ValueSpec); ok {
				for _, c := range s.Names {
					if c.IsExported() {
						constants[c.Name] = true
					}
				}
			}
			return true
		})
	}
	if len(constants) < 150 {
		t.Fatalf("%d constants were found: there are more", len(constants))
	}
	rows, err := os.ReadFile("rows.go")
	if err != nil {
		t.Fatal(err)
	}
	named := words(string(rows), `\b[A-Z]\w+\b`)
	used := map[string]bool{}
	root := filepath.Join("..", "..", "..")
	for _, dir := range []string{
		"api", "catalog", "command", "conformance", "controllers", "gateway", "hookversion", "infrastructure", "internal", "machines", "registry",
	} {
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for use := range words(string(text), `\blimits\.[A-Z]\w+`) {
				used[strings.TrimPrefix(use, "limits.")] = true
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	for name := range constants {
		if !named[name] {
			t.Errorf("%s is in no row", name)
		}
		if !used[name] {
			t.Errorf("%s bounds nothing", name)
		}
	}
}

func words(text, pattern string) map[string]bool {
	all := map[string]bool{}
	for _, word := range regexp.MustCompile(pattern).FindAllString(text, -1) {
		all[word] = true
	}
	return all
}

func TestRows(t *testing.T) {
	for _, idea := range Table() {
		seen := map[string]bool{}
		for _, l := range idea.Limits {
			if l.Per == "" || l.Name == "" || l.Value == "" {
				t.Errorf("%s: %+v is not complete", idea.Name, l)
			}
			if seen[l.Per+l.Name] {
				t.Errorf("%s: %q for each %s is there twice", idea.Name, l.Name, l.Per)
			}
			seen[l.Per+l.Name] = true
		}
	}
}

func TestValues(t *testing.T) {
	for want, got := range map[string]string{
		"2 GiB": size(2 << 30), "20 MiB": size(20 << 20), "64 KiB": size(64 << 10), "512 bytes": size(512), "1,000 bytes": size(1000),
		"999": count(999), "10,000": count(10_000), "1,000,005": count(1_000_005),
		"1 h": long(3600e9), "2 min": long(120e9), "90 s": long(90e9), "500 ms": long(500e6), "75 %": percent(75),
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
