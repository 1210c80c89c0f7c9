// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command generate writes the pages of the documentation that are made from the code, into the directory that it is given.
package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/hookgate/hookgate/gateway"
	"github.com/hookgate/hookgate/registry"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: generate DIR")
		os.Exit(2)
	}
	for name, document := range map[string]func(io.Writer) error{
		"metrics.md": gateway.NewMetrics(prometheus.NewRegistry(), registry.New(), "").Document,
		"errors.md":  gateway.DocumentErrors,
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
