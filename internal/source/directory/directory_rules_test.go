// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/internal/status"
	"github.com/hookgate/hookgate/test/process"
)

// ruleOf is the manifest of a rule that fails with an expression as its message.
func ruleOf(name, message string) string {
	return "apiVersion: hookgate.dev/v1alpha1\nkind: HookRule\nmetadata: {name: " + name + "}\nspec:\n  hook: BeforeClusterUpgrade\n  fail:\n  - {if: 'true', message: '" + message + "'}\n"
}

// registered returns what the snapshot says of its registrations, by name.
func (s *source) registered() map[string]string {
	m := map[string]string{}
	for _, r := range s.Registry.Snapshot().Registrations() {
		m[r.Name] = r.Describe()
	}
	return m
}

func (s *source) eventuallyRegisters(t *testing.T, want ...string) {
	t.Helper()
	process.Eventually(t, "registered are "+strings.Join(want, ", "), func() bool {
		return slices.Equal(slices.Sorted(maps.Values(s.registered())), want)
	})
}

// eventuallyLists waits until the status has one rule, with this reason and a message with these words.
func (s *source) eventuallyLists(t *testing.T, name, reason string, words ...string) {
	t.Helper()
	process.Eventually(t, "the status says "+reason+" of "+name, func() bool {
		rules, _ := s.directory.Rules()
		return slices.ContainsFunc(rules, func(r status.Local) bool {
			return r.Name == name && r.Reason == reason && (r.Hook == "BeforeClusterUpgrade" || reason == "Invalid") &&
				!slices.ContainsFunc(words, func(word string) bool { return !strings.Contains(r.Message, word) })
		})
	})
}

// A rule is registered as long as its file says so: as it is now, and as it was valid last while the file has a mistake.
func TestDirectoryRules(t *testing.T) {
	s := newSource(t, nil)
	s.Extensions.Serve(urlA, "v")
	file := filepath.Join(s.dir, "r.yaml")
	writeFile(t, s.dir, "r.yaml", ruleOf("frozen", `"no"`))
	s.run(t)
	s.eventuallyRegisters(t, `HookRule "frozen"`)
	s.eventuallyLogs(t, "level=INFO", "rule is ready", "hookRule=frozen", "at="+file+":1", "Answers BeforeClusterUpgrade as handler rule.frozen")
	s.eventuallyLists(t, "frozen", "Ready")
	first, _ := s.Registry.Snapshot().Registration("frozen")

	writeFile(t, s.dir, "r.yaml", ruleOf("frozen", "request.nothing"))
	s.eventuallyLogs(t, "manifest is wrong", file+":7", "spec.fail[0].message", "undefined field 'nothing'", "the last valid state stays in use")
	s.eventuallyLists(t, "frozen", "Invalid", "spec.fail[0].message", "the last valid state stays in use")
	writeFile(t, s.dir, "r.yaml", "# The same.\n"+ruleOf("frozen", `"no"`))
	s.eventuallyLists(t, "frozen", "Ready")
	if now, ok := s.Registry.Snapshot().Registration("frozen"); !ok || now != first {
		t.Errorf("a rule that did not change is registered anew: %p, was %p", now, first)
	}

	// An ExtensionConfig of the same name precedes it.
	writeFile(t, s.dir, "a.yaml", config("frozen", urlA))
	s.eventuallyRegisters(t, `ExtensionConfig "frozen"`)
	s.eventuallyLists(t, "frozen", "NameCollision", `the name of ExtensionConfig "frozen", too`)
	s.eventuallyLogs(t, "level=WARN", "rule is not ready", "hookRule=frozen", "reason=NameCollision")
	writeFile(t, s.dir, "b.yaml", config("acme", urlA)) // first, so that the directory is not taken for emptied
	s.remove(t, "a.yaml")
	s.eventuallyRegisters(t, `ExtensionConfig "acme"`, `HookRule "frozen"`)
	s.remove(t, "r.yaml")
	s.eventuallyRegisters(t, `ExtensionConfig "acme"`)
	s.eventuallyLogs(t, "rule removed", "hookRule=frozen")
}

// The rules of a directory without ExtensionConfigs stay registered if it is emptied, until a reload confirms that.
func TestDirectoryIsEmptiedOfRules(t *testing.T) {
	s := newSource(t, nil)
	writeFile(t, s.dir, "r.yaml", ruleOf("frozen", `"no"`))
	s.run(t)
	s.eventuallyRegisters(t, `HookRule "frozen"`)
	s.remove(t, "r.yaml")
	s.eventuallyLogs(t, "directory is emptied", "defines no HookRule any more", "hookRules=1")
	s.eventuallyRegisters(t, `HookRule "frozen"`)
	s.directory.Reload()
	s.eventuallyRegisters(t)
}

// A rule that was wrong when the gateway started may have been in effect before: calls wait for it. One that is wrong
// from its beginning never was.
func TestDirectoryAwaitsRules(t *testing.T) {
	s := newSource(t, nil)
	writeFile(t, s.dir, "r.yaml", ruleOf("frozen", "request.nothing"))
	s.run(t)
	awaited := func(want string) {
		t.Helper()
		process.Eventually(t, "awaited is "+want, func() bool {
			var names []string
			for _, u := range s.Registry.Snapshot().Undiscovered() {
				names = append(names, u.String())
			}
			return strings.Join(names, ", ") == want
		})
	}
	awaited(`HookRule "frozen"`)
	writeFile(t, s.dir, "q.yaml", ruleOf("later", "request.nothing"))
	s.eventuallyLists(t, "later", "Invalid")
	awaited(`HookRule "frozen"`)
	writeFile(t, s.dir, "r.yaml", ruleOf("frozen", `"no"`))
	s.eventuallyRegisters(t, `HookRule "frozen"`)
	awaited("")
}
