// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/cli/preflight"
)

// findings documents what hookgate preflight finds.
func findings(w io.Writer) error {
	var b strings.Builder
	for _, rule := range preflight.Rules() {
		if rule.Level != preflight.OK {
			fmt.Fprintf(&b, "\n### `%s`\n*%s.* %s %s\n", rule.ID, rule.Level, rule.Text, rule.Help)
		}
	}
	b.WriteString("\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// changes documents what releases of Cluster API changed for extensions.
func changes(w io.Writer) error {
	var b strings.Builder
	b.WriteString("\n| since | hooks | change | taken out by `clusterAPIRelease` |\n|---|---|---|---|\n")
	for _, c := range catalog.ClusterAPIChanges("", nil, nil) {
		since, out := c.Release, "no"
		if c.Announced {
			since += ", announced"
		}
		if c.Kind == catalog.RequestGains && !c.Announced {
			out = "yes"
		}
		text := c.Text
		if len(c.Members) > 0 {
			text += ": `" + strings.Join(c.Members, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", since, strings.Join(c.Hooks, ", "), text, out)
	}
	b.WriteString("\n")
	_, err := io.WriteString(w, b.String())
	return err
}
