// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"fmt"
	"io"
	"strings"
)

// Document writes a table of all checks in Markdown.
func Document(w io.Writer) error {
	var b strings.Builder
	b.WriteString("| check | level | for | rule | source |\n|---|---|---|---|---|\n")
	for _, c := range Checks() {
		protocol := string(c.Protocol)
		if protocol == "" {
			protocol = "both"
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s | %s |\n", c.ID, c.Level, protocol, c.Rule, c.Source)
	}
	_, err := io.WriteString(w, b.String())
	return err
}
