// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/internal/sources/discovery"
	"github.com/hookgate/hookgate/internal/sources/discovery/discoverytest"
	"github.com/hookgate/hookgate/registry"
)

const (
	urlA = "https://a.example.com"
	urlB = "https://b.example.com"
)

func TestReconcileKeepsLastKnownHandlers(t *testing.T) {
	b := discoverytest.New(t)
	b.Extensions.Serve(urlA, "v")
	if _, err := b.Reconciler.Reconcile(t.Context(), discoverytest.Extension("acme", urlA)); err != nil {
		t.Fatal(err)
	}
	b.Serves(t, "discovered", "v.acme "+urlA)

	b.Extensions.Down(urlA)
	for range 3 {
		if _, err := b.Reconciler.Reconcile(t.Context(), discoverytest.Extension("acme", urlA)); hook.KindOf(err) != hook.Unreachable {
			t.Fatalf("got %v, want Unreachable", err)
		}
	}
	b.Serves(t, "an extension that goes away keeps its handlers", "v.acme "+urlA)
	if got := b.Logs.Lines("level=ERROR", "its last known handlers are still served: 1"); len(got) != 1 {
		t.Errorf("three equal failures are logged once, got %q", got)
	}

	b.Extensions.Set(urlA, func(context.Context) (extension.Discovered, error) {
		return extension.Discovered{}, hook.Errorf(hook.BadResponse, "status 500").WithCause(errors.New("the cause"))
	})
	_, _ = b.Reconciler.Reconcile(t.Context(), discoverytest.Extension("acme", urlA))
	if got := b.Logs.Lines("level=ERROR", "status 500", `cause="the cause"`); len(got) != 1 {
		t.Errorf("another failure is logged, got %q", got)
	}

	b.Extensions.Serve(urlA, "v", "w")
	for range 2 {
		if _, err := b.Reconciler.Reconcile(t.Context(), discoverytest.Extension("acme", urlA)); err != nil {
			t.Fatal(err)
		}
	}
	b.Serves(t, "back, and upgraded", "v.acme "+urlA, "w.acme "+urlA)
	if got := b.Logs.Lines("extension answers again", "handlers=2"); len(got) != 1 {
		t.Errorf("recovery is logged once, got %q", got)
	}
	for _, outcome := range []string{"acme Success", "acme Unreachable", "acme BadResponse"} {
		if !b.Observer.Has(outcome) {
			t.Errorf("the observer has not seen %q", outcome)
		}
	}
}

func TestReconcileServesTheStatusUntilDiscovery(t *testing.T) {
	b := discoverytest.New(t)
	if _, err := b.Reconciler.Reconcile(t.Context(), discoverytest.Extension("acme", urlA, "old")); err == nil {
		t.Fatal("the extension is down")
	}
	b.Serves(t, "a restart while the extension is down keeps its hooks", "old.acme "+urlA)

	b.Extensions.Serve(urlA, "new")
	if _, err := b.Reconciler.Reconcile(t.Context(), discoverytest.Extension("acme", urlA, "old")); err != nil {
		t.Fatal(err)
	}
	b.Serves(t, "discovery replaces the status", "new.acme "+urlA)
	b.Extensions.Down(urlA)
	_, _ = b.Reconciler.Reconcile(t.Context(), discoverytest.Extension("acme", urlA, "old"))
	b.Serves(t, "what was discovered is newer than the status", "new.acme "+urlA)
}

