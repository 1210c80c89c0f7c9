// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/convert"
	"github.com/hookgate/hookgate/extension"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/registry"
)

const (
	urlA = "https://a.example.com"
	urlB = "https://b.example.com"
)

// bench is a Reconciler with all that is around it.
type bench struct {
	registry   *registry.Registry
	extensions *extensions
	logs       *logs
	seen       *observations
	losses     *convert.Losses
	reconciler *Reconciler
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{registry: registry.New(), extensions: newExtensions(), logs: &logs{}, seen: &observations{}, losses: convert.NewLosses(nil)}
	var err error
	b.reconciler, err = NewReconciler(ReconcilerConfig{
		Registry: b.registry, Discoverer: b.extensions, Logger: b.logs.logger(), Observer: b.seen, Losses: b.losses,
	})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *bench) served(t *testing.T, reason string, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, served(b.registry)); diff != "" {
		t.Errorf("%s\nserved -want +got\n%s", reason, diff)
	}
}

func ext(name, url string, lastKnown ...string) Extension {
	return Extension{
		Registration: registry.Registration{Name: name, ClientConfig: registry.ClientConfig{URL: url}}, LastKnown: handlers(lastKnown...),
	}
}

func TestReconcileKeepsLastKnownHandlers(t *testing.T) {
	b := newBench(t)
	b.extensions.serve(urlA, "v")
	if _, err := b.reconciler.Reconcile(t.Context(), ext("acme", urlA)); err != nil {
		t.Fatal(err)
	}
	b.served(t, "discovered", "v.acme "+urlA)

	b.extensions.down(urlA)
	for range 3 {
		if _, err := b.reconciler.Reconcile(t.Context(), ext("acme", urlA)); hook.KindOf(err) != hook.Unreachable {
			t.Fatalf("got %v, want Unreachable", err)
		}
	}
	b.served(t, "an extension that goes away keeps its handlers", "v.acme "+urlA)
	if got := b.logs.lines("level=ERROR", "its 1 last known handlers stay served"); len(got) != 1 {
		t.Errorf("three equal failures are logged once, got %q", got)
	}

	b.extensions.set(urlA, func(context.Context) (extension.Discovered, error) {
		return extension.Discovered{}, hook.Errorf(hook.BadResponse, "status 500").WithCause(errors.New("the cause"))
	})
	_, _ = b.reconciler.Reconcile(t.Context(), ext("acme", urlA))
	if got := b.logs.lines("level=ERROR", "status 500", `cause="the cause"`); len(got) != 1 {
		t.Errorf("another failure is logged, got %q", got)
	}

	b.extensions.serve(urlA, "v", "w")
	for range 2 {
		if _, err := b.reconciler.Reconcile(t.Context(), ext("acme", urlA)); err != nil {
			t.Fatal(err)
		}
	}
	b.served(t, "back, and upgraded", "v.acme "+urlA, "w.acme "+urlA)
	if got := b.logs.lines("extension answers again", "handlers=2"); len(got) != 1 {
		t.Errorf("recovery is logged once, got %q", got)
	}
	for _, outcome := range []string{"acme Success", "acme Unreachable", "acme BadResponse"} {
		if !b.seen.has(outcome) {
			t.Errorf("the observer has not seen %q", outcome)
		}
	}
}

func TestReconcileServesTheStatusUntilDiscovery(t *testing.T) {
	b := newBench(t)
	if _, err := b.reconciler.Reconcile(t.Context(), ext("acme", urlA, "old")); err == nil {
		t.Fatal("the extension is down")
	}
	b.served(t, "a restart while the extension is down keeps its hooks", "old.acme "+urlA)

	b.extensions.serve(urlA, "new")
	if _, err := b.reconciler.Reconcile(t.Context(), ext("acme", urlA, "old")); err != nil {
		t.Fatal(err)
	}
	b.served(t, "discovery replaces the status", "new.acme "+urlA)
	b.extensions.down(urlA)
	_, _ = b.reconciler.Reconcile(t.Context(), ext("acme", urlA, "old"))
	b.served(t, "what was discovered is newer than the status", "new.acme "+urlA)
}

func TestReconcileAppliesSettingsWhileTheExtensionIsDown(t *testing.T) {
	b := newBench(t)
	b.extensions.serve(urlA, "v")
	if _, err := b.reconciler.Reconcile(t.Context(), ext("acme", urlA)); err != nil {
		t.Fatal(err)
	}
	b.extensions.down(urlA)
	x := ext("acme", urlA)
	x.Settings = map[string]string{"k": "v"}
	if _, err := b.reconciler.Reconcile(t.Context(), x); err == nil {
		t.Fatal("the extension is down")
	}
	if e, ok := b.registry.Snapshot().Handler("v.acme"); !ok || e.Registration.Settings["k"] != "v" {
		t.Error("settings do not wait for the extension, since the handlers are known")
	}
}

