// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package modules

import (
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const product = "github.com/hookgate/hookgate/"

// inside are the exported identifiers that may name types of internal packages, and why. A user of the module, who
// cannot import these types, needs none of the identifiers: package command wires the parts, and takes a gateway.Group.
// Who names an alias of registry names no internal type, as its users need not.
var inside = map[string]string{
	"gateway.Config.Parts":      shared,
	"controllers.Config.Shared": shared,

	"controllers.Config.HookJobs":      "the webhooks refuse the same HookJobs",
	"controllers.Source.Objects":       "the status of the process lists them",
	"controllers.Source.RolloutEngine": "the webhooks refuse what would leave Clusters without an answer",

	"infrastructure/overview.Objects.Summary": "the page of a gateway shows it",
	"infrastructure/overview.Summarize":       "the page of a gateway shows it",

	"registry.Policy": "a policy has compiled conditions, which only the gateway evaluates: an alias gives it a name outside",
	"registry.Guard":  "whoever implements Answerer is called with it: an alias gives it a name outside",
}

const shared = "several parts of one process share what is in it, and package command makes it"

// TestExported lists the exported identifiers of importable packages that name a type of an internal package, and fails
// for each that is not in inside, and for each package without an Example.
func TestExported(t *testing.T) {
	exports, paths := exportData(t)
	gc := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) { return os.Open(exports[path]) })
	seen := map[string]bool{}
	for _, path := range paths {
		if !hasExample(t, strings.TrimPrefix(path, product)) {
			t.Errorf("%s has no runnable Example", path)
		}
		pkg, err := gc.Import(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range pkg.Scope().Names() {
			for id, text := range signatures(pkg.Scope().Lookup(name)) {
				if !strings.Contains(text, "/internal/") {
					continue
				}
				id = strings.TrimPrefix(path, product) + "." + id
				seen[id] = true
				if inside[id] == "" {
					t.Errorf("%s names an internal type: %s", id, strings.ReplaceAll(text, product, ""))
				}
			}
		}
	}
	for id := range inside {
		if !seen[id] {
			t.Errorf("%s names no internal type any more: its entry here is not needed", id)
		}
	}
}

// hasExample reports whether a package has an Example. Generated code has its examples in examples/.
func hasExample(t *testing.T, dir string) bool {
	t.Helper()
	if strings.HasPrefix(dir, "gen/") || strings.HasPrefix(dir, "examples/") {
		return true
	}
	files, err := filepath.Glob(filepath.Join("..", "..", dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		text, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(text), "\nfunc Example")
	})
}

// signatures returns what a user of o sees of it and of its exported fields and methods, by name.
func signatures(o types.Object) map[string]string {
	texts := map[string]string{}
	if !o.Exported() {
		return texts
	}
	text := func(t types.Type) string { return types.TypeString(t, nil) }
	name, ok := o.(*types.TypeName)
	if !ok {
		texts[o.Name()] = text(o.Type())
		return texts
	}
	if name.IsAlias() { // its methods and fields are those of the other type
		texts[o.Name()] = text(types.Unalias(o.Type()))
		return texts
	}
	receiver := o.Type()
	if !types.IsInterface(receiver) {
		receiver = types.NewPointer(receiver)
	}
	for method := range types.NewMethodSet(receiver).Methods() {
		if method.Obj().Exported() {
			texts[o.Name()+"."+method.Obj().Name()] = text(method.Obj().Type())
		}
	}
	switch under := o.Type().Underlying().(type) {
	case *types.Struct:
		for field := range under.Fields() {
			if field.Exported() {
				texts[o.Name()+"."+field.Name()] = text(field.Type())
			}
		}
	case *types.Interface: // it has its methods
	default:
		texts[o.Name()] += text(under)
	}
	return texts
}

// exportData returns the files of export data of all packages of the product, and of what they import, by path, and the
// paths of the importable packages.
func exportData(t *testing.T) (exports map[string]string, importable []string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-f", "{{.ImportPath}} {{.Name}} {{.Export}}", product+"...")
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0") // as the Makefile builds
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	exports = map[string]string{}
	for line := range strings.Lines(string(out)) {
		fields := strings.Fields(line)
		if len(fields) < 3 {
			continue // unsafe
		}
		path, name := fields[0], fields[1]
		exports[path] = fields[2]
		own := strings.HasPrefix(path, product)
		if own && name != "main" && !strings.Contains(path, "/internal/") && !strings.HasPrefix(path, product+"test/") {
			importable = append(importable, path)
		}
	}
	slices.Sort(importable)
	return exports, importable
}
