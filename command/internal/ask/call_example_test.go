// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ask_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// TestCallExample sends the example of each hook back to a server, which gets it whole.
func TestCallExample(t *testing.T) {
	replies := map[string]commandtest.FakeReply{}
	for _, h := range commandtest.AllHooks.Hooks() {
		replies[h.Hook] = commandtest.FakeReply{Body: commandtest.Reply(h.Hook, `"status":"Success"`)}
	}
	f := commandtest.NewFakeServer(t, replies)
	for _, h := range commandtest.AllHooks.Hooks() {
		example := commandtest.Hookgate(t, "", "call", strings.ToLower(h.Hook), "--example")
		if example.Code != cmdline.ExitDone || !strings.HasPrefix(example.Out, "# ") || strings.Contains(example.Out, "examples/") {
			t.Fatalf("%s: exit status %d, %s\n%s", h, example.Code, example.ErrOut, example.Out)
		}
		got := commandtest.Hookgate(t, example.Out, append([]string{"call", h.Hook, "-f", "-"}, f.Servers()["https"]...)...)
		if _, _, body := f.Asked(); got.Code != cmdline.ExitDone || !strings.Contains(body, `"kind":"`+h.Hook+`Request"`) {
			t.Errorf("%s: exit status %d, %s\nsent %s", h, got.Code, got.ErrOut, body)
		}
	}
	got := commandtest.Hookgate(t, "", "call", "BeforeClusterUpgrade", "--example", "-o", "json")
	for _, want := range []string{`  "toKubernetesVersion": "v1.34.0",`, `"value": 9007199254740993`} {
		if !json.Valid([]byte(got.Out)) || !strings.Contains(got.Out, want) {
			t.Errorf("as JSON: no %s in\n%s%s", want, got.Out, got.ErrOut)
		}
	}
	if got := commandtest.Hookgate(t, "", "call", "Discovery", "--example", "-o", "wide"); got.Code != cmdline.ExitUsage || got.Out != "" {
		t.Errorf("with another format: exit status %d, %s", got.Code, got.Out)
	}
	if got := commandtest.Hookgate(t, "", "call", "Discovery", "--example", "-f", "x"); got.Code != cmdline.ExitUsage || got.Out != "" {
		t.Errorf("with -f: exit status %d, %s", got.Code, got.Out)
	}
}