// TestTrap16UpdateKeepsOldEntriesUntilTheNewOnesAreChecked: neither a wrong address nor a wrong answer may cost what
// works.
func TestTrap16UpdateKeepsOldEntriesUntilTheNewOnesAreChecked(t *testing.T) {
	b := newBench(t)
	b.extensions.serve(urlA, "v")
	if _, err := b.reconciler.Reconcile(t.Context(), ext("acme", urlA)); err != nil {
		t.Fatal(err)
	}
	b.extensions.set(urlB, func(context.Context) (extension.Discovered, error) {
		b.served(t, "while the update is being discovered", "v.acme "+urlA)
		return extension.Discovered{}, hook.Errorf(hook.Unreachable, "refused")
	})
	if _, err := b.reconciler.Reconcile(t.Context(), ext("acme", urlB)); err == nil {
		t.Fatal("the update does not answer")
	}
	b.served(t, "after an update that does not answer", "v.acme "+urlA)
	if left := b.extensions.lastRetained(); left != nil {
		t.Errorf("the old and the new connections are in use, and all but %v were given up", left)
	}
	if got := b.logs.lines("it stays served as before the change of its clientConfig"); len(got) != 1 {
		t.Errorf("that is said once, got %q", got)
	}

	// Names that collide are what the registry refuses.
	b.extensions.set(urlB, func(context.Context) (extension.Discovered, error) {
		return extension.Discovered{Handlers: append(handlers("v"), handlers("V")...)}, nil
	})
	if _, err := b.reconciler.Reconcile(t.Context(), ext("acme", urlB)); err == nil {
		t.Fatal("the registry must refuse the update")
	}
	b.served(t, "after an update that the registry refuses", "v.acme "+urlA)
	if !b.seen.has("acme Refused") {
		t.Error("the observer has not seen the refusal")
	}

	b.extensions.serve(urlB, "w")
	if _, err := b.reconciler.Reconcile(t.Context(), ext("acme", urlB)); err != nil {
		t.Fatal(err)
	}
	b.served(t, "after an update that works", "w.acme "+urlB)
	if diff := cmp.Diff([]string{urlB}, b.extensions.lastRetained()); diff != "" {
		t.Errorf("the old connections are out of use\n-want +got\n%s", diff)
	}
}

// TestTrap04HandlersInAnyOrderAreNoChange: a list that comes out of a map must not change what is served.
func TestTrap04HandlersInAnyOrderAreNoChange(t *testing.T) {
	b := newBench(t)
	orders := [][]string{{"b", "a", "c"}, {"c", "b", "a"}, {"a", "b", "c"}}
	i := 0
	b.extensions.set(urlA, func(context.Context) (extension.Discovered, error) {
		found := extension.Discovered{Handlers: handlers(orders[i%len(orders)]...)}
		i++
		return found, nil
	})
	var first *registry.Snapshot
	for range 2 * len(orders) {
		if _, err := b.reconciler.Reconcile(t.Context(), ext("acme", urlA)); err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = b.registry.Snapshot()
		}
		if b.registry.Snapshot() != first {
			t.Fatal("the registry has changed, though only the order of the answer did")
		}
	}
	b.served(t, "by name", "a.acme "+urlA, "b.acme "+urlA, "c.acme "+urlA)
	if got := b.logs.lines("extension changed"); len(got) != 0 {
		t.Errorf("no change is logged, got %q", got)
	}
}

