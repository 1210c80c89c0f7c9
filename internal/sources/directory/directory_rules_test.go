// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookgate/hookgate/internal/base/status"
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
		rules := s.objects().Rules
		return slices.ContainsFunc(rules, func(r status.InProcess) bool {
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

	// It precedes an ExtensionConfig of the same name.
	writeFile(t, s.dir, "a.yaml", config("frozen", urlA)+"---\n"+config("acme", urlA))
	s.eventuallyRegisters(t, `ExtensionConfig "acme"`, `HookRule "frozen"`)
	writeFile(t, s.dir, "a.yaml", config("acme", urlA))
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
	s.eventuallyLogs(t, "directory is emptied", "no longer defines HookRule", "hookRules=1")
	s.eventuallyRegisters(t, `HookRule "frozen"`)
	s.directory.Reload()
	s.eventuallyRegisters(t)
}

// A rule with a mistake and without a valid version before it closes its hook, at the start and later.
func TestDirectoryClosesRules(t *testing.T) {
	s := newSource(t, nil)
	writeFile(t, s.dir, "r.yaml", ruleOf("frozen", "request.nothing"))
	s.run(t)
	s.eventuallyCloses(t, "at the start", `HookRule "frozen": frozen BeforeClusterUpgrade`)
	s.eventuallyRegisters(t, `HookRule "frozen"`) // so that callers see its handler
	writeFile(t, s.dir, "q.yaml", ruleOf("Later", "request.nothing"))
	s.eventuallyLists(t, "Later", "Invalid")
	s.eventuallyCloses(t, "later", `HookRule "Later": BeforeClusterUpgrade`, `HookRule "frozen": frozen BeforeClusterUpgrade`)
	writeFile(t, s.dir, "r.yaml", ruleOf("frozen", `"no"`))
	s.eventuallyLists(t, "frozen", "Ready")
	s.eventuallyCloses(t, "it is corrected", `HookRule "Later": BeforeClusterUpgrade`)
	s.remove(t, "q.yaml")
	s.eventuallyCloses(t, "it is deleted")
}

// What was valid last stays in effect after a restart, and is forgotten when it is deleted.
func TestDirectoryKeepsWhatWasValid(t *testing.T) {
	kept := t.TempDir()
	valid := map[string]string{
		"rule.yaml": ruleOf("frozen", `"no"`),
		"policy.yaml": "apiVersion: hookgate.dev/v1alpha1\nkind: ExtensionPolicy\nmetadata: {name: p}\n" +
			"spec: {targetRef: {name: acme}, timeoutSeconds: 7}\n",
		"chain.yaml": "apiVersion: hookgate.dev/v1alpha1\nkind: HandlerChain\nmetadata: {name: c}\n" +
			"spec: {hook: GeneratePatches, steps: [{handler: a.acme}]}\n",
		"acme.yaml":    config("acme", urlA),
		"rollout.yaml": rolloutOf(""),
	}
	before := newStateSource(t, kept)
	for name, content := range valid {
		writeFile(t, before.dir, name, content)
	}
	stop := before.start(t)
	before.eventuallyRegisters(t, `HookRule "frozen"`)
	process.Eventually(t, "all are kept", func() bool {
		entries, _ := os.ReadDir(filepath.Join(kept, validDir))
		return len(entries) == len(valid)
	})
	stop()

	after := newStateSource(t, kept)
	after.Extensions.Serve(urlA, "v")
	for name, content := range valid {
		writeFile(t, after.dir, name, strings.Replace(content, "spec:", "spek: {}\nspec:", 1))
	}
	writeFile(t, after.dir, "rule.yaml", "kind: [\n") // which could be anything
	stop = after.start(t)
	after.eventuallyRegisters(t, `ExtensionConfig "acme"`, `HookRule "frozen"`)
	after.eventuallyCloses(t, "nothing is closed")
	after.eventuallyAwaits(t, "nothing is awaited")
	s := after.Registry.Snapshot()
	if p := s.Policies("acme").All; p == nil || p.Timeout != 7*time.Second {
		t.Errorf("the policy is %+v", p)
	}
	if _, ok := s.Chain("c"); !ok {
		t.Error("the chain is gone")
	}
	if _, ok := s.Rollout("acme"); !ok {
		t.Error("the rollout is gone")
	}
	after.remove(t, "rule.yaml")
	after.eventuallyRegisters(t, `ExtensionConfig "acme"`)
	writeFile(t, after.dir, "rule.yaml", ruleOf("frozen", "request.nothing"))
	after.eventuallyCloses(t, "what was deleted is not remembered", `HookRule "frozen": frozen BeforeClusterUpgrade`)
	stop()

	last := newStateSource(t, kept)
	last.Extensions.Serve(urlA, "v")
	writeFile(t, last.dir, "rule.yaml", ruleOf("frozen", "request.nothing"))
	writeFile(t, last.dir, "acme.yaml", config("acme", urlA))
	defer last.start(t)()
	last.eventuallyCloses(t, "nor after a restart", `HookRule "frozen": frozen BeforeClusterUpgrade`)
}

// eventuallyCloses waits until these are closed, each with the names and the hooks that it closes.
func (s *source) eventuallyCloses(t *testing.T, reason string, want ...string) {
	t.Helper()
	process.Eventually(t, reason+": "+strings.Join(want, ", "), func() bool {
		var got []string
		for _, c := range s.Registry.Snapshot().Closures() {
			all := slices.Concat(c.Extensions, c.Handlers)
			for _, gh := range c.Hooks {
				all = append(all, gh.Hook)
			}
			got = append(got, c.String()+": "+strings.Join(all, " "))
		}
		return slices.Equal(got, want)
	})
}
