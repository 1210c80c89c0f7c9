// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/policy"
)

// TestApplyAtTheLimits applies registrations exactly at each limit; the text is the error one step beyond.
func TestApplyAtTheLimits(t *testing.T) {
	long := strings.Repeat("a", 63)
	for name, tc := range map[string]struct {
		reason     string
		at, beyond func(*Registration)
		want       string
	}{
		"longest timeout": {
			"Cluster API allows 30 s",
			func(r *Registration) { r.Handlers[0].Timeout = 30 * time.Second },
			func(r *Registration) { r.Handlers[0].Timeout = 30*time.Second + 1 },
			`handlers[0].timeout: 30.000000001s is not more than 0s and at most 30s`,
		},
		"shortest timeout": {
			"any time is some time",
			func(r *Registration) { r.Handlers[0].Timeout = 1 },
			func(r *Registration) { r.Handlers[0].Timeout = -1 },
			`handlers[0].timeout: -1ns is not more than 0s and at most 30s`,
		},
		"handler's name": {
			"a DNS-1123 label has 63 characters",
			func(r *Registration) { r.Handlers[1].Name = long },
			func(r *Registration) { r.Handlers[1].Name = long + "a" },
			`handlers[1].name: must have at most 63 characters, has 64`,
		},
		"one letter": {
			"a name is at least one character",
			func(r *Registration) { r.Handlers[1].Name = "0" },
			func(r *Registration) { r.Handlers[1].Name = "" },
			`handlers[1].name: must not be empty`,
		},
		"hyphens": {
			"hyphens are inside",
			func(r *Registration) { r.Handlers[1].Name = "b---b" },
			func(r *Registration) { r.Handlers[1].Name = "b-" },
			`handlers[1].name: "b-" must consist of lower case letters, digits and '-', and begin and end with a letter or digit`,
		},
		"upper case, and more": {
			"a name that is also invalid in lower case gets the whole rule",
			func(*Registration) {},
			func(r *Registration) { r.Handlers[1].Name = "B_b" },
			`handlers[1].name: "B_b" must consist of lower case letters, digits and '-', and begin and end with a letter or digit`,
		},
		"hook's name": {
			"all three parts", func(*Registration) {}, func(r *Registration) { r.Handlers[0].Hook.Hook = "" },
			`handlers[0].hook: "hooks.runtime.cluster.x-k8s.io/v1alpha1/" is not of the form group/version/hook`,
		},
		"hook's group": {
			"all three parts", func(*Registration) {}, func(r *Registration) { r.Handlers[0].Hook.Group = "" },
			`handlers[0].hook: "/v1alpha1/BeforeClusterCreate" is not of the form group/version/hook`,
		},
		"no policy": {
			"there is no default here", func(r *Registration) { r.Handlers[0].FailurePolicy = hook.Ignore },
			func(r *Registration) { r.Handlers[0].FailurePolicy = "" },
			`handlers[0].failurePolicy: "" is neither "Fail" nor "Ignore"`,
		},
		"objects": {
			"of two versions",
			func(r *Registration) { r.Handlers[0].ClusterAPIVersion = "v1beta1" },
			func(r *Registration) { r.Handlers[0].ClusterAPIVersion = "V1beta1" },
			`handlers[0].clusterAPIVersion: "V1beta1" is neither "v1beta1" nor "v1beta2"`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := New()
			reg := registration("x", "a", "b")
			tc.at(&reg)
			mustApply(t, r, reg)
			before := r.Snapshot()
			reg = registration("x", "a", "b")
			tc.beyond(&reg)
			err := r.Apply(reg)
			if want := `ExtensionConfig "x": ` + tc.want; err == nil || err.Error() != want {
				t.Errorf("%s: Apply = %v, want %s", tc.reason, err, want)
			}
			if r.Snapshot() != before {
				t.Errorf("%s: the refused registration made a snapshot", tc.reason)
			}
		})
	}
}

