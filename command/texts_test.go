// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/base/yaml"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// A password in a URL is in no message, whichever way the URL is wrong.
func TestPasswordsAreNotPrinted(t *testing.T) {
	const call = "call BeforeClusterCreate -f - --server"
	for _, command := range []string{"get handlers --server", "check", call, "serve --cert-dir x --sidecar"} {
		for _, url := range []string{
			"https://user:hunter2@127.0.0.1:1", "https://user:hunter2@127.0.0.1:port", "https://user:hun/hunter2@x",
			"https://user:hunter2 x@h", "grpc://user:hunter2@127.0.0.1", "user:hunter2@127.0.0.1", "ftp://user:hunter2@h",
			"unix://user:hunter2@h/x", "https://user:%hunter2@h",
		} {
			got := commandtest.Hookgate(t, `{}`, append(strings.Fields(command), url)...)
			if got.Code == cmdline.ExitDone || strings.Contains(got.Out+got.ErrOut, "hunter2") {
				t.Errorf("%s %s: exit status %d:\n%s%s", command, url, got.Code, got.Out, got.ErrOut)
			}
		}
	}
}

// No output of a command, in whatever format, can change the direction of what a reader sees, or control a terminal.
func TestOutputsAreEscaped(t *testing.T) {
	const evil = "a\u202eb\u2066c\u200ed\u061ce\u009bf"
	message, err := json.Marshal(evil)
	if err != nil {
		t.Fatal(err)
	}
	f := commandtest.NewFakeServer(t, map[string]commandtest.FakeReply{"BeforeClusterCreate": {
		Body: commandtest.Reply("BeforeClusterCreate", `"status":"Success","retryAfterSeconds":0,"message":`+string(message)+`,"`+evil+`":`+string(message)),
	}})
	const request = `{"cluster":{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"name":"c","namespace":"n"}}}`
	for _, format := range []string{cmdline.FormatTable, cmdline.FormatYAML, cmdline.FormatJSON} {
		for _, server := range []string{f.HTTP.URL, "grpcs://" + f.GRPCS} {
			got := commandtest.Hookgate(t, request, "call", "BeforeClusterCreate", "-f", "-", "--server", server, "--ca", f.CAFile, "-o", format)
			if got.Code != cmdline.ExitDone || got.Out == "" {
				t.Fatalf("%s %s: exit status %d: %s", server, format, got.Code, got.ErrOut)
			}
			if strings.ContainsFunc(got.Out, func(r rune) bool { return text.IsControl(r) && r != '\n' }) {
				t.Errorf("%s %s: %q", server, format, got.Out)
			}
			if !strings.Contains(got.Out, `\u202e`) {
				t.Errorf("%s %s: the message is missing:\n%s", server, format, got.Out)
			}
			if format == cmdline.FormatTable {
				continue
			}
			read, err := yaml.ToJSON([]byte(got.Out), 1<<20)
			if err != nil {
				t.Fatal(err)
			}
			var answer map[string]any
			if err := json.Unmarshal(read, &answer); err != nil || answer["message"] != evil || answer[evil] != evil {
				t.Errorf("%s %s: reads as %v, %v", server, format, answer, err)
			}
		}
	}
}