// A call that names one of its handlers says why they are not known, and no more once they are.
func TestReconcileSaysWhyHandlersAreNotKnown(t *testing.T) {
	b := discoverytest.New(t)
	hook := discoverytest.Handlers("v")[0].Hook.GroupHook()
	for attempt := range 2 {
		if _, err := b.Reconciler.Reconcile(t.Context(), discoverytest.Extension("acme", urlA)); err == nil {
			t.Fatal("the extension is down")
		}
		const want = `ExtensionConfig "acme" has not been discovered: call ` + urlA + `: connection refused`
		if got := b.Registry.Snapshot().Awaited("v.acme", hook); got != want {
			t.Errorf("attempt %d: got %q, want %q", attempt, got, want)
		}
	}
	b.Extensions.Serve(urlA)
	if _, err := b.Reconciler.Reconcile(t.Context(), discoverytest.Extension("acme", urlA)); err != nil {
		t.Fatal(err)
	}
	if got := b.Registry.Snapshot().Awaited("v.acme", hook); got != "" {
		t.Errorf("discovered without such a handler: got %q", got)
	}
}

func TestReconcileAppliesSettingsWhileTheExtensionIsDown(t *testing.T) {
	b := discoverytest.New(t)
	b.Extensions.Serve(urlA, "v")
	if _, err := b.Reconciler.Reconcile(t.Context(), discoverytest.Extension("acme", urlA)); err != nil {
		t.Fatal(err)
	}
	b.Extensions.Down(urlA)
	x := discoverytest.Extension("acme", urlA)
	x.Settings = map[string]string{"k": "v"}
	if _, err := b.Reconciler.Reconcile(t.Context(), x); err == nil {
		t.Fatal("the extension is down")
	}
	if e, ok := b.Registry.Snapshot().Handler("v.acme"); !ok || e.Registration.Settings["k"] != "v" {
		t.Error("settings do not wait for the extension, since the handlers are known")
	}
}

// TestReconcileKeepsTheOldRegistrationUntilTheNewOneWorks: neither a wrong address nor a wrong answer removes a working
// registration.
func TestReconcileKeepsTheOldRegistrationUntilTheNewOneWorks(t *testing.T) {
	b := discoverytest.New(t)
	b.Extensions.Serve(urlA, "v")
	if _, err := b.Reconciler.Reconcile(t.Context(), discoverytest.Extension("acme", urlA)); err != nil {
		t.Fatal(err)
	}
	b.Extensions.Set(urlB, func(context.Context) (extension.Discovered, error) {
		b.Serves(t, "while the update is being discovered", "v.acme "+urlA)
		return extension.Discovered{}, hook.Errorf(hook.Unreachable, "refused")
	})
	if _, err := b.Reconciler.Reconcile(t.Context(), discoverytest.Extension("acme", urlB)); err == nil {
		t.Fatal("the update does not answer")
	}
	b.Serves(t, "after an update that does not answer", "v.acme "+urlA)
	if left := b.Extensions.Retained(); left != nil {
		t.Errorf("the old and the new connections are in use, and all but %v were given up", left)
	}
	if got := b.Logs.Lines("its last known handlers are still served at the previous URL " + urlA + ": 1"); len(got) != 1 {
		t.Errorf("that is said once, got %q", got)
	}

	// Names that collide are what the registry refuses.
	b.Extensions.Set(urlB, func(context.Context) (extension.Discovered, error) {
		return extension.Discovered{Handlers: append(discoverytest.Handlers("v"), discoverytest.Handlers("V")...)}, nil
	})
	if _, err := b.Reconciler.Reconcile(t.Context(), discoverytest.Extension("acme", urlB)); err == nil {
		t.Fatal("the registry must refuse the update")
	}
	b.Serves(t, "after an update that the registry refuses", "v.acme "+urlA)
	if !b.Observer.Has("acme Refused") {
		t.Error("the observer has not seen the refusal")
	}

	b.Extensions.Serve(urlB, "w")
	if _, err := b.Reconciler.Reconcile(t.Context(), discoverytest.Extension("acme", urlB)); err != nil {
		t.Fatal(err)
	}
	b.Serves(t, "after an update that works", "w.acme "+urlB)
	if diff := cmp.Diff([]string{urlB}, b.Extensions.Retained()); diff != "" {
		t.Errorf("the old connections are out of use\n-want +got\n%s", diff)
	}
}

