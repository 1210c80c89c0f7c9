// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/hookgate/hookgate/gateway"
)

// ManPages returns the man pages of hookgate and of each of its commands, by the names of their files, such as
// hookgate-get-routes.1. The same version and groups give the same pages. The error is a mistake in the groups.
func ManPages(version string, groups ...gateway.Group) (map[string][]byte, error) {
	root, err := newRootCommand(func(*cobra.Command) error { return nil }, groups...)
	if err != nil {
		return nil, err
	}
	root.InitDefaultCompletionCmd()
	root.DisableAutoGenTag = true // which has the date
	pages := map[string][]byte{}
	return pages, addManPages(pages, root, "hookgate "+version)
}

// addManPages adds the page of a command, and those of the commands below it.
func addManPages(pages map[string][]byte, cmd *cobra.Command, source string) error {
	name := strings.ReplaceAll(cmd.CommandPath(), " ", "-")
	var page bytes.Buffer
	header := &doc.GenManHeader{
		Title: strings.ToUpper(name), Section: "1", Date: &time.Time{}, Source: source, Manual: "Hookgate",
	}
	if err := doc.GenMan(cmd, header, &page); err != nil {
		return fmt.Errorf("man page %s: %w", name, err)
	}
	// A page needs a date, or an empty one, which doc cannot write.
	pages[name+".1"] = bytes.Replace(page.Bytes(), []byte(`"Jan 0001"`), []byte(`""`), 1)
	for _, sub := range cmd.Commands() {
		if sub.IsAvailableCommand() {
			if err := addManPages(pages, sub, source); err != nil {
				return err
			}
		}
	}
	return nil
}
