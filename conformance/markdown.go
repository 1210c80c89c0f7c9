// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"io"
	"strings"
)

// Document writes a table of all checks in Markdown, without their sources, which each result has.
func Document(w io.Writer) error {
	var b strings.Builder
	b.WriteString("| check | level | rule |\n|---|---|---|\n")
	for _, c := range Checks() {
		level := string(c.Level)
		if c.Protocol != "" {
			level += ", " + string(c.Protocol)
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s |\n", c.ID, level, c.Rule)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