// What an ExtensionConfig says of namespaces, trust and settings does not wait for its extension.
func TestReconcileAppliesAllButTheAddressAtOnce(t *testing.T) {
	gold, err := labels.Parse("tier=gold")
	if err != nil {
		t.Fatal(err)
	}
	changed := discoverytest.Extension("acme", urlB)
	changed.ClientConfig.CABundle, changed.Settings = []byte("new"), map[string]string{"k": "v"}
	changed.NamespaceSelector = gold
	last := func(url string) *extensionconfig.LastClient { return &extensionconfig.LastClient{URL: url} }
	since := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for name, tc := range map[string]struct {
		reason    string
		restarted bool
		at        *extensionconfig.LastClient // of the handlers in the status
		url       string
		pending   bool
		since     time.Time // zero for now
	}{
		"Running":          {"the handlers were discovered at the old URL", false, nil, urlA, true, time.Time{}},
		"RunningAnnotated": {"this process has discovered it, whatever others wrote", false, last(urlB), urlA, true, time.Time{}},
		"Restarted":        {"the status says where its handlers were", true, last(urlA), urlA, true, time.Time{}},
		"RestartedSince":   {"and since when that is over", true, &extensionconfig.LastClient{URL: urlA, Since: since}, urlA, true, since},
		"RestartedSame":    {"they were discovered at the new URL", true, last(urlB), urlB, false, time.Time{}},
		"RestartedUnknown": {"an older gateway did not say where", true, nil, urlB, false, time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			b := discoverytest.New(t)
			if !tc.restarted {
				b.Extensions.Serve(urlA, "v")
				if _, err := b.Reconciler.Reconcile(t.Context(), discoverytest.Extension("acme", urlA)); err != nil {
					t.Fatal(err)
				}
			}
			began := time.Now().Truncate(time.Second)
			x := changed
			x.LastKnown, x.LastClient = discoverytest.Handlers("v"), tc.at
			var first *registry.Registration
			for range 2 {
				if _, err := b.Reconciler.Reconcile(t.Context(), x); err == nil {
					t.Fatal("the new URL does not answer")
				}
				got, ok := b.Registry.Snapshot().Registration("acme")
				if !ok || got.ClientConfig.URL != tc.url || string(got.ClientConfig.CABundle) != "new" ||
					got.NamespaceSelector.String() != "tier=gold" || got.Settings["k"] != "v" || len(got.Handlers) != 1 {
					t.Fatalf("%s: got %+v", tc.reason, got)
				}
				p := got.Pending
				if (p != nil) != tc.pending || p != nil && (p.URL != urlB || p.Since.Before(began) && !p.Since.Equal(tc.since)) {
					t.Errorf("%s: got %+v", tc.reason, p)
				}
				if first == nil {
					first = got
				} else if first != got {
					t.Errorf("%s: another attempt changes the registration", tc.reason)
				}
			}
			b.Extensions.Serve(urlB, "v")
			if _, err := b.Reconciler.Reconcile(t.Context(), x); err != nil {
				t.Fatal(err)
			}
			if got, _ := b.Registry.Snapshot().Registration("acme"); got.ClientConfig.URL != urlB || got.Pending != nil {
				t.Errorf("discovered: got %+v", got)
			}
		})
	}
}

// A change that is taken back was none.
func TestReconcileBackToThePreviousURL(t *testing.T) {
	b := discoverytest.New(t)
	b.Extensions.Serve(urlA, "v")
	for i, url := range []string{urlA, urlB, urlA} {
		if i == 2 {
			b.Extensions.Down(urlA)
		}
		_, _ = b.Reconciler.Reconcile(t.Context(), discoverytest.Extension("acme", url))
	}
	if got, _ := b.Registry.Snapshot().Registration("acme"); got.ClientConfig.URL != urlA || got.Pending != nil {
		t.Errorf("got %+v", got)
	}
}