func TestLongestNames(t *testing.T) {
	long, other := strings.Repeat("a", 63), strings.Repeat("a", 62)+"b"
	r := New()
	mustApply(t, r, registration(long, long, other), registration(other, long))
	if got := len(r.Snapshot().All()); got != 3 {
		t.Fatalf("%d handlers", got)
	}
	for _, e := range r.Snapshot().All() {
		if len(e.Label) > 63 {
			t.Errorf("the label of %s has %d characters", e.Name, len(e.Label))
		}
		if got, ok := r.Snapshot().Handler(strings.ToUpper(e.Label)); !ok || got != e {
			t.Errorf("Handler(%s) = %v", e.Label, got)
		}
	}
	err := r.Apply(registration(long+"a", "a"))
	if want := `ExtensionConfig "` + long + `a": name: must have at most 63 characters, has 64`; err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// What makes a URL wrong for every protocol is shown in internal/network/endpoint.
func TestCheckURL(t *testing.T) {
	const (
		scheme = "must begin with https://, not with "
		grpc   = "must begin with https://, grpcs://, grpc://, unix://, not with "
		tls    = "must be on loopback, because grpc:// has no TLS; use grpcs://"
		path   = "must not have a path: gRPC derives the paths from its services"
		user   = "must not have a user"
	)
	for url, want := range map[string]struct{ rest, grpc string }{
		"https://h/":                 {"", ""},
		"https://h:1/prefix":         {"", path},
		"https://u@h/prefix":         {user, user},
		"h":                          {scheme + `""`, grpc + `""`},
		"http://h":                   {scheme + `"http"`, grpc + `"http"`},
		"grpcs://h":                  {scheme + `"grpcs"`, ""},
		"grpcs://h:1/p":              {scheme + `"grpcs"`, path},
		"grpc://127.0.0.1:1":         {scheme + `"grpc"`, ""},
		"grpc://localhost:1":         {scheme + `"grpc"`, ""},
		"grpc://128.0.0.1:1":         {scheme + `"grpc"`, tls},
		"grpc://127.0.0.1":           {scheme + `"grpc"`, "must have a port"},
		"grpc://127.0.0.1:0":         {scheme + `"grpc"`, "port 0 is not between 1 and 65535"},
		"unix:///run/extension.sock": {scheme + `"unix"`, ""},
	} {
		for protocol, want := range map[Protocol]string{REST: want.rest, GRPC: want.grpc} {
			got := ""
			if err := (&ClientConfig{Protocol: protocol, URL: url}).CheckURL(); err != nil {
				got = err.Error()
			}
			if got != want {
				t.Errorf("protocol %q: %q:\n got %q\nwant %q", protocol, url, got, want)
			}
		}
	}
}

func TestSameNames(t *testing.T) {
	for name, tc := range map[string]struct {
		handlers []string
		want     string
	}{
		"Same":      {[]string{"a", "b", "a"}, `handlers[2].name: another handler is also named "a"`},
		"UpperLast": {[]string{"a", "b", "B"}, `handlers[2].name: "b" and "B" differ only in case: in paths, upper and lower case are the same`},
		"UpperFirst": {
			[]string{"B", "b"}, `handlers[0].name: "B" must be in lower case: in paths, upper and lower case are the same` + "\n" +
				`ExtensionConfig "x": handlers[1].name: "B" and "b" differ only in case: in paths, upper and lower case are the same`,
		},
		"Thrice": {
			[]string{"a", "A", "a"}, `handlers[1].name: "a" and "A" differ only in case: in paths, upper and lower case are the same` + "\n" +
				`ExtensionConfig "x": handlers[2].name: another handler is also named "a"`,
		},
	} {
		err := New().Apply(registration("x", tc.handlers...))
		if want := `ExtensionConfig "x": ` + tc.want; err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", name, err, want)
		}
	}
}

