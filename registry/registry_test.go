// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/hookgate/hookgate/hook"
)

func gvh(name string) hook.GroupVersionHook {
	return hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: name}
}

// registration returns a registration with one handler of BeforeClusterCreate per name.
func registration(name string, handlers ...string) Registration {
	reg := Registration{
		Name:         name,
		ClientConfig: ClientConfig{URL: "https://" + name + ".example/prefix", CABundle: []byte("ca of " + name)},
		Settings:     map[string]string{"k": "v"},
	}
	for _, h := range handlers {
		reg.Handlers = append(reg.Handlers, Handler{
			Name: h, Hook: gvh("BeforeClusterCreate"), Timeout: 10 * time.Second, FailurePolicy: hook.Fail,
		})
	}
	return reg
}

func names(entries []*Entry) []string {
	var names []string
	for _, e := range entries {
		names = append(names, e.Name)
	}
	return names
}

func mustApply(t testing.TB, r *Registry, regs ...Registration) {
	t.Helper()
	for _, reg := range regs {
		if err := r.Apply(reg); err != nil {
			t.Fatalf("Apply %s: %v", reg.Name, err)
		}
	}
}

func TestHandlersAreInOrderOfRegisteredNames(t *testing.T) {
	r := New()
	other := registration("a", "z")
	other.Handlers[0].Hook = gvh("AfterClusterUpgrade")
	// "a-b.x" sorts before "a.x", though "a" sorts before "a-b".
	mustApply(t, r, registration("z", "a"), registration("x", "b", "a", "a-b"), registration("c"), other)

	s := r.Snapshot()
	got := names(s.Handlers(gvh("BeforeClusterCreate").GroupHook()))
	if diff := cmp.Diff([]string{"a-b.x", "a.x", "a.z", "b.x"}, got); diff != "" {
		t.Errorf("Handlers(BeforeClusterCreate): -want +got\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a-b.x", "a.x", "a.z", "b.x", "z.a"}, names(s.All())); diff != "" {
		t.Errorf("All: -want +got\n%s", diff)
	}
	if got := s.Handlers(gvh("BeforeClusterDelete").GroupHook()); len(got) != 0 {
		t.Errorf("Handlers(BeforeClusterDelete) = %v, want none", names(got))
	}
	var configs []string
	for _, reg := range s.Registrations() {
		configs = append(configs, reg.Name)
	}
	if diff := cmp.Diff([]string{"a", "c", "x", "z"}, configs); diff != "" {
		t.Errorf("Registrations: -want +got\n%s", diff)
	}
}

func TestHandlersOfEveryVersionOfAHook(t *testing.T) {
	r := New()
	reg := registration("x", "a", "b")
	reg.Handlers[1].Hook.Version = "v1beta1"
	mustApply(t, r, reg)
	got := names(r.Snapshot().Handlers(gvh("BeforeClusterCreate").GroupHook()))
	if diff := cmp.Diff([]string{"a.x", "b.x"}, got); diff != "" {
		t.Errorf("Handlers: -want +got\n%s", diff)
	}
}

func TestHandlerByNameAndLabel(t *testing.T) {
	r := New()
	long := strings.Repeat("h", 40)
	mustApply(t, r, registration("acme", "v", "a--b", long), registration(long, long))

	for name, tc := range map[string]struct{ reason, name, want string }{
		"name":           {"the registered name", "v.acme", "v.acme"},
		"upper":          {"paths are in any letter case", "V.ACME", "v.acme"},
		"label":          {"the label", "v--acme", "v.acme"},
		"upper label":    {"labels are in any letter case, too", "V--Acme", "v.acme"},
		"hashed label":   {"a name with two hyphens has a label with a hash", Label("a--b.acme"), "a--b.acme"},
		"hashed name":    {"and still its name", "a--b.acme", "a--b.acme"},
		"no hash":        {"the label without the hash selects no handler", "a--b--acme", ""},
		"long":           {"a label that would be too long has a hash", Label(long + "." + long), long + "." + long},
		"long, unhashed": {"a label that is too long selects no handler", long + "--" + long, ""},
		"handler alone":  {"the handler's own name is not unique", "v", ""},
		"wrong config":   {"no such ExtensionConfig", "v.other", ""},
		"wrong handler":  {"no such handler", "w.acme", ""},
		"empty":          {"no name at all", "", ""},
		"dots":           {"names have one dot", "v.acme.x", ""},
	} {
		t.Run(name, func(t *testing.T) {
			e, ok := r.Snapshot().Handler(tc.name)
			if ok != (tc.want != "") {
				t.Fatalf("%s: Handler(%q) found: %t", tc.reason, tc.name, ok)
			}
			if ok && e.Name != tc.want {
				t.Errorf("%s: Handler(%q) = %q, want %q", tc.reason, tc.name, e.Name, tc.want)
			}
		})
	}
}

func TestApplyRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		reason string
		change func(*Registration)
		want   string
	}{
		"no name": {"an ExtensionConfig has a name", func(r *Registration) { r.Name = "" }, `ExtensionConfig "": name: must not be empty`},
		"dotted name": {
			"registered names have one dot", func(r *Registration) { r.Name = "a.b" },
			`ExtensionConfig "a.b": name: "a.b" must consist of lower case letters, digits and '-', and begin and end with a letter or digit`,
		},
		"upper case handler": {
			"paths are in lower case", func(r *Registration) { r.Handlers[0].Name = "Alpha" },
			`ExtensionConfig "x": handlers[0].name: "Alpha" must be in lower case: in paths, upper and lower case are the same`,
		},
		"no hook": {
			"a handler implements a hook", func(r *Registration) { r.Handlers[1].Hook.Version = "" },
			`ExtensionConfig "x": handlers[1].hook: "hooks.runtime.cluster.x-k8s.io//BeforeClusterCreate" is not of the form group/version/hook`,
		},
		"no timeout": {
			"defaults are the business of discovery", func(r *Registration) { r.Handlers[0].Timeout = 0 },
			`ExtensionConfig "x": handlers[0].timeout: 0s is not more than 0s and at most 30s`,
		},
		"policy": {
			"there are two policies", func(r *Registration) { r.Handlers[0].FailurePolicy = "fail" },
			`ExtensionConfig "x": handlers[0].failurePolicy: "fail" is neither "Fail" nor "Ignore"`,
		},
		"garbage": {
			"the text may hold a password, so that it is not repeated",
			func(r *Registration) { r.ClientConfig.URL = "https://u:secret@h:x" },
			`ExtensionConfig "x": clientConfig.url: is not a URL: check the host, and leave out the user`,
		},
		"several": {
			"every fault is named", func(r *Registration) { r.ClientConfig.URL, r.Handlers[1].Timeout = "", 0 },
			`ExtensionConfig "x": clientConfig.url: must not be empty` + "\n" +
				`ExtensionConfig "x": handlers[1].timeout: 0s is not more than 0s and at most 30s`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := New()
			reg := registration("x", "a", "b")
			tc.change(&reg)
			err := r.Apply(reg)
			if err == nil {
				t.Fatalf("%s: Apply took it", tc.reason)
			}
			if diff := cmp.Diff(tc.want, err.Error()); diff != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, diff)
			}
			if got := r.Snapshot().All(); len(got) != 0 {
				t.Errorf("%s: %v registered all the same", tc.reason, names(got))
			}
		})
	}
}

func TestRefusedUpdateKeepsTheOldEntries(t *testing.T) {
	r := New()
	mustApply(t, r, registration("x", "a", "b"), registration("y", "a"))
	before := r.Snapshot()

	bad := registration("x", "c", "d")
	bad.Handlers[1].Timeout = time.Hour
	if err := r.Apply(bad); err == nil {
		t.Fatal("Apply took a timeout of an hour")
	}
	if r.Snapshot() != before {
		t.Errorf("a refused update changed the snapshot: %v", names(r.Snapshot().All()))
	}

	mustApply(t, r, registration("x", "b", "c"))
	if diff := cmp.Diff([]string{"a.y", "b.x", "c.x"}, names(r.Snapshot().All())); diff != "" {
		t.Errorf("after a good update: -want +got\n%s", diff)
	}
	if _, ok := r.Snapshot().Handler("a.x"); ok {
		t.Error("a.x is still there after the update without it")
	}
}

func TestLabelCollisionsAreRefused(t *testing.T) {
	r := New()
	// One label is too long without a hash; the other ExtensionConfig is named to have the same label without one.
	long := strings.Repeat("l", 61)
	hashed := Label("a." + long)
	rival := strings.TrimPrefix(hashed, "a--")
	mustApply(t, r, registration(long, "a"))

	err := r.Apply(registration(rival, "a"))
	want := fmt.Sprintf(
		"ExtensionConfig %q: handler %q: label %q belongs to handler %q already", rival, "a", hashed, "a."+long,
	)
	if err == nil || err.Error() != want {
		t.Fatalf("Apply = %v, want %s", err, want)
	}
	if e, ok := r.Snapshot().Handler(hashed); !ok || e.Name != "a."+long {
		t.Errorf("Handler(%q) = %v, %t; want the first one", hashed, e, ok)
	}

	// The other way round, the label with the hash comes second.
	r = New()
	mustApply(t, r, registration(rival, "a"))
	if err := r.Apply(registration(long, "a")); err == nil {
		t.Error("Apply took a label that is in use")
	}
	r.Remove(rival)
	mustApply(t, r, registration(long, "a"), registration(long, "a"))
}

