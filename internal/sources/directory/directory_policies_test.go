// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/kinds/extensionpolicy"
	"github.com/hookgate/hookgate/internal/sources/discovery/discoverytest"
	"github.com/hookgate/hookgate/registry"
	"github.com/hookgate/hookgate/test/process"
)

// policyOf is the manifest of a policy.
func policyOf(name, target, setting string) string {
	return fmt.Sprintf("apiVersion: hookgate.dev/v1alpha1\nkind: ExtensionPolicy\nmetadata:\n  name: %s\nspec:\n  targetRef: %s\n  %s\n", name, target, setting)
}

// timeouts returns the timeouts of the registered handlers.
func (s *source) timeouts() map[string]string {
	m := map[string]string{}
	for _, e := range s.Registry.Snapshot().All() {
		m[e.Name] = e.Handler.Timeout.String()
	}
	return m
}

func (s *source) eventuallyHasTimeouts(t *testing.T, want map[string]string) {
	t.Helper()
	process.Eventually(t, fmt.Sprintf("timeouts %v", want), func() bool { return maps.Equal(s.timeouts(), want) })
}

func (s *source) remove(t *testing.T, name string) {
	t.Helper()
	if err := os.Remove(filepath.Join(s.dir, name)); err != nil {
		t.Fatal(err)
	}
}

func TestDirectoryPolicies(t *testing.T) {
	s := newSource(t, nil)
	s.Extensions.Serve(urlA, "v", "w")
	writeFile(t, s.dir, "a.yaml", config("acme", urlA))
	writeFile(t, s.dir, "p.yaml", policyOf("all", "{name: acme}", "timeoutSeconds: 3"))
	s.run(t)
	s.eventuallyHasTimeouts(t, map[string]string{"v.acme": "3s", "w.acme": "3s"})
	s.eventuallyLogs(t, "level=INFO", "policy is accepted", "extensionPolicy=all", "at="+filepath.Join(s.dir, "p.yaml:1"), `In effect for ExtensionConfig \"acme\"`)

	// A handler's own policy wins, and its deletion restores the ExtensionConfig's.
	writeFile(t, s.dir, "q.yaml", policyOf("own", "{name: acme, handler: w}", "timeoutSeconds: 5"))
	s.eventuallyHasTimeouts(t, map[string]string{"v.acme": "3s", "w.acme": "5s"})
	// One that comes second is reported, and takes over when the first goes.
	writeFile(t, s.dir, "r.yaml", policyOf("late", "{name: acme}", "timeoutSeconds: 7"))
	s.eventuallyLogs(t, "policy is accepted", "extensionPolicy=own")
	s.eventuallyLogs(t, "level=WARN", "policy is not accepted", "extensionPolicy=late", "reason=Conflicted", `ExtensionPolicy \"all\"`)
	s.remove(t, "p.yaml")
	s.eventuallyHasTimeouts(t, map[string]string{"v.acme": "7s", "w.acme": "5s"})
	s.eventuallyLogs(t, "policy is accepted", "extensionPolicy=late")
	s.eventuallyLogs(t, "policy removed", "extensionPolicy=all")

	// A bad policy hurts only itself, and what it said before stays.
	writeFile(t, s.dir, "r.yaml", policyOf("late", "{name: acme}", "timeoutSeconds: 70")+"---\n"+policyOf("never", "{name: acme, handler: v}", "matchConditions: [{name: a, expression: nobody}]"))
	s.eventuallyLogs(t, "level=ERROR", filepath.Join(s.dir, "r.yaml")+`:7: ExtensionPolicy \"late\": spec.timeoutSeconds: Invalid value`, "the last valid state stays in use")
	s.eventuallyLogs(t, "level=ERROR", filepath.Join(s.dir, "r.yaml")+`:15: ExtensionPolicy \"never\": spec.matchConditions[0].expression: Invalid value: line 1, column 1: undeclared reference to 'nobody'`, "it is not used")
	process.Eventually(t, "two errors are observed", func() bool { return s.Observer.Errors() == 2 })
	if got := s.timeouts(); !maps.Equal(got, map[string]string{"v.acme": "7s", "w.acme": "5s"}) {
		t.Errorf("a bad policy changed %v", got)
	}

	// Without policies, all is as discovery says.
	s.remove(t, "r.yaml")
	s.remove(t, "q.yaml")
	s.eventuallyHasTimeouts(t, map[string]string{"v.acme": "10s", "w.acme": "10s"})
	if calls := s.Extensions.Calls(urlA); len(calls) != 1 {
		t.Errorf("a policy is nothing to discover an extension for, which was done %d times", len(calls))
	}
}