// Two ExtensionConfigs may have handlers of the same names; removing one leaves the other as it was.
func TestRemoveLeavesTheOther(t *testing.T) {
	r := New()
	mustApply(t, r, registration("x", "a", "c--d"), registration("y", "a", "c--d"))
	kept := r.Snapshot()
	r.Remove("x")
	s := r.Snapshot()
	if diff := cmp.Diff([]string{"a.y", "c--d.y"}, names(s.All())); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	for _, name := range []string{"a.y", "a--y", "c--d.y", Label("c--d.y")} {
		if e, ok := s.Handler(name); !ok {
			t.Errorf("%s is gone", name)
		} else if old, _ := kept.Handler(name); old != e {
			t.Errorf("%s is another entry", name)
		}
	}
	for _, name := range []string{"a.x", "a--x", "c--d.x", Label("c--d.x")} {
		if _, ok := s.Handler(name); ok {
			t.Errorf("%s is still there", name)
		}
		if _, ok := kept.Handler(name); !ok {
			t.Errorf("%s is gone from the snapshot of before", name)
		}
	}
	r.Remove("y")
	if s := r.Snapshot(); len(s.All())+len(s.byHook)+len(s.byConfig)+len(s.byHashedLabel)+len(s.Registrations()) != 0 {
		t.Errorf("something is left: %+v", s)
	}
	if s := r.Snapshot(); s.Generation() != kept.Generation()+2 {
		t.Errorf("generation %d after %d", s.Generation(), kept.Generation())
	}
}

// A handler that changes its hook leaves the list of the old one.
func TestReplacedHandlersChangeHooks(t *testing.T) {
	r := New()
	mustApply(t, r, registration("x", "a"), registration("y", "a"))
	moved := registration("x", "a")
	moved.Handlers[0].Hook = gvh("BeforeClusterDelete")
	mustApply(t, r, moved)
	for hookName, want := range map[string][]string{"BeforeClusterCreate": {"a.y"}, "BeforeClusterDelete": {"a.x"}} {
		if diff := cmp.Diff(want, names(r.Snapshot().Handlers(gvh(hookName).GroupHook()))); diff != "" {
			t.Errorf("%s: -want +got:\n%s", hookName, diff)
		}
	}
	otherGroup := gvh("BeforeClusterCreate")
	otherGroup.Group = "hooks.example"
	if got := r.Snapshot().Handlers(otherGroup.GroupHook()); len(got) != 0 {
		t.Errorf("a hook of the same name in another group has %v", names(got))
	}
}

// Every refusal leaves the very snapshot that was there.
func TestRefusalsChangeNothing(t *testing.T) {
	long := strings.Repeat("l", 61)
	rival := strings.TrimPrefix(Label("a."+long), "a--")
	sole := NewSidecar()
	mustApply(t, sole, registration("x", "a"))
	several := New()
	mustApply(t, several, registration(long, "a"), registration(rival, "b"))
	for name, tc := range map[string]struct {
		registry *Registry
		reg      Registration
	}{
		"Sole":         {sole, registration("y", "a")},
		"SoleInvalid":  {sole, registration("x", "A")},
		"LabelOfMany":  {several, registration(rival, "b", "a", "c")},
		"InvalidFirst": {several, registration(rival, "a", "A")},
	} {
		before := tc.registry.Snapshot()
		if err := tc.registry.Apply(tc.reg); err == nil {
			t.Errorf("%s: Apply took it", name)
		}
		if tc.registry.Snapshot() != before {
			t.Errorf("%s: there is another snapshot", name)
		}
	}
}