func TestReconcileLogsSkippedHandlersOnce(t *testing.T) {
	b := newBench(t)
	b.extensions.set(urlA, func(context.Context) (extension.Discovered, error) {
		return extension.Discovered{Handlers: handlers("v"), Skipped: []extension.Skipped{{Name: "new", Reason: "unknown hook"}}}, nil
	})
	for range 2 {
		if _, err := b.reconciler.Reconcile(t.Context(), ext("acme", urlA)); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.logs.lines("level=WARN", "handler=new", `reason="unknown hook"`, "extensionConfig=acme"); len(got) != 1 {
		t.Errorf("got %q", got)
	}
	b.served(t, "the others are served", "v.acme "+urlA)
}

func TestReconcilePaused(t *testing.T) {
	b := newBench(t)
	b.extensions.serve(urlA, "v")
	paused := ext("acme", urlA, "known")
	paused.Paused = true
	for range 2 {
		if _, err := b.reconciler.Reconcile(t.Context(), paused); err != nil {
			t.Fatal(err)
		}
	}
	b.served(t, "the last known handlers", "known.acme "+urlA)
	if calls := b.extensions.callsOf(urlA); len(calls) > 0 {
		t.Error("a paused extension is not discovered")
	}
	if got := b.logs.lines("paused"); len(got) != 1 {
		t.Errorf("that is logged once, got %q", got)
	}

	if _, err := b.reconciler.Reconcile(t.Context(), ext("acme", urlA)); err != nil {
		t.Fatal(err)
	}
	b.served(t, "discovered again", "v.acme "+urlA)
	changed := ext("acme", urlA)
	changed.Paused, changed.Settings = true, map[string]string{"k": "v"}
	if _, err := b.reconciler.Reconcile(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	if e, ok := b.registry.Snapshot().Handler("v.acme"); !ok || e.Registration.Settings != nil {
		t.Error("what is served for a paused extension does not change")
	}
}

func TestReconcilePanicIsAnError(t *testing.T) {
	b := newBench(t)
	b.extensions.set(urlA, func(context.Context) (extension.Discovered, error) { panic("boom") })
	if _, err := b.reconciler.Reconcile(t.Context(), ext("acme", urlA)); err == nil || !strings.Contains(err.Error(), "boom") {
		t.Errorf("got %v", err)
	}
}

func TestReconcileAttemptIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.extensions.hang(urlA)
		began := time.Now()
		if _, err := b.reconciler.Reconcile(t.Context(), ext("acme", urlA)); hook.KindOf(err) != hook.Timeout {
			t.Errorf("got %v, want Timeout", err)
		}
		if took := time.Since(began); took != DiscoveryTimeout {
			t.Errorf("took %v, want %v", took, DiscoveryTimeout)
		}
	})
}

func TestRemove(t *testing.T) {
	b := newBench(t)
	b.extensions.serve(urlA, "v")
	b.extensions.serve(urlB, "v")
	for name, url := range map[string]string{"a": urlA, "b": urlB} {
		if _, err := b.reconciler.Reconcile(t.Context(), ext(name, url)); err != nil {
			t.Fatal(err)
		}
		b.losses.Record(name, "v", []string{"cluster.spec.new"})
	}
	b.reconciler.Remove("a")
	if a, b := len(b.losses.Of("a")), len(b.losses.Of("b")); a != 0 || b != 1 {
		t.Errorf("losses of %d handlers that are gone, and of %d that stay, are remembered; want none and 1", a, b)
	}
	b.served(t, "the other stays", "v.b "+urlB)
	if diff := cmp.Diff([]string{urlB}, b.extensions.lastRetained()); diff != "" {
		t.Errorf("connections in use -want +got\n%s", diff)
	}
}

func TestNewReconcilerRefusesMissingParts(t *testing.T) {
	if _, err := NewReconciler(ReconcilerConfig{}); err == nil {
		t.Error("want an error")
	}
}

// TestServe: a source that leaves discovery to somebody else serves what that has found, and no address before it was
// seen to work.
func TestServe(t *testing.T) {
	b := newBench(t)
	serve := func(x Extension, current bool) {
		t.Helper()
		if err := b.reconciler.Serve(x, current); err != nil {
			t.Fatal(err)
		}
	}
	serve(ext("acme", urlA), false)
	b.served(t, "nothing is known")
	serve(ext("acme", urlA, "v"), true)
	b.served(t, "the status has a handler", "v.acme "+urlA)
	serve(ext("acme", urlB, "v"), false)
	b.served(t, "nobody has seen the new address work", "v.acme "+urlA)
	serve(ext("acme", urlB, "v", "w"), true)
	b.served(t, "somebody has", "v.acme "+urlB, "w.acme "+urlB)
	paused := ext("acme", urlA, "v")
	paused.Paused = true
	serve(paused, true)
	b.served(t, "a paused ExtensionConfig does not change", "v.acme "+urlB, "w.acme "+urlB)
	serve(ext("acme", urlB), true)
	b.served(t, "the extension has no handlers any more")

	serve(ext("other", urlA, "v"), false)
	b.served(t, "at the start, the last known handlers are better than none", "v.other "+urlA)
	if calls := len(b.extensions.callsOf(urlA)) + len(b.extensions.callsOf(urlB)); calls != 0 {
		t.Errorf("extensions were asked %d times", calls)
	}
	if err := b.reconciler.Serve(ext("acme", urlB, "Not.A.Label"), true); err == nil {
		t.Error("what the registry refuses is no error")
	}
}
