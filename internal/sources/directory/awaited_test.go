// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/sources/discovery/discoverytest"
	"github.com/hookgate/hookgate/registry"
	"github.com/hookgate/hookgate/test/process"
)

// eventuallyAwaits waits until the handlers of these are not known, each with what that means for calls.
func (s *source) eventuallyAwaits(t *testing.T, reason string, want ...string) {
	t.Helper()
	process.Eventually(t, reason+": "+strings.Join(want, ", "), func() bool {
		var got []string
		for _, u := range s.Registry.Snapshot().Undiscovered() {
			if !u.Aside {
				got = append(got, u.String()+" "+string(u.Default))
			}
		}
		return slices.Equal(got, want)
	})
}

// Calls wait for what was there at the start, until it is known or gone, and not for what comes later.
func TestExtensionsThatWereThereAtTheStartAreAwaited(t *testing.T) {
	s := newSource(t, nil)
	writeFile(t, s.dir, "a.yaml", config("acme", urlA))
	writeFile(t, s.dir, "b.yaml", config("other", urlB))
	writeFile(t, s.dir, "invalid.yaml", config("invalid", "http://plain.example"))
	writeFile(t, s.dir, "paused.yaml", strings.Replace(config("paused", urlB), "  name: paused", "  name: paused\n  annotations: {cluster.x-k8s.io/paused: ''}", 1))
	s.run(t)
	s.eventuallyReady(t)
	s.eventuallyAwaits(t, "what is paused does not count, what has a mistake does", `ExtensionConfig "acme" Fail`,
		`ExtensionConfig "invalid" Fail`, `ExtensionConfig "other" Fail`)
	if got := s.Registry.Snapshot().Awaited("v.paused", hook.GroupHook{}); got != `ExtensionConfig "paused" has not been discovered: it is paused` {
		t.Errorf("got %q", got)
	}
	s.eventuallyLogs(t, "extensionConfig=acme", "nothing is served for it yet; calls to all handlers of a hook fail")

	writeFile(t, s.dir, "late.yaml", config("late", urlB))
	writeFile(t, s.dir, "paused.yaml", config("paused", urlB))
	writeFile(t, s.dir, "invalid.yaml", config("invalid", urlB))
	writeFile(t, s.dir, "b.yaml", config("other", urlB, "  settings: {a: b}"))
	s.eventuallyAwaits(t, "what was there counts from now on", `ExtensionConfig "acme" Fail`, `ExtensionConfig "invalid" Fail`,
		`ExtensionConfig "late" Ignore`, `ExtensionConfig "other" Fail`, `ExtensionConfig "paused" Fail`)

	s.Extensions.Serve(urlA, "v")
	s.eventuallyAwaits(t, "it is known now", `ExtensionConfig "invalid" Fail`, `ExtensionConfig "late" Ignore`,
		`ExtensionConfig "other" Fail`, `ExtensionConfig "paused" Fail`)
	for _, file := range []string{"b.yaml", "invalid.yaml", "paused.yaml"} {
		if err := os.Remove(filepath.Join(s.dir, file)); err != nil {
			t.Fatal(err)
		}
	}
	s.eventuallyAwaits(t, "they are deleted", `ExtensionConfig "late" Ignore`)
	writeFile(t, s.dir, "b.yaml", config("other", urlB))
	s.eventuallyAwaits(t, "it is a new one", `ExtensionConfig "late" Ignore`, `ExtensionConfig "other" Ignore`)
	s.Extensions.Down(urlA)
	writeFile(t, s.dir, "a.yaml", config("acme", urlA, "  settings: {a: b}"))
	s.eventuallyServes(t, "v.acme "+urlA)
}

// An extension that the gateway may not call, because that is the gateway itself, is not awaited.
func TestWhatMayNotBeCalledIsNotAwaited(t *testing.T) {
	s := newSource(t, nil)
	s.Extensions.Set(urlA, func(context.Context) (extension.Discovered, error) {
		return extension.Discovered{}, hook.Errorf(hook.Loop, "the call has come back to this gateway")
	})
	writeFile(t, s.dir, "a.yaml", config("acme", urlA))
	s.run(t)
	s.eventuallyReady(t)
	s.eventuallyAwaits(t, "nobody else would be asked")
	s.Extensions.Down(urlA)
	s.eventuallyAwaits(t, "it may be another one", `ExtensionConfig "acme" Fail`)
}