func TestApplyCopiesWhatItGets(t *testing.T) {
	r := New()
	reg := registration("x", "b", "a")
	selector := labels.SelectorFromSet(labels.Set{"env": "prod"})
	reg.NamespaceSelector = selector
	mustApply(t, r, reg)

	reg.ClientConfig.CABundle[0] = 'X'
	reg.Settings["k"] = "changed"
	reg.Handlers[0].Name = "changed"

	e, ok := r.Snapshot().Handler("b.x")
	if !ok {
		t.Fatal("handler b.x is gone")
	}
	if diff := cmp.Diff(registration("x", "a", "b").ClientConfig, e.Registration.ClientConfig); diff != "" {
		t.Errorf("ClientConfig: -want +got\n%s", diff)
	}
	if diff := cmp.Diff(map[string]string{"k": "v"}, e.Registration.Settings); diff != "" {
		t.Errorf("Settings: -want +got\n%s", diff)
	}
	if got := e.Registration.NamespaceSelector.String(); got != "env=prod" {
		t.Errorf("NamespaceSelector = %s", got)
	}
}

func TestSnapshotsNeverChange(t *testing.T) {
	r := New()
	mustApply(t, r, registration("b", "x", "y--z"))
	s := r.Snapshot()
	label := Label("y--z.b")
	want := names(s.All())

	mustApply(t, r, registration("a", "x"), registration("b", "other"), registration("c", "y--z"))
	r.Remove("a")
	r.SetReady()

	if diff := cmp.Diff(want, names(s.All())); diff != "" {
		t.Errorf("All of the old snapshot: -want +got\n%s", diff)
	}
	if diff := cmp.Diff(want, names(s.Handlers(gvh("BeforeClusterCreate").GroupHook()))); diff != "" {
		t.Errorf("Handlers of the old snapshot: -want +got\n%s", diff)
	}
	for _, name := range []string{"x.b", "y--z.b", label} {
		if _, ok := s.Handler(name); !ok {
			t.Errorf("Handler(%q) of the old snapshot is gone", name)
		}
		if _, ok := r.Snapshot().Handler(name); ok {
			t.Errorf("Handler(%q) of the new snapshot is still there", name)
		}
	}
	if _, ok := s.Handler("x.a"); ok || len(s.Registrations()) != 1 || s.Ready() {
		t.Error("the old snapshot has what came later")
	}
}

func TestReadyAndGeneration(t *testing.T) {
	r := New()
	if s := r.Snapshot(); s.Ready() || s.Generation() != 0 {
		t.Fatalf("a new registry: ready %t, generation %d", s.Ready(), s.Generation())
	}
	mustApply(t, r, registration("x", "a"))
	r.SetReady()
	r.SetReady() // changes nothing
	r.Remove("nobody")
	if s := r.Snapshot(); !s.Ready() || s.Generation() != 2 || len(s.All()) != 1 {
		t.Errorf("ready %t, generation %d, handlers %v; want true, 2, a.x", s.Ready(), s.Generation(), names(s.All()))
	}
	r.Remove("x")
	if s := r.Snapshot(); !s.Ready() || len(s.All()) != 0 || len(s.byHook) != 0 {
		t.Errorf("after Remove: ready %t, handlers %v, hooks %v", s.Ready(), names(s.All()), s.byHook)
	}
}

// TestReadersDuringUpdates replaces one registration by another again and again. A reader must see either all handlers
// of one, or all of the other, and every way to find them must agree.
func TestReadersDuringUpdates(t *testing.T) {
	r := New()
	mustApply(t, r, registration("fixed", "a"), registration("x", "a", "b"))
	stop := make(chan struct{})
	var readers, writers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				s := r.Snapshot()
				got := names(s.All())
				switch fmt.Sprint(got) {
				case "[a.fixed a.x b.x]", "[a.fixed c--d.x e.x]":
				default:
					t.Errorf("All = %v: half an update", got)
					return
				}
				for _, e := range s.Handlers(gvh("BeforeClusterCreate").GroupHook()) {
					if found, ok := s.Handler(e.Label); !ok || found != e {
						t.Errorf("Handler(%q) and Handlers disagree", e.Label)
						return
					}
				}
			}
		})
	}
	for i := range 2 {
		writers.Go(func() {
			for range 300 {
				reg := registration("x", "a", "b")
				if i == 1 {
					reg = registration("x", "c--d", "e")
				}
				if err := r.Apply(reg); err != nil {
					t.Errorf("Apply: %v", err)
				}
			}
		})
	}
	writers.Wait()
	close(stop)
	readers.Wait()
}

func TestRegistrationByName(t *testing.T) {
	r := New()
	mustApply(t, r, registration("a", "v"), registration("without-handlers"))
	before := r.Snapshot()
	for _, name := range []string{"a", "without-handlers"} {
		if got, ok := before.Registration(name); !ok || got.Name != name {
			t.Errorf("%s: got %v, %t", name, got, ok)
		}
	}
	if got, ok := before.Registration("v.a"); ok || got != nil {
		t.Errorf("the name of a handler: got %v", got)
	}
	r.Remove("a")
	if got, ok := r.Snapshot().Registration("a"); ok || got != nil {
		t.Errorf("after its removal: got %v", got)
	}
}
