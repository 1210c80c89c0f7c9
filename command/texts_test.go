// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"encoding/json"
	"strings"
	"testing"

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
			got := hookgate(t, `{}`, append(strings.Fields(command), url)...)
			if got.code == cmdline.ExitDone || strings.Contains(got.out+got.errOut, "hunter2") {
				t.Errorf("%s %s: exit status %d:\n%s%s", command, url, got.code, got.out, got.errOut)
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
	f := newFakeServer(t, map[string]fakeReply{"BeforeClusterCreate": {
		body: reply("BeforeClusterCreate", `"status":"Success","retryAfterSeconds":0,"message":`+string(message)+`,"`+evil+`":`+string(message)),
	}})
	const request = `{"cluster":{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"name":"c","namespace":"n"}}}`
	for _, format := range []string{cmdline.FormatTable, cmdline.FormatYAML, cmdline.FormatJSON} {
		for _, server := range []string{f.http.URL, "grpcs://" + f.grpcs} {
			got := hookgate(t, request, "call", "BeforeClusterCreate", "-f", "-", "--server", server, "--ca", f.caFile, "-o", format)
			if got.code != cmdline.ExitDone || got.out == "" {
				t.Fatalf("%s %s: exit status %d: %s", server, format, got.code, got.errOut)
			}
			if strings.ContainsFunc(got.out, func(r rune) bool { return text.IsControl(r) && r != '\n' }) {
				t.Errorf("%s %s: %q", server, format, got.out)
			}
			if !strings.Contains(got.out, `\u202e`) {
				t.Errorf("%s %s: the message is missing:\n%s", server, format, got.out)
			}
			if format == cmdline.FormatTable {
				continue
			}
			read, err := yaml.ToJSON([]byte(got.out), 1<<20)
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