// TestReconcileIgnoresTheOrderOfHandlers: an extension that lists handlers in map order must not cause changes.
func TestReconcileIgnoresTheOrderOfHandlers(t *testing.T) {
	b := discoverytest.New(t)
	orders := [][]string{{"b", "a", "c"}, {"c", "b", "a"}, {"a", "b", "c"}}
	i := 0
	b.Extensions.Set(urlA, func(context.Context) (extension.Discovered, error) {
		found := extension.Discovered{Handlers: discoverytest.Handlers(orders[i%len(orders)]...)}
		i++
		return found, nil
	})
	var first *registry.Snapshot
	for range 2 * len(orders) {
		if _, err := b.Reconciler.Reconcile(t.Context(), discoverytest.Extension("acme", urlA)); err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = b.Registry.Snapshot()
		}
		if b.Registry.Snapshot() != first {
			t.Fatal("the registry has changed, though only the order of the answer did")
		}
	}
	b.Serves(t, "by name", "a.acme "+urlA, "b.acme "+urlA, "c.acme "+urlA)
	if got := b.Logs.Lines("extension changed"); len(got) != 0 {
		t.Errorf("no change is logged, got %q", got)
	}
}

func TestReconcileLogsSkippedHandlersOnce(t *testing.T) {
	b := discoverytest.New(t)
	b.Extensions.Set(urlA, func(context.Context) (extension.Discovered, error) {
		return extension.Discovered{Handlers: discoverytest.Handlers("v"), Skipped: []extension.Skipped{{Name: "new", Reason: "unknown hook"}}}, nil
	})
	for range 2 {
		if _, err := b.Reconciler.Reconcile(t.Context(), discoverytest.Extension("acme", urlA)); err != nil {
			t.Fatal(err)
		}
	}
	if got := b.Logs.Lines("level=WARN", "handler=new", `reason="unknown hook"`, "extensionConfig=acme"); len(got) != 1 {
		t.Errorf("got %q", got)
	}
	b.Serves(t, "the others are served", "v.acme "+urlA)
}

// Handlers of another group than Cluster API's stay while the extension does not list them. If it never has, it is
// served without the group.
func TestReconcileKeepsTheHandlersOfAGroupThatIsNotAnswered(t *testing.T) {
	b := discoverytest.New(t)
	machines := registry.Handler{
		Name: "m", Timeout: time.Second, FailurePolicy: hook.Fail,
		Hook: hook.GroupVersionHook{Group: hook.InfrastructureGroup, Version: hook.InfrastructureVersion, Hook: "ReconcileMachine"},
	}
	answer := func(unanswered bool, handlers ...registry.Handler) {
		b.Extensions.Set(urlA, func(context.Context) (extension.Discovered, error) {
			d := extension.Discovered{Handlers: handlers}
			if unanswered {
				d.Unanswered = []extension.Unanswered{{
					Hook: hook.GroupHook{Group: hook.InfrastructureGroup, Hook: "DiscoverInfrastructure"},
					Err:  hook.Errorf(hook.BadResponse, "answered 500"),
				}}
			}
			return d, nil
		})
	}
	v := discoverytest.Handlers("v")
	answer(true, v...)
	for range 2 {
		found, err := b.Reconciler.Reconcile(t.Context(), discoverytest.Extension("acme", urlA))
		if err != nil {
			t.Fatal(err)
		}
		if want := []extension.Skipped{{Name: "DiscoverInfrastructure", Reason: "answered 500"}}; !slices.Equal(found.Skipped, want) {
			t.Errorf("skipped %v, want %v", found.Skipped, want)
		}
	}
	b.Serves(t, "without the group, Cluster API's hooks are served", "v.acme "+urlA)
	if got := b.Logs.Lines("level=WARN", "handler=DiscoverInfrastructure", `reason="answered 500"`); len(got) != 1 {
		t.Errorf("the group that is left out is logged once, got %q", got)
	}

	answer(false, append(v, machines)...)
	if _, err := b.Reconciler.Reconcile(t.Context(), discoverytest.Extension("acme", urlA)); err != nil {
		t.Fatal(err)
	}
	b.Serves(t, "both groups", "m.acme "+urlA, "v.acme "+urlA)

	answer(true, v...)
	if _, err := b.Reconciler.Reconcile(t.Context(), discoverytest.Extension("acme", urlA)); hook.KindOf(err) != hook.BadResponse {
		t.Errorf("got %v, want the error of the group", err)
	}
	b.Serves(t, "known handlers of the group stay", "m.acme "+urlA, "v.acme "+urlA)

	answer(false, v...)
	if _, err := b.Reconciler.Reconcile(t.Context(), discoverytest.Extension("acme", urlA)); err != nil {
		t.Fatal(err)
	}
	b.Serves(t, "an extension may give up a group", "v.acme "+urlA)
}