func TestDirectoryPoliciesWhoseTargetIsMissing(t *testing.T) {
	s := newSource(t, nil)
	s.Extensions.Serve(urlA, "v")
	writeFile(t, s.dir, "a.yaml", config("acme", urlA))
	writeFile(t, s.dir, "p.yaml", policyOf("early", "{name: later}", "timeoutSeconds: 3")+"---\n"+policyOf("handler", "{name: acme, handler: w}", "timeoutSeconds: 4"))
	s.run(t)
	s.eventuallyReady(t)
	s.eventuallyLogs(t, "level=WARN", "policy is not accepted", "extensionPolicy=early", "reason=TargetNotFound", `there is no ExtensionConfig, HookRule or HookJob \"later\"; the policy takes effect as soon as its target appears`)
	s.eventuallyLogs(t, "level=WARN", "policy is not accepted", "extensionPolicy=handler", "reason=TargetNotFound", `ExtensionConfig \"acme\" has no handler \"w\"`)

	s.Extensions.Down(urlB)
	writeFile(t, s.dir, "b.yaml", config("later", urlB))
	s.eventuallyLogs(t, "level=INFO", "policy is accepted", "extensionPolicy=early")
	s.Extensions.Serve(urlB, "v")
	s.eventuallyHasTimeouts(t, map[string]string{"v.acme": "10s", "v.later": "3s"})

	// The handler comes with a discovery, not with a manifest.
	s.Extensions.Serve(urlA, "v", "w")
	writeFile(t, s.dir, "a.yaml", config("acme", urlA, "  settings: {a: b}"))
	s.eventuallyHasTimeouts(t, map[string]string{"v.acme": "10s", "w.acme": "4s", "v.later": "3s"})
	s.eventuallyLogs(t, "level=INFO", "policy is accepted", "extensionPolicy=handler")
	s.remove(t, "a.yaml")
	process.Eventually(t, "the loss of the target is logged", func() bool {
		return len(s.Logs.Lines("level=WARN", "extensionPolicy=handler", `there is no ExtensionConfig, HookRule or HookJob \"acme\"`)) == 1
	})
}

// A handler is never registered without the policy that its manifests have from the start.
func TestDirectoryPoliciesAreThereBeforeTheirHandlers(t *testing.T) {
	s := newSource(t, nil)
	began := make(chan struct{})
	answer := make(chan struct{})
	s.Extensions.Set(urlA, func(context.Context) (extension.Discovered, error) {
		close(began)
		<-answer
		return extension.Discovered{Handlers: discoverytest.Handlers("v")}, nil
	})
	writeFile(t, s.dir, "a.yaml", config("acme", urlA))
	writeFile(t, s.dir, "z.yaml", policyOf("p", "{name: acme, handler: v}", "timeoutSeconds: 2"))
	s.directory.patience = time.Hour
	s.run(t)
	<-began
	if lines := s.Logs.Lines("policy is not accepted"); len(lines) > 0 {
		t.Errorf("before the first discovery nothing is known of handlers, got %q", lines)
	}
	close(answer)
	s.eventuallyReady(t)
	if got := s.timeouts(); !maps.Equal(got, map[string]string{"v.acme": "2s"}) {
		t.Errorf("got %v when the registry was ready", got)
	}
	s.eventuallyLogs(t, "policy is accepted", "extensionPolicy=p")
}

// protocols returns the protocols of the registered ExtensionConfigs.
func (s *source) protocols() map[string]string {
	m := map[string]string{}
	for _, r := range s.Registry.Snapshot().Registrations() {
		m[r.Name] = string(r.ClientConfig.Protocol)
	}
	return m
}

func TestDirectoryPolicySaysWhatAnExtensionSpeaks(t *testing.T) {
	s := newSource(t, nil)
	s.Extensions.Serve(urlA, "v")
	s.Extensions.Serve(urlB+"/path", "v")
	writeFile(t, s.dir, "a.yaml", config("acme", urlA))
	writeFile(t, s.dir, "b.yaml", config("prefixed", urlB+"/path"))
	s.run(t)
	eventuallyProtocols := func(want map[string]string) {
		t.Helper()
		process.Eventually(t, fmt.Sprintf("protocols %v", want), func() bool { return maps.Equal(s.protocols(), want) })
	}
	eventuallyProtocols(map[string]string{"acme": "", "prefixed": ""})
	writeFile(t, s.dir, "p.yaml", policyOf("acme", "{name: acme}", "protocol: GRPC")+"---\n"+policyOf("prefixed", "{name: prefixed}", "protocol: GRPC"))
	eventuallyProtocols(map[string]string{"acme": "GRPC", "prefixed": ""})
	s.eventuallyLogs(t, "level=ERROR", filepath.Join(s.dir, "b.yaml"), "the ExtensionPolicy sets protocol GRPC, so the URL must not have a path: gRPC derives the paths from its services")
	s.remove(t, "p.yaml")
	eventuallyProtocols(map[string]string{"acme": "", "prefixed": ""})
}

// opening is a registry that notes what is in effect when the closures of policies are gone.
type opening struct {
	*registry.Registry

	opened atomic.Pointer[registry.Policies]
}

func (o *opening) SetClosures(kind string, closures []registry.Closure) {
	before := o.Snapshot().Closures()
	o.Registry.SetClosures(kind, closures)
	if kind == extensionpolicy.Kind && len(before) > 0 && len(closures) == 0 {
		now := o.Snapshot().Policies("acme")
		o.opened.Store(&now)
	}
}

// A policy that is corrected is in effect before its target opens, so that no call goes by neither.
func TestCorrectedPolicyIsInEffectBeforeItsTargetOpens(t *testing.T) {
	o := &opening{Registry: registry.New()}
	s := newSource(t, nil)
	s.directory.tracking.Registry = o
	writeFile(t, s.dir, "p.yaml", policyOf("p", "{name: acme}", "hooks: [BeforeClusterCreat]"))
	s.run(t)
	process.Eventually(t, "the target is closed", func() bool { return len(o.Snapshot().Closures()) == 1 })
	writeFile(t, s.dir, "p.yaml", policyOf("p", "{name: acme}", "hooks: [BeforeClusterCreate]"))
	process.Eventually(t, "the target opens", func() bool { return o.opened.Load() != nil })
	if of := o.opened.Load(); of.All == nil || !slices.Equal(of.All.Hooks, []string{"BeforeClusterCreate"}) {
		t.Errorf("when it opened, in effect was %+v", of.All)
	}
}