// Labels can also collide within one ExtensionConfig, if two names have the same hash.
func TestLabelsWithinOneRegistration(t *testing.T) {
	reg := registration("x", "a", "b")
	s := New().Snapshot()
	c := s.newConfig(&reg, Policies{})
	c.entries[1].Label = c.entries[0].Label
	want := `ExtensionConfig "x": handler "b": label "a--x" belongs to handler "a.x" already`
	if err := s.checkLabels(c); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestApplyLeavesTheArgumentAlone(t *testing.T) {
	r := New()
	reg := registration("x", "b", "a")
	reg.NamespaceSelector = labels.Everything()
	mustApply(t, r, reg)
	if reg.Handlers[0].Name != "b" {
		t.Error("the caller's handlers were put in order")
	}
	again := registration("x", "c")
	again.Settings = nil
	mustApply(t, r, again)
	if got := r.Snapshot().Registrations()[0]; got.Settings != nil || got.NamespaceSelector != nil {
		t.Errorf("a replaced registration keeps %v, %v", got.Settings, got.NamespaceSelector)
	}
}

func TestSetPoliciesCopiesTheMap(t *testing.T) {
	r := New()
	mustApply(t, r, registration("x", "a", "b"))
	p, q := &policy.Policy{Name: "p"}, &policy.Policy{Name: "q"}
	given := Policies{Handlers: map[string]*policy.Policy{"a": p}}
	r.SetPolicies("x", given)
	given.Handlers["a"], given.Handlers["b"] = q, q
	mustApply(t, r, registration("x", "a", "b"))
	if diff := cmp.Diff(map[string]string{"a.x": "p 10s Fail", "b.x": "- 10s Fail"}, called(r)); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	before := r.Snapshot()
	r.SetPolicies("y", Policies{All: q})
	r.SetPolicies("x", Policies{All: q})
	if len(before.policies) != 1 || before.policies["x"].All != nil {
		t.Errorf("the old snapshot has other policies: %v", before.policies)
	}
	if got := r.Snapshot(); got.Generation() != before.Generation()+1 {
		t.Errorf("generation %d after %d: only one change is visible", got.Generation(), before.Generation())
	}
	if got := r.Snapshot().policies["x"]; got.All != q || got.Handlers != nil {
		t.Errorf("new policies were added to the old: %v", got)
	}
}

func TestOverride(t *testing.T) {
	h := Handler{Name: "a", Timeout: 10 * time.Second, FailurePolicy: hook.Fail, ClusterAPIVersion: "v1beta1"}
	changed := func(change func(*Handler)) Handler {
		o := h
		change(&o)
		return o
	}
	all := &policy.Policy{Timeout: 5 * time.Second, FailurePolicy: hook.Ignore, ClusterAPIVersion: "v1beta2"}
	for name, tc := range map[string]struct {
		reason   string
		policies Policies
		want     Handler
	}{
		"Nothing": {"a policy that says nothing changes nothing", Policies{All: &policy.Policy{}}, h},
		"AtLimit": {
			"30 s are allowed", Policies{All: &policy.Policy{Timeout: 30 * time.Second}},
			changed(func(h *Handler) { h.Timeout = 30 * time.Second }),
		},
		"Beyond": {
			"and no more", Policies{All: &policy.Policy{Timeout: 30*time.Second + 1}},
			changed(func(h *Handler) { h.Timeout = 30 * time.Second }),
		},
		"Shortest": {"any time is some time", Policies{All: &policy.Policy{Timeout: 1}}, changed(func(h *Handler) { h.Timeout = 1 })},
		"Negative": {"what is not positive says nothing", Policies{All: &policy.Policy{Timeout: -1}}, h},
		"OwnOverAll": {
			"what the own one leaves out is the other's",
			Policies{All: all, Handlers: map[string]*policy.Policy{"a": {}}},
			Handler{Name: "a", Timeout: 5 * time.Second, FailurePolicy: hook.Ignore, ClusterAPIVersion: "v1beta2"},
		},
		"OtherHandler": {"a policy of another handler is not for this one", Policies{Handlers: map[string]*policy.Policy{"b": all}}, h},
		"OwnIsNil": {"no policy is no policy", Policies{All: all, Handlers: map[string]*policy.Policy{"a": nil}}, changed(func(h *Handler) {
			h.Timeout, h.FailurePolicy, h.ClusterAPIVersion = 5*time.Second, hook.Ignore, "v1beta2"
		})},
	} {
		if diff := cmp.Diff(tc.want, tc.policies.Override(h)); diff != "" {
			t.Errorf("%s: %s: -want +got:\n%s", name, tc.reason, diff)
		}
	}
}

// What a registry waits for is of no interest once it is ready, and Ready is signalled once.
func TestReadyStaysReady(t *testing.T) {
	r := New()
	select {
	case <-r.Ready():
		t.Fatal("a new registry is ready")
	default:
	}
	r.SetUnready("waits")
	if s := r.Snapshot(); s.Generation() != 1 {
		t.Errorf("generation %d, want 1", s.Generation())
	}
	r.SetReady()
	<-r.Ready()
	before := r.Snapshot()
	r.SetUnready("waits again")
	r.SetReady()
	if r.Snapshot() != before || before.Generation() != 2 || !before.Ready() {
		t.Errorf("a ready registry changed: %+v", r.Snapshot())
	}
	mustApply(t, r, registration("x", "a"))
	if !r.Snapshot().Ready() {
		t.Error("Apply made it unready")
	}
}
