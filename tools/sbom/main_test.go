// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx"
	"github.com/spdx/tools-golang/spdxlib"
)

// TestDocuments writes the documents for two programs, this test, and looks for what is known to be in it.
func TestDocuments(t *testing.T) {
	program, err := os.ReadFile(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, name := range []string{"hookgate-linux-amd64", "hookgate-darwin-arm64"} {
		if err := os.WriteFile(filepath.Join(dir, name), program, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	written := func() map[string][]byte {
		if err := run([]string{"-version", "v0.1.0", "-image", "ghcr.io/hookgate/hookgate", "-created", "2026-11-22T10:00:00+01:00", dir}); err != nil {
			t.Fatal(err)
		}
		texts := map[string][]byte{}
		for _, name := range []string{"hookgate-programs", "hookgate-image"} {
			if texts[name], err = os.ReadFile(filepath.Join(dir, name+".spdx.json")); err != nil {
				t.Fatal(err)
			}
		}
		return texts
	}
	texts, again := written(), written()
	for name, described := range map[string][]string{
		"hookgate-programs": {"hookgate-darwin-arm64", "hookgate-linux-amd64"},
		"hookgate-image":    {"ghcr.io/hookgate/hookgate", "hookgate-linux-amd64"},
	} {
		if !bytes.Equal(texts[name], again[name]) {
			t.Errorf("%s differs when it is written again", name)
		}
		document, err := spdxjson.Read(bytes.NewReader(texts[name]))
		if err != nil {
			t.Fatal(err)
		}
		if err := spdxlib.ValidateDocument(document); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if document.CreationInfo.Created != "2026-11-22T09:00:00Z" {
			t.Errorf("%s is of %s", name, document.CreationInfo.Created)
		}
		checkDescribed(t, document, described, fmt.Sprintf("%x", sha256.Sum256(program)))
		for _, want := range []string{
			"pkg:golang/github.com/hookgate/hookgate/tools@v0.1.0#sbom",
			"pkg:golang/stdlib@" + strings.TrimPrefix(strings.Fields(runtime.Version())[0], "go"),
			"pkg:golang/github.com/spdx/tools-golang@v",
		} {
			if !bytes.Contains(texts[name], []byte(`"referenceLocator": "`+want)) {
				t.Errorf("%s lacks %s", name, want)
			}
		}
	}
	for _, want := range []string{"pkg:oci/hookgate?repository_url=ghcr.io/hookgate/hookgate\\u0026tag=v0.1.0", "pkg:golang/" + authorities + "@v0."} {
		if !bytes.Contains(texts["hookgate-image"], []byte(want)) {
			t.Errorf("the document of the image lacks %s", want)
		}
	}
}

func checkDescribed(t *testing.T, document *spdx.Document, want []string, sum string) {
	t.Helper()
	described, err := spdxlib.GetDescribedPackageIDs(document)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, p := range document.Packages {
		for _, id := range described {
			if p.PackageSPDXIdentifier != id {
				continue
			}
			got = append(got, p.PackageName)
			if p.PackageVersion != "v0.1.0" || p.PackageLicenseDeclared != "Apache-2.0" ||
				(p.PackageFileName != "" && p.PackageChecksums[0].Value != sum) {
				t.Errorf("%s: %+v", document.DocumentName, p)
			}
		}
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("%s describes %q, want %q", document.DocumentName, got, want)
	}
}

func TestReplacedModules(t *testing.T) {
	d := newDocument("a", "v0.1.0", time.Now())
	for _, replacement := range []*debug.Module{
		nil, {Path: "./gen/go", Version: "(devel)"}, {Path: "/src/gen"}, {Path: "example.com/fork", Version: "v1.2.3"},
	} {
		d.addModule(&debug.Module{Path: "example.com/gen", Version: "v0.0.0", Replace: replacement})
	}
	var got []string
	for _, p := range d.Packages {
		got = append(got, p.PackageExternalReferences[0].Locator)
	}
	want := []string{"pkg:golang/example.com/gen@v0.0.0", "pkg:golang/example.com/gen@v0.1.0", "pkg:golang/example.com/fork@v1.2.3"}
	if !slices.Equal(got, want) {
		t.Errorf("the document has %q, want %q", got, want)
	}
}

func TestMistakes(t *testing.T) {
	dir := t.TempDir()
	for _, args := range [][]string{
		{"-version", "v0.1.0", "-image", "a/b", "-created", "now", dir},
		{"-version", "v0.1.0", "-image", "a/b", "-created", "2026-11-22T10:00:00Z"},
		{"-version", "v0.1.0", "-image", "a/b", "-created", "2026-11-22T10:00:00Z", dir},
	} {
		if err := run(args); err == nil {
			t.Errorf("%q is not refused", args)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "hookgate-linux-amd64"), []byte("#!/bin/sh"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{"-version", "v0.1.0", "-image", "a/b", "-created", "2026-11-22T10:00:00Z", dir}); err == nil {
		t.Error("a script is taken for a program")
	}
}