// The handlers that a status has are known, too.
func TestReconcileKeepsTheHandlersOfAGroupInTheStatus(t *testing.T) {
	b := discoverytest.New(t)
	x := discoverytest.Extension("acme", urlA, "v", "m")
	for i, h := range x.LastKnown {
		if h.Name == "m" {
			x.LastKnown[i].Hook.Group = hook.InfrastructureGroup
		}
	}
	b.Extensions.Set(urlA, func(context.Context) (extension.Discovered, error) {
		return extension.Discovered{Handlers: discoverytest.Handlers("v", "w"), Unanswered: []extension.Unanswered{{
			Hook: hook.GroupHook{Group: hook.InfrastructureGroup, Hook: "DiscoverInfrastructure"}, Err: hook.Errorf(hook.Timeout, "no answer"),
		}}}, nil
	})
	if _, err := b.Reconciler.Reconcile(t.Context(), x); hook.KindOf(err) != hook.Timeout {
		t.Errorf("got %v, want the error of the group", err)
	}
	b.Serves(t, "after a restart", "m.acme "+urlA, "v.acme "+urlA)
}

func TestReconcilePaused(t *testing.T) {
	b := discoverytest.New(t)
	b.Extensions.Serve(urlA, "v")
	paused := discoverytest.Extension("acme", urlA, "known")
	paused.Paused = true
	for range 2 {
		if _, err := b.Reconciler.Reconcile(t.Context(), paused); err != nil {
			t.Fatal(err)
		}
	}
	b.Serves(t, "the last known handlers", "known.acme "+urlA)
	if calls := b.Extensions.Calls(urlA); len(calls) > 0 {
		t.Error("a paused extension is not discovered")
	}
	if got := b.Logs.Lines("paused"); len(got) != 1 {
		t.Errorf("that is logged once, got %q", got)
	}

	if _, err := b.Reconciler.Reconcile(t.Context(), discoverytest.Extension("acme", urlA)); err != nil {
		t.Fatal(err)
	}
	b.Serves(t, "discovered again", "v.acme "+urlA)
	changed := discoverytest.Extension("acme", urlA)
	changed.Paused, changed.Settings = true, map[string]string{"k": "v"}
	if _, err := b.Reconciler.Reconcile(t.Context(), changed); err != nil {
		t.Fatal(err)
	}
	if e, ok := b.Registry.Snapshot().Handler("v.acme"); !ok || e.Registration.Settings != nil {
		t.Error("what is served for a paused extension does not change")
	}
}

func TestReconcilePanicIsAnError(t *testing.T) {
	b := discoverytest.New(t)
	b.Extensions.Set(urlA, func(context.Context) (extension.Discovered, error) { panic("boom") })
	if _, err := b.Reconciler.Reconcile(t.Context(), discoverytest.Extension("acme", urlA)); err == nil || !strings.Contains(err.Error(), "boom") {
		t.Errorf("got %v", err)
	}
}

func TestReconcileAttemptIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := discoverytest.New(t)
		b.Extensions.Hang(urlA)
		began := time.Now()
		if _, err := b.Reconciler.Reconcile(t.Context(), discoverytest.Extension("acme", urlA)); hook.KindOf(err) != hook.Timeout {
			t.Errorf("got %v, want Timeout", err)
		}
		if took := time.Since(began); took != limits.DiscoveryTimeout {
			t.Errorf("took %v, want %v", took, limits.DiscoveryTimeout)
		}
	})
}

func TestRemove(t *testing.T) {
	b := discoverytest.New(t)
	b.Extensions.Serve(urlA, "v")
	b.Extensions.Serve(urlB, "v")
	for name, url := range map[string]string{"a": urlA, "b": urlB} {
		if _, err := b.Reconciler.Reconcile(t.Context(), discoverytest.Extension(name, url)); err != nil {
			t.Fatal(err)
		}
		b.Losses.Record(name, "v", []string{"cluster.spec.new"})
	}
	b.Reconciler.Remove("a")
	if a, b := len(b.Losses.Of("a")), len(b.Losses.Of("b")); a != 0 || b != 1 {
		t.Errorf("losses of %d handlers that are gone, and of %d that stay, are remembered; want none and 1", a, b)
	}
	b.Serves(t, "the other stays", "v.b "+urlB)
	if diff := cmp.Diff([]string{urlB}, b.Extensions.Retained()); diff != "" {
		t.Errorf("connections in use -want +got\n%s", diff)
	}
}

func TestNewReconcilerRefusesMissingParts(t *testing.T) {
	if _, err := discovery.NewReconciler(discovery.ReconcilerConfig{}); err == nil {
		t.Error("want an error")
	}
}

// TestServe: another replica's discovery is registered, and no address before it works.
func TestServe(t *testing.T) {
	b := discoverytest.New(t)
	serve := func(x extensionconfig.Extension, current bool) {
		t.Helper()
		if err := b.Reconciler.Serve(discovery.Known{Extension: x, Current: current}); err != nil {
			t.Fatal(err)
		}
	}
	serve(discoverytest.Extension("acme", urlA), false)
	b.Serves(t, "nothing is known")
	serve(discoverytest.Extension("acme", urlA, "v"), true)
	b.Serves(t, "the status has a handler", "v.acme "+urlA)
	serve(discoverytest.Extension("acme", urlB, "v"), false)
	b.Serves(t, "the new address is not yet known to work", "v.acme "+urlA)
	serve(discoverytest.Extension("acme", urlB, "v", "w"), true)
	b.Serves(t, "the new address is known to work", "v.acme "+urlB, "w.acme "+urlB)
	paused := discoverytest.Extension("acme", urlA, "v")
	paused.Paused = true
	serve(paused, true)
	b.Serves(t, "a paused ExtensionConfig does not change", "v.acme "+urlB, "w.acme "+urlB)
	serve(discoverytest.Extension("acme", urlB), true)
	b.Serves(t, "the extension has no handlers any more")

	serve(discoverytest.Extension("other", urlA, "v"), false)
	b.Serves(t, "at the start, the last known handlers are better than none", "v.other "+urlA)
	if calls := len(b.Extensions.Calls(urlA)) + len(b.Extensions.Calls(urlB)); calls != 0 {
		t.Errorf("extensions were asked %d times", calls)
	}
	if err := b.Reconciler.Serve(discovery.Known{Extension: discoverytest.Extension("acme", urlB, "Not.A.Label"), Current: true}); err == nil {
		t.Error("what the registry refuses is no error")
	}
}

