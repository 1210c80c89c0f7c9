// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"
	"testing"

	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// TestCallExample sends the example of each hook back to a server, which gets it whole.
func TestCallExample(t *testing.T) {
	replies := map[string]fakeReply{}
	for _, h := range allHooks.Hooks() {
		replies[h.Hook] = fakeReply{body: reply(h.Hook, `"status":"Success"`)}
	}
	f := newFakeServer(t, replies)
	for _, h := range allHooks.Hooks() {
		example := hookgate(t, "", "call", strings.ToLower(h.Hook), "--example")
		if example.code != cmdline.ExitDone || !strings.HasPrefix(example.out, "# ") || strings.Contains(example.out, "examples/") {
			t.Fatalf("%s: exit status %d, %s\n%s", h, example.code, example.errOut, example.out)
		}
		got := hookgate(t, example.out, append([]string{"call", h.Hook, "-f", "-"}, f.servers()["https"]...)...)
		if _, _, body := f.asked(); got.code != cmdline.ExitDone || !strings.Contains(body, `"kind":"`+h.Hook+`Request"`) {
			t.Errorf("%s: exit status %d, %s\nsent %s", h, got.code, got.errOut, body)
		}
	}
	if got := hookgate(t, "", "call", "Discovery", "--example", "-f", "x"); got.code != cmdline.ExitUsage || got.out != "" {
		t.Errorf("with -f: exit status %d, %s", got.code, got.out)
	}
}
