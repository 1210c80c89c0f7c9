// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/sources/discovery/discoverytest"
	"github.com/hookgate/hookgate/test/process"
)

// An ExtensionConfig for whose handlers there is no room is not served, and nothing goes on as if it had none, also if
// it comes late: calls by name say why, and calls to all handlers wait for it unless its policy says otherwise. It is
// served once others have gone. One that is served stays so with the handlers that it had when it wants too many.
func TestDirectoryBeyondTheSumOfHandlers(t *testing.T) {
	names := make([]string, limits.Handlers)
	for i := range names {
		names[i] = fmt.Sprintf("v%d", i)
	}
	s := newSource(t, nil)
	s.Extensions.Serve(urlA, names...)
	s.Extensions.Serve(urlB, names...)
	const small = "https://small.example.com"
	s.Extensions.Serve(small, "v")
	const full = limits.AllHandlers / limits.Handlers
	for i := range full {
		writeFile(t, s.dir, fmt.Sprintf("e%d.yaml", i), config(fmt.Sprintf("e%d", i), urlA))
	}
	writeFile(t, s.dir, "small.yaml", config("small", small))
	has := func(n int, extensionConfig string) {
		t.Helper()
		process.Eventually(t, fmt.Sprintf("%d handlers, with %s", n, extensionConfig), func() bool {
			now := s.Registry.Snapshot()
			_, ok := now.Registration(extensionConfig)
			return len(now.All()) == n && ok
		})
	}
	s.run(t)
	s.eventuallyReady(t)
	has(full*limits.Handlers+1, "small")

	writeFile(t, s.dir, "late.yaml", config("late", urlB))
	s.eventuallyAwaits(t, "it has handlers", `ExtensionConfig "late" Fail`)
	s.eventuallyLogs(t, "extensionConfig=late", "calls to all handlers of a hook fail", "too many handlers")
	process.Eventually(t, "calls say why", func() bool {
		want := fmt.Sprintf(`ExtensionConfig "late" has not been discovered: too many handlers: with the handlers of ExtensionConfig "late" (%d), `+
			"there would be %d in total; at most %d are allowed", limits.Handlers, (full+1)*limits.Handlers+1, limits.AllHandlers)
		return s.Registry.Snapshot().Awaited("v0.late", hook.GroupHook{}) == want
	})
	writeFile(t, s.dir, "late-policy.yaml", policyOf("late", "{name: late}", "onUndiscovered: Ignore"))
	process.Eventually(t, "its policy leaves it out", func() bool {
		now := s.Registry.Snapshot()
		all := now.Undiscovered()
		return len(all) == 1 && all[0].Effect(now.Policies("late").All) == hook.Ignore
	})

	s.Extensions.Set(small, func(context.Context) (extension.Discovered, error) {
		return extension.Discovered{Handlers: discoverytest.Handlers(names...)}, nil
	})
	writeFile(t, s.dir, "small.yaml", config("small", small, "  settings: {a: b}"))
	s.eventuallyLogs(t, "extensionConfig=small", "too many handlers", "its last known handlers are still served: 1")
	has(full*limits.Handlers+1, "small")

	for _, file := range []string{"e0.yaml", "small.yaml"} {
		if err := os.Remove(filepath.Join(s.dir, file)); err != nil {
			t.Fatal(err)
		}
	}
	has(full*limits.Handlers, "late")
	s.eventuallyAwaits(t, "it is served")
}