// Connections stay as long as one ExtensionConfig uses them, and Retain is called only after the last is removed.
func TestRetainIsCalledWhenTheLastUserGoes(t *testing.T) {
	b := discoverytest.New(t)
	b.Extensions.Serve(urlA, "v")
	b.Extensions.Serve(urlB, "v")
	reconcile := func(name, url string, change ...func(*extensionconfig.Extension)) {
		t.Helper()
		x := discoverytest.Extension(name, url)
		for _, f := range change {
			f(&x)
		}
		if _, err := b.Reconciler.Reconcile(t.Context(), x); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		what string
		do   func()
		want []string // what Retain was called with, nil if it was not
	}{
		{"first user", func() { reconcile("one", urlA) }, nil},
		{"second user", func() { reconcile("two", urlA) }, nil},
		{"other settings", func() {
			reconcile("two", urlA, func(x *extensionconfig.Extension) { x.Settings = map[string]string{"a": "b"} })
		}, nil},
		{"one leaves", func() { reconcile("one", urlB) }, nil},
		{"the last leaves", func() { b.Reconciler.Remove("two") }, []string{urlB}},
		{"removed again", func() { b.Reconciler.Remove("two") }, nil},
		{"another CA", func() {
			reconcile("one", urlB, func(x *extensionconfig.Extension) { x.ClientConfig.CABundle = []byte("ca") })
		}, []string{urlB}},
		{"a wanted address", func() {
			x := discoverytest.Extension("one", "https://down.example.com")
			x.ClientConfig.CABundle = []byte("ca")
			if _, err := b.Reconciler.Reconcile(t.Context(), x); err == nil {
				t.Error("the extension is down")
			}
		}, nil},
		{"back again", func() {
			reconcile("one", urlB, func(x *extensionconfig.Extension) { x.ClientConfig.CABundle = []byte("ca") })
		}, []string{urlB}},
		{"nothing left", func() { b.Reconciler.Remove("one") }, []string{}},
	} {
		before := b.Extensions.Retentions()
		step.do()
		calls := b.Extensions.Retentions() - before
		if want := step.want != nil; calls > 1 || (calls == 1) != want {
			t.Errorf("%s: Retain was called %d times", step.what, calls)
		} else if want && !slices.Equal(b.Extensions.Retained(), step.want) {
			t.Errorf("%s: Retain was called with %v, want %v", step.what, b.Extensions.Retained(), step.want)
		}
	}
}

func TestReconcileChangesNeitherItsArgumentNorTheAnswer(t *testing.T) {
	b := discoverytest.New(t)
	answer := discoverytest.Handlers("b", "a")
	b.Extensions.Set(urlA, func(context.Context) (extension.Discovered, error) {
		return extension.Discovered{Handlers: answer}, nil
	})
	x := discoverytest.Extension("acme", urlA, "z", "y")
	x.Settings = map[string]string{"k": "v"}
	found, err := b.Reconciler.Reconcile(t.Context(), x)
	if err != nil {
		t.Fatal(err)
	}
	b.Serves(t, "by name", "a.acme "+urlA, "b.acme "+urlA)
	for what, got := range map[string][]registry.Handler{"answer": answer, "result": found.Handlers} {
		if got[0].Name != "b" || got[1].Name != "a" {
			t.Errorf("the order of the %s has changed to %v", what, got)
		}
	}
	if x.LastKnown[0].Name != "z" || x.Handlers != nil || len(x.Settings) != 1 {
		t.Errorf("the argument has changed: %+v", x)
	}
}

// An address that changes while the extension is down is not called before it works, though handlers are known.
func TestReconcileNewAddressWithLastKnownHandlers(t *testing.T) {
	b := discoverytest.New(t)
	b.Extensions.Serve(urlA, "v")
	if _, err := b.Reconciler.Reconcile(t.Context(), discoverytest.Extension("acme", urlA, "v")); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Reconciler.Reconcile(t.Context(), discoverytest.Extension("acme", urlB, "v")); err == nil {
		t.Fatal("the new address does not answer")
	}
	b.Serves(t, "what was discovered counts more than the status", "v.acme "+urlA)
	paused := discoverytest.Extension("acme", urlB, "v")
	paused.Paused = true
	if _, err := b.Reconciler.Reconcile(t.Context(), paused); err != nil {
		t.Fatal(err)
	}
	b.Serves(t, "a pause changes nothing", "v.acme "+urlA)
}

