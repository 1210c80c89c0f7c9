// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"encoding/json"
	"runtime"
	"testing"

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

func TestPrintVersion(t *testing.T) {
	b := cmdline.BuildInfo{Version: "v1.2.3", Commit: "0a1b2c", Modified: true, Go: "go1.26.0", Platform: "linux/amd64", HooksAPI: hook.APIVersion}
	for _, format := range []string{"text", "json"} {
		var out bytes.Buffer
		if err := printVersion(&out, b, format); err != nil {
			t.Fatal(err)
		}
		commandtest.Golden(t, "version/version."+format, out.String())
	}
}

func TestVersionCommand(t *testing.T) {
	got := commandtest.Hookgate(t, "", "version", "-o", "json")
	var b cmdline.BuildInfo
	if err := json.Unmarshal([]byte(got.Out), &b); err != nil || got.Code != cmdline.ExitDone {
		t.Fatalf("%v: %+v", err, got)
	}
	if b.Version == "" || b.Commit == "" || b.Go != runtime.Version() || b.HooksAPI != hook.APIVersion {
		t.Errorf("got %+v, want every member set", b)
	}
	if got, want := commandtest.Hookgate(t, "", "--version"), "hookgate "+b.Version+"\n"; got.Out != want || got.Code != cmdline.ExitDone {
		t.Errorf("--version: got %+v, want %q", got, want)
	}
	if got := commandtest.Hookgate(t, "", "version", "-o", "xml"); got.Code != cmdline.ExitUsage {
		t.Errorf("-o xml: got %+v, want a usage error", got)
	}
}
