// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"slices"

	"github.com/hookgate/hookgate/command"
)

// manPagesFile is the archive of the man pages, in the folders that they are installed in below /usr/local or /usr.
const manPagesFile = "hookgate-man-pages.tar.gz"

// manPages returns the archive of the man pages.
func (o *options) manPages() ([]byte, error) {
	pages, err := command.ManPages(o.version)
	if err != nil {
		return nil, err
	}
	var members []member
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		members = append(members, member{"share/man/man1/" + name, 0o644, pages[name]})
	}
	return pack(members)
}
