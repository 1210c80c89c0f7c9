// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command generate writes the pages of the documentation that are made from the code, into the directory that it is given.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/conformance"
	"github.com/hookgate/hookgate/infrastructure"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/contract/convert"
	"github.com/hookgate/hookgate/internal/seeing/observe"
	"github.com/hookgate/hookgate/machines"
	"github.com/hookgate/hookgate/registry"
)

// lifecyclePicture is the picture of the lifecycle, seen from the pages. The program has it, for its page of the hooks.
var lifecyclePicture = filepath.Join("..", "internal", "contract", "openapi", "page", "lifecycle.svg")

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: generate DIR")
		os.Exit(2)
	}
	for _, part := range []struct {
		page, name string
		document   func(io.Writer) error
	}{
		{"contract.md", "hooks", hookTable},
		{"conversion.md", "losses", convert.Document},
		{"limits.md", "limits", limits.Document},
		{"upgrading.md", "changes", changes},
		{"upgrading.md", "findings", findings},
	} {
		if err := fill(filepath.Join(os.Args[1], part.page), part.name, part.document); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	for name, document := range map[string]func(io.Writer) error{
		"checks.md":               checks,
		"metrics.md":              metrics,
		"errors.md":               errorKinds,
		"infrastructure-kinds.md": kinds(filepath.Join(os.Args[1], "..", "deploy", "crd", "infrastructure")),
		lifecyclePicture:          picture,
	} {
		var b bytes.Buffer
		if err := document(&b); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		if err := os.WriteFile(filepath.Join(os.Args[1], name), b.Bytes(), 0o644); err != nil { //nolint:gosec // documentation is for everyone
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
}

// checksPage is the page about the checks up to its table.
const checksPage = "# Checks\n\n" +
	"For authors of extensions: the rules that [`hookgate check`](conformance.md) checks. A check that is not marked\n" +
	"REST or gRPC applies to both protocols. This page is generated from the code by `make generate`.\n\n"

// checks documents what hookgate check checks.
func checks(w io.Writer) error {
	if _, err := io.WriteString(w, checksPage); err != nil {
		return err
	}
	return conformance.Document(w)
}

// metrics documents the metrics of the gateway, and those of the controllers.
func metrics(w io.Writer) error {
	return errors.Join(observe.NewMetrics(prometheus.NewRegistry(), registry.New(), catalog.New(), "").Document(w),
		infrastructure.DocumentMetrics(w), machines.DocumentMetrics(w))
}

// fill replaces what stands between the marks <!-- NAME --> and <!-- /NAME --> of a page. The rest of it is written by hand.
func fill(page, name string, document func(io.Writer) error) error {
	text, err := os.ReadFile(page)
	if err != nil {
		return err
	}
	begin, end := []byte("<!-- "+name+" -->\n"), []byte("<!-- /"+name+" -->")
	before, rest, ok := bytes.Cut(text, begin)
	_, after, ok2 := bytes.Cut(rest, end)
	if !ok || !ok2 {
		return fmt.Errorf("%s: the markers of %s are missing", page, name)
	}
	var b bytes.Buffer
	b.Write(before)
	b.Write(begin)
	if err := document(&b); err != nil {
		return err
	}
	b.Write(end)
	b.Write(after)
	return os.WriteFile(page, b.Bytes(), 0o644) //nolint:gosec // documentation is for everyone
}
