// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/hookgate/hookgate/hook"
)

// version and commit are set by the linker, as the Makefile does: -ldflags "-X
// github.com/hookgate/hookgate/command.version=v1.2.3".
var version, commit string

// buildInfo describes the build of this binary.
type buildInfo struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Modified bool   `json:"modified"` // there were uncommitted changes
	Go       string `json:"goVersion"`
	Platform string `json:"platform"`
	HooksAPI string `json:"hooksAPIVersion"`
}

// currentBuild reads the build information that the linker and the go command put into the binary.
func currentBuild() buildInfo {
	b := buildInfo{
		Version: version, Commit: cmp.Or(commit, "unknown"), Go: runtime.Version(),
		Platform: runtime.GOOS + "/" + runtime.GOARCH,
		HooksAPI: hook.APIVersion,
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		if b.Version == "" {
			b.Version = info.Main.Version
		}
		for _, s := range info.Settings {
			switch s.Key {
			case "vcs.revision":
				b.Commit = cmp.Or(commit, s.Value)
			case "vcs.modified":
				b.Modified = s.Value == "true"
			}
		}
	}
	if b.Version == "" {
		b.Version = "(devel)"
	}
	return b
}

// userAgent returns the User-Agent of the client.
func userAgent() string { return "hookgate/" + currentBuild().Version }

func newVersionCommand() *cobra.Command {
	var output string
	cmd := &cobra.Command{
		Use:     "version",
		Short:   "Print the version of this binary",
		Example: "  hookgate version\n  hookgate version -o json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return printVersion(cmd.OutOrStdout(), currentBuild(), output)
		},
	}
	cmd.Flags().StringVarP(&output, "output", "o", "text", "format: text or json")
	return cmd
}

func printVersion(w io.Writer, b buildInfo, output string) error {
	switch output {
	case "json":
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(b)
	case "text":
		from := b.Commit
		if b.Modified {
			from += " and changes"
		}
		t := tabwriter.NewWriter(w, 0, 0, 3, ' ', 0)
		_, _ = fmt.Fprintf(t, "hookgate\t%s\ncommit\t%s\nbuilt with\t%s for %s\nhooks\t%s\n", b.Version, from, b.Go,
			b.Platform, b.HooksAPI)
		return t.Flush()
	default:
		return usagef("--output %q: want text or json", output)
	}
}
