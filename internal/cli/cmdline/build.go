// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdline

import (
	"cmp"
	"runtime"
	"runtime/debug"

	"github.com/hookgate/hookgate/hook"
)

// version and commit are what the linker knows; empty if it knows neither.
var version, commit string

// Stamp sets the version and the commit of the build that the linker knows. Call it before anything else.
func Stamp(v, c string) { version, commit = v, c }

// BuildInfo describes the build of this binary.
type BuildInfo struct {
	Version  string `json:"version"`
	Commit   string `json:"commit"`
	Modified bool   `json:"modified"` // there were uncommitted changes
	Go       string `json:"goVersion"`
	Platform string `json:"platform"`
	HooksAPI string `json:"hooksAPIVersion"`
}

// CurrentBuild reads the build information that the linker and the go command put into the binary.
func CurrentBuild() BuildInfo {
	b := BuildInfo{
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

// UserAgent returns the User-Agent of the client.
func UserAgent() string { return "hookgate/" + CurrentBuild().Version }
