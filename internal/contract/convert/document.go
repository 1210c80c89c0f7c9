// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"fmt"
	"io"
)

// Document writes the possible losses of conversions as Markdown, for docs/conversion.md.
func Document(w io.Writer) error {
	for _, way := range [][2]string{{V1Beta2, V1Beta1}, {V1Beta1, V1Beta2}} {
		for _, k := range kinds() {
			paths := Lossy(k.name, way[0], way[1])
			if len(paths) == 0 {
				if _, err := fmt.Fprintf(w, "A %s that is converted from %s to %s loses nothing.\n\n", k.name,
					way[0], way[1]); err != nil {
					return err
				}
				continue
			}
			_, err := fmt.Fprintf(w, "A %s that is converted from %s to %s can lose:\n\n```text\n", k.name, way[0], way[1])
			if err != nil {
				return err
			}
			for _, path := range paths {
				if _, err := fmt.Fprintln(w, path); err != nil {
					return err
				}
			}
			if _, err := fmt.Fprint(w, "```\n\n"); err != nil {
				return err
			}
		}
	}
	return nil
}