// A manifest that cannot be read at the start may define an extension, as it may have done before a restart.
func TestManifestsThatCannotBeReadAtTheStartAreAwaited(t *testing.T) {
	s := newSource(t, nil)
	broken := "kind: [\n"
	writeFile(t, s.dir, "broken.yaml", broken)
	writeFile(t, s.dir, "empty.yaml", "")
	writeFile(t, s.dir, "other.yaml", "kind: Nothing\n") // which is no ExtensionConfig
	s.run(t)
	s.eventuallyReady(t)
	s.eventuallyAwaits(t, "both may define one", `manifest "broken.yaml" Fail`, `manifest "empty.yaml" Fail`)
	writeFile(t, s.dir, "late.yaml", broken)
	writeFile(t, s.dir, "empty.yaml", config("acme", urlA))
	s.eventuallyAwaits(t, "it was there at the start, and what comes later is not understood either", `ExtensionConfig "acme" Fail`,
		`manifest "broken.yaml" Fail`, `manifest "late.yaml" Fail`)
	if err := os.Remove(filepath.Join(s.dir, "broken.yaml")); err != nil {
		t.Fatal(err)
	}
	s.eventuallyAwaits(t, "it is deleted", `ExtensionConfig "acme" Fail`, `manifest "late.yaml" Fail`)
	writeFile(t, s.dir, "late.yaml", config("late", urlB))
	s.eventuallyAwaits(t, "it came later", `ExtensionConfig "acme" Fail`, `ExtensionConfig "late" Ignore`)
}

// newStateSource returns a source that keeps what it knows in a directory.
func newStateSource(t *testing.T, dir string) *source {
	t.Helper()
	return newSourceWith(t, nil, dir)
}

// start runs the source until the function that it returns is called.
func (s *source) start(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.directory.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	}
}

// What was discovered is served after a restart, although the extension is down, and what never was hurts only itself.
func TestStateSurvivesARestart(t *testing.T) {
	kept := filepath.Join(t.TempDir(), "state")
	s := newStateSource(t, kept)
	writeFile(t, s.dir, "a.yaml", config("acme", urlA))
	s.start(t)()
	s = newStateSource(t, kept)
	writeFile(t, s.dir, "a.yaml", config("acme", urlA))
	stop := s.start(t)
	s.eventuallyAwaits(t, "a state without anything says nothing", `ExtensionConfig "acme" Fail`)
	s.Extensions.Serve(urlA, "v", "w")
	s.Extensions.Set(urlB, func(context.Context) (extension.Discovered, error) { return extension.Discovered{}, nil })
	writeFile(t, s.dir, "b.yaml", config("none", urlB))
	s.eventuallyServes(t, "v.acme "+urlA, "w.acme "+urlA)
	process.Eventually(t, "both are kept", func() bool {
		files, err := filepath.Glob(filepath.Join(kept, "*.json"))
		return err == nil && len(files) == 2
	})
	stop()
	info, err := os.Stat(filepath.Join(kept, "acme.json"))
	if dir, dirErr := os.Stat(kept); err != nil || dirErr != nil || info.Mode().Perm() != 0o600 || dir.Mode().Perm() != 0o700 {
		t.Errorf("the modes are %v and %v (%v, %v)", info.Mode(), dir.Mode(), err, dirErr)
	}

	s = newStateSource(t, kept)
	writeFile(t, s.dir, "a.yaml", config("acme", urlA))
	writeFile(t, s.dir, "b.yaml", config("none", urlB))
	writeFile(t, s.dir, "c.yaml", config("never", urlB))
	stop = s.start(t)
	s.eventuallyReady(t)
	s.eventuallyServes(t, "v.acme "+urlA, "w.acme "+urlA)
	s.eventuallyAwaits(t, "one had no handlers, and one was never discovered", `ExtensionConfig "never" Ignore`)
	for _, file := range []string{"a.yaml", "b.yaml"} {
		if err := os.Remove(filepath.Join(s.dir, file)); err != nil {
			t.Fatal(err)
		}
	}
	process.Eventually(t, "what is deleted is forgotten", func() bool {
		files, err := filepath.Glob(filepath.Join(kept, "*.json"))
		return err == nil && len(files) == 0
	})
	stop()
}

// Handlers are called where they were discovered, also after a restart, and the time of the change is kept.
func TestStateSaysWhereHandlersAre(t *testing.T) {
	kept := t.TempDir()
	s := newStateSource(t, kept)
	s.Extensions.Serve(urlA, "v")
	writeFile(t, s.dir, "a.yaml", config("acme", urlA))
	stop := s.start(t)
	s.eventuallyServes(t, "v.acme "+urlA)
	has := func(part string) {
		t.Helper()
		process.Eventually(t, part+" is kept", func() bool {
			text, err := os.ReadFile(filepath.Join(kept, "acme.json"))
			return err == nil && strings.Contains(string(text), part)
		})
	}
	has(urlA)
	stop()

	var pending []registry.Pending
	for range 2 {
		s = newStateSource(t, kept)
		writeFile(t, s.dir, "a.yaml", config("acme", urlB)) // changed while the gateway was away
		stop = s.start(t)
		s.eventuallyReady(t)
		s.eventuallyServes(t, "v.acme "+urlA)
		reg, _ := s.Registry.Snapshot().Registration("acme")
		if reg.Pending == nil {
			t.Fatal("nothing says that this is the previous URL")
		}
		pending = append(pending, *reg.Pending)
		has("since")
		stop()
	}
	if pending[0] != pending[1] || pending[0].URL != urlB {
		t.Errorf("got %v", pending)
	}
	s = newStateSource(t, kept)
	s.Extensions.Serve(urlB, "w")
	writeFile(t, s.dir, "a.yaml", config("acme", urlB))
	stop = s.start(t)
	s.eventuallyServes(t, "w.acme "+urlB)
	has(urlB)
	stop()
}