// A removal forgets everything: the same name may be another extension.
func TestRemoveForgetsEverything(t *testing.T) {
	b := discoverytest.New(t)
	b.Extensions.Serve(urlA, "v")
	if _, err := b.Reconciler.Reconcile(t.Context(), discoverytest.Extension("acme", urlA)); err != nil {
		t.Fatal(err)
	}
	b.Reconciler.Remove("acme")
	b.Serves(t, "nothing")
	b.Extensions.Down(urlA)
	if _, err := b.Reconciler.Reconcile(t.Context(), discoverytest.Extension("acme", urlA, "known")); err == nil {
		t.Fatal("the extension is down")
	}
	b.Serves(t, "its own last known handlers", "known.acme "+urlA)
	if got := b.Logs.Lines("extension removed", "extensionConfig=acme"); len(got) != 1 {
		t.Errorf("the removal is logged once, got %q", got)
	}
	b.Reconciler.Remove("unknown")
	if got := b.Logs.Lines("extension removed"); len(got) != 1 {
		t.Errorf("the removal of what never was is not logged, got %q", got)
	}
}

func TestReconcileThatIsStoppedSaysNothing(t *testing.T) {
	b := discoverytest.New(t)
	ctx, cancel := context.WithCancel(t.Context())
	b.Extensions.Set(urlA, func(context.Context) (extension.Discovered, error) {
		cancel()
		return extension.Discovered{Handlers: discoverytest.Handlers("v")}, nil
	})
	if _, err := b.Reconciler.Reconcile(ctx, discoverytest.Extension("acme", urlA)); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	b.Serves(t, "nothing is registered for a source that has stopped")
	if got := b.Observer.Outcomes(); len(got) > 0 {
		t.Errorf("observed %v", got)
	}
}

// Many are served at once: what is refused keeps no other from being served, and each is remembered for its discovery.
func TestServeAll(t *testing.T) {
	b := discoverytest.New(t)
	current := func(x extensionconfig.Extension) discovery.Known { return discovery.Known{Extension: x, Current: true} }
	paused := discoverytest.Extension("paused", urlA, "v")
	paused.Paused = true
	unknown := discoverytest.Extension("unknown", urlB)
	known := []discovery.Known{
		current(discoverytest.Extension("acme", urlA, "v", "w")),
		current(discoverytest.Extension("bad", urlA, "Not.A.Label")),
		{Extension: discoverytest.Extension("broken", urlA, "Not.A.Label")},
		{Extension: discoverytest.Extension("other", urlB, "x")},
		current(paused), {Extension: unknown},
	}
	for i, err := range b.Reconciler.ServeAll(known) {
		if (err != nil) != (i == 1) {
			t.Errorf("%s: %v", known[i].Extension.Name, err)
		}
	}
	want := []string{"v.acme " + urlA, "v.paused " + urlA, "w.acme " + urlA, "x.other " + urlB}
	b.Serves(t, "the handlers that are known", want...)
	if generation := b.Registry.Snapshot().Generation(); generation != 1 {
		t.Errorf("they are visible after %d changes", generation)
	}
	if got := b.Logs.Lines("level=WARN", "extensionConfig=broken", "refused the last known handlers"); len(got) != 1 {
		t.Errorf("got %q", got)
	}
	if b.Reconciler.Serves(&unknown) || b.Reconciler.Serves(&known[1].Extension) || !b.Reconciler.Serves(&paused) {
		t.Error("Serves is wrong about what is registered")
	}
	moved := discoverytest.Extension("other", urlA, "x")
	if b.Reconciler.Serves(&moved) {
		t.Error("what is registered calls another address")
	}
	b.Reconciler.ServeAll(known)
	if generation := b.Registry.Snapshot().Generation(); generation != 1 {
		t.Error("to serve the same again is a change")
	}
	b.Extensions.Down(urlB)
	if _, err := b.Reconciler.Reconcile(t.Context(), known[3].Extension); err == nil {
		t.Fatal("the extension is down")
	}
	b.Serves(t, "after a failed discovery", want...)
}