func TestStateThatCannotBeUsed(t *testing.T) {
	kept := t.TempDir()
	valid := `{"apiVersion":"runtime.cluster.x-k8s.io/v1beta2","kind":"ExtensionConfig","metadata":{"name":"NAME"},"status":{"handlers":[` +
		`{"name":"v.NAME","requestHook":{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","hook":"BeforeClusterCreate"}}]}}`
	for name, text := range map[string]string{
		"empty": "", "half": valid[:40], "foreign": `{"kind":"List"}`, "other": strings.ReplaceAll(valid, "NAME", "acme"),
		"handlers": strings.ReplaceAll(strings.Replace(valid, "v.NAME", "v", 1), "NAME", "handlers"),
		"right":    strings.ReplaceAll(valid, "NAME", "right"), "gone": strings.ReplaceAll(valid, "NAME", "gone"),
		"large": valid + strings.Repeat(" ", 1<<20),
	} {
		writeFile(t, kept, name+".json", text)
	}
	writeFile(t, kept, "notes.txt", "not ours")
	s := newStateSource(t, kept)
	unusable := []string{"empty", "foreign", "half", "handlers", "large", "other"}
	var want []string
	for _, name := range append([]string{"right", "never"}, unusable...) {
		writeFile(t, s.dir, name+".yaml", config(name, urlA))
	}
	for _, name := range unusable {
		want = append(want, `ExtensionConfig "`+name+`" Fail`)
	}
	s.run(t)
	s.eventuallyReady(t)
	s.eventuallyServes(t, "v.right "+urlA)
	want = append(want[:5:5], `ExtensionConfig "never" Ignore`, want[5])
	s.eventuallyAwaits(t, "they were discovered once", want...)
	for _, name := range unusable {
		s.eventuallyLogs(t, "level=WARN", "state cannot be used", "extensionConfig="+name)
	}
	if _, err := os.Stat(filepath.Join(kept, "gone.json")); err == nil {
		t.Error("what no manifest defines any more is kept")
	}
	if _, err := os.Stat(filepath.Join(kept, "notes.txt")); err != nil {
		t.Error("a file that is not the state's is removed")
	}
	s.Extensions.Serve(urlA, "v")
	s.eventuallyAwaits(t, "all are known")
	process.Eventually(t, "they are written anew", func() bool {
		of, err := s.directory.state.read("half")
		return err == nil && len(of.handlers) == 1
	})
}

// A directory that is empty at the start is emptied if the state has ExtensionConfigs, until that is confirmed.
func TestDirectoryThatIsEmptyAtTheStart(t *testing.T) {
	kept := t.TempDir()
	s := newStateSource(t, kept)
	s.directory.state.save(&registry.Registration{
		Name: "acme", ClientConfig: registry.ClientConfig{URL: urlA}, Handlers: discoverytest.Handlers("v"),
	}, true)
	for _, confirmed := range []bool{false, true} {
		s = newStateSource(t, kept)
		s.directory.reread = 50 * time.Millisecond
		stop := s.start(t)
		s.eventuallyReady(t)
		s.eventuallyAwaits(t, "a mount may be missing", "the directory of manifests, which is empty Fail")
		if !strings.Contains(s.directory.Warning().Text, "calls to all handlers of a hook fail until SIGHUP confirms the removal") {
			t.Errorf("the warning is %q", s.directory.Warning().Text)
		}
		if confirmed {
			s.directory.Reload()
			s.eventuallyAwaits(t, "it is confirmed")
			stop()
			break
		}
		writeFile(t, s.dir, "a.yaml", config("acme", urlA))
		s.eventuallyServes(t, "v.acme "+urlA)
		s.eventuallyAwaits(t, "the mount is back")
		stop()
	}
	if files, err := filepath.Glob(filepath.Join(kept, "*")); err != nil || len(files) > 0 {
		t.Errorf("kept %v (%v)", files, err)
	}
}

func TestStateThatCannotBeKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	writeFile(t, filepath.Dir(file), "file", "")
	logs := &discoverytest.Logs{}
	if _, err := openState(file, catalog.New(), logs.Logger()); err == nil || !strings.Contains(err.Error(), file) {
		t.Errorf("got %v", err)
	}
	s, err := openState(filepath.Join(filepath.Dir(file), "dir"), catalog.New(), logs.Logger())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(s.file("acme"), 0o700); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		s.save(&registry.Registration{Name: "acme", Handlers: discoverytest.Handlers("v")}, true)
	}
	if got := logs.Lines("level=ERROR", "state cannot be written", "extensionConfig=acme"); len(got) != 1 {
		t.Errorf("logged %q", got)
	}
}
