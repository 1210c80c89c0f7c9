// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/labels"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/calls/activity"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/contract/subject"
	"github.com/hookgate/hookgate/internal/seeing/observe"
	"github.com/hookgate/hookgate/internal/serving/shared"
	"github.com/hookgate/hookgate/registry"
	"github.com/hookgate/hookgate/test/samples"
)

// reported is a gateway whose handlers answer as tests set, and its Reporter. One extension, acme, has two handlers of
// BeforeClusterCreate, a and b.
type reported struct {
	observe.Reporter
	observed observed
	d        *Dispatcher
	answers  answers
}

func newReported(t *testing.T) *reported {
	t.Helper()
	r := filled(t, registrationOf("acme", handlerOf("a", "BeforeClusterCreate", hook.Fail), handlerOf("b", "BeforeClusterCreate", hook.Ignore)))
	o := newObserved(r)
	f := &reported{
		observed: o,
		Reporter: observe.Reporter{
			ID: "gateway-1", Version: "v1.2.3", Started: time.Now(), Catalog: allHooks, Registry: r, Observer: o.Observer,
			Namespaces: fixedNamespaces{"gold": {"tier": "gold"}},
		},
		answers: answers{},
	}
	f.d = NewDispatcher(Config{
		Catalog: allHooks, Versions: allVersions, Registry: r, Namespaces: fixedNamespaces{},
		Parts: shared.Parts{Codec: mandated, Transport: transportOf(f.answers), Observer: o.Observer},
	})
	return f
}

// call calls a handler, which takes some time, for the Cluster c in the namespace n.
func (f *reported) call(t *testing.T, handler string, took time.Duration, retry int32, err error) {
	t.Helper()
	f.answers[handler] = func(context.Context, extension.Call) (proto.Message, error) {
		time.Sleep(took)
		if err != nil {
			return nil, err
		}
		m := &hooksv1alpha1.BeforeClusterCreateResponse{Status: success, RetryAfterSeconds: retry}
		if retry < 0 {
			m.Status, m.RetryAfterSeconds, m.Message = failure, 0, "no room"
		} else if retry > 0 {
			m.Message = "not yet"
		}
		return m, nil
	}
	_, _ = create(t, f.d, handler)
}

func (f *reported) acme(t *testing.T) status.Extension {
	t.Helper()
	g, ok := f.Extension("acme")
	if !ok || len(g.Extensions) != 1 {
		t.Fatalf("acme is not there: %+v", g)
	}
	return g.Extensions[0]
}

func TestStatesOfAnExtension(t *testing.T) {
	unreachable := hook.Errorf(hook.Unreachable, "cannot connect").WithCause(errors.New("connection refused"))
	synctest.Test(t, func(t *testing.T) {
		f := newReported(t)
		began := time.Now()
		at := func(seconds int) *time.Time { at := began.Add(time.Duration(seconds) * time.Second); return &at }
		want := func(step string, state status.State, since *time.Time, text string) {
			t.Helper()
			x := f.acme(t)
			if x.State != state || cmp.Diff(since, x.Since) != "" || x.Error != text {
				t.Errorf("%s: got %s since %s, error %q; want %s since %s, %q", step, x.State, x.Since, x.Error, state, since, text)
			}
		}
		want("before any call", status.Unknown, nil, "")
		f.Observer.Discovered("acme", "https://acme.example", "Success", false, nil)
		want("discovered", status.Up, at(0), "")
		if f.acme(t).HealthUnchecked {
			t.Error("the health is unchecked, which discovery has not said")
		}
		f.Observer.Discovered("acme", "https://acme.example", "Success", true, nil)
		if !f.acme(t).HealthUnchecked {
			t.Error("the status does not say that the health is unchecked")
		}
		time.Sleep(time.Second)
		f.call(t, "a.acme", 0, 0, nil)
		want("called", status.Up, at(0), "")
		time.Sleep(time.Second)
		f.call(t, "a.acme", 0, 0, unreachable)
		want("unreachable", status.Down, at(2), "cannot connect: connection refused")
		time.Sleep(time.Second)
		f.call(t, "a.acme", 0, 0, unreachable)
		want("still", status.Down, at(2), "cannot connect: connection refused")
		f.call(t, "b.acme", 0, 0, nil)
		want("another handler answers", status.Up, at(3), "")
		time.Sleep(time.Second)
		f.call(t, "b.acme", 0, -1, nil)
		want("it answers Failure", status.Failing, at(4), `b.acme: 1 of 2 calls failed lately: no room`)
		if handlers := f.acme(t).Handlers; handlers[0].State != status.Up || handlers[1].State != status.Failing || handlers[1].Error == "" {
			t.Errorf("the handlers are %+v", handlers)
		}
		time.Sleep(time.Second)
		f.call(t, "b.acme", 0, 0, nil)
		want("it answers again", status.Up, at(5), "")
		time.Sleep(time.Second)
		f.Observer.Discovered("acme", "https://acme.example", "BadResponse", false, hook.Errorf(hook.BadResponse, "not JSON"))
		want("its discovery fails", status.Failing, at(6), "not JSON")
		if !f.acme(t).Stale {
			t.Error("its handlers are not stale")
		}
		time.Sleep(time.Second)
		f.Observer.Discovered("acme", "https://acme.example", "Timeout", false, hook.Errorf(hook.Timeout, "no answer"))
		want("its discovery gets no answer", status.Down, at(7), "no answer")
		for range 10 { // which opens the circuit
			f.call(t, "a.acme", 0, 0, unreachable)
		}
		x := f.acme(t)
		if x.State != status.Down || x.Circuit.State == "closed" || x.Circuit.Kind != "Unreachable" || x.Circuit.Opened != 1 {
			t.Errorf("the circuit is open: got %s, %+v", x.State, x.Circuit)
		}
		time.Sleep(time.Second)
		f.Observer.Discovered("acme", "https://acme.example", "Success", false, nil)
		f.Observer.Server("acme", "https://acme.example", hook.Errorf(hook.Unreachable, "connection refused"))
		want("it is looked for", status.Down, at(8), "connection refused")
		time.Sleep(time.Second)
		f.Observer.Server("acme", "https://acme.example", nil)
		want("it is back", status.Up, at(9), "")
		if x := f.acme(t); x.Circuit.State != "closed" {
			t.Errorf("its circuit is %+v", x.Circuit)
		}
		f.call(t, "a.acme", 0, 0, nil)
		want("it is called", status.Up, at(9), "")
	})
}

func TestStatusOfAnExtension(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newReported(t)
		order := int32(3)
		r, _ := f.Registry.(*registry.Registry)
		r.SetPolicies("acme", forHandler("a", policy.Policy{Order: &order, Timeout: 7 * time.Second, Conditions: conditions(t, "true")}))
		f.observed.losses.Record("acme", "a", []string{"spec.gone"})
		f.call(t, "a.acme", 6*time.Second, 0, nil) // more than eight tenths of 7 s
		f.call(t, "a.acme", 0, 0, nil)
		f.call(t, "b.acme", 0, 0, hook.Errorf(hook.BadResponse, "not JSON")) // ignored
		x := f.acme(t)
		if got := x.Calls; got.Total != 3 || got.Failures != 1 || got.NearTimeout != 1 || got.P99.Duration() < 4*time.Second {
			t.Errorf("calls of the extension: %+v", got)
		}
		if n := len(x.Calls.Points.Total); n != activity.Slots {
			t.Errorf("%d points, want %d", n, activity.Slots)
		}
		a := x.Handlers[0]
		a.Calls, a.LastSuccess = status.Calls{}, nil
		want := status.Handler{
			Name: "a.acme", OfferedAs: "beforeclustercreate", Hook: "BeforeClusterCreate", APIVersion: "hooks.runtime.cluster.x-k8s.io/v1alpha1", Timeout: 7,
			FailurePolicy: "Fail", Order: &order, Policy: "p", Conditional: true, State: status.Up, Lost: []string{"spec.gone"},
		}
		if diff := cmp.Diff(want, a); diff != "" {
			t.Errorf("handler a: -want +got\n%s", diff)
		}
		if b := x.Handlers[1]; b.State != status.Failing || b.Policy != "" || b.Conditional {
			t.Errorf("handler b: %+v", b)
		}
		failures := []status.Failure{{
			At: time.Now(), Hook: "BeforeClusterCreate", Handler: "b.acme", Outcome: "ignored", Kind: "BadResponse", Message: "not JSON", Times: 1,
		}}
		if diff := cmp.Diff(failures, x.Failures); diff != "" {
			t.Errorf("failures: -want +got\n%s", diff)
		}
		if list := f.Gateway().Extensions[0]; list.Failures != nil || list.Calls.Points.Total == nil || list.Handlers[0].Calls.Points.Total != nil {
			t.Errorf("the list has too much, or too little: %+v", list)
		}
	})
}

func TestStatusHasThePreviousURL(t *testing.T) {
	f, since := newReported(t), time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	reg := registrationOf("moves", handlerOf("a", "BeforeClusterCreate", hook.Fail))
	reg.Pending = &registry.Pending{URL: "grpcs://new.example", Protocol: registry.GRPC, Since: since}
	if err := f.Reporter.Registry.(*registry.Registry).Apply(reg); err != nil {
		t.Fatal(err)
	}
	g, _ := f.Extension("moves")
	want := status.Pending{URL: "grpcs://new.example", Protocol: "gRPC", Since: since}
	if x := g.Extensions[0]; x.URL != "https://moves.example" || x.Protocol != "REST" || x.Pending == nil || *x.Pending != want {
		t.Errorf("got %+v, %+v", x, x.Pending)
	}
}

func TestExtensionThatWasNeverRegistered(t *testing.T) {
	f := newReported(t)
	f.Observer.Discovered("gone", "https://user:secret@gone.example", "Unreachable", false, hook.Errorf(hook.Unreachable, "refused"))
	g := f.Gateway()
	if len(g.Extensions) != 2 || g.Extensions[1].Name != "gone" {
		t.Fatalf("got %+v", g.Extensions)
	}
	x := g.Extensions[1]
	if x.State != status.Down || x.Error != "refused" || x.Stale || len(x.Handlers) > 0 || x.URL != "https://***@gone.example" {
		t.Errorf("got %+v", x)
	}
	if _, ok := f.Extension("gone"); !ok {
		t.Error("it cannot be asked for")
	}
	f.Observer.Forget("gone")
	if _, ok := f.Extension("gone"); ok {
		t.Error("it can be asked for after its ExtensionConfig is gone")
	}
}

func TestClustersThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newReported(t)
		waits := func() []status.Hold {
			t.Helper()
			return f.Gateway().Holds
		}
		began := time.Now()
		f.call(t, "a.acme", 0, 60, nil)
		time.Sleep(time.Minute)
		f.call(t, "a.acme", 0, 30, nil)
		hold := status.Hold{
			Namespace: "n", Cluster: "c", Hook: "BeforeClusterCreate", Handler: "a.acme", Message: "not yet", RetryAfter: 30, Since: began,
			Last: began.Add(time.Minute),
		}
		if diff := cmp.Diff([]status.Hold{hold}, waits()); diff != "" {
			t.Errorf("held twice: -want +got\n%s", diff)
		}
		f.call(t, "a.acme", 0, -1, nil)
		hold.Kind, hold.Message, hold.RetryAfter = "Failure", "no room", 0
		if diff := cmp.Diff([]status.Hold{hold}, waits()); diff != "" {
			t.Errorf("refused: -want +got\n%s", diff)
		}
		f.call(t, "a.acme", 0, 0, hook.Errorf(hook.Canceled, "the caller left"))
		if diff := cmp.Diff([]status.Hold{hold}, waits()); diff != "" {
			t.Errorf("a caller that leaves learns nothing: -want +got\n%s", diff)
		}
		f.call(t, "a.acme", 0, 0, nil)
		if got := waits(); len(got) != 0 {
			t.Errorf("released: got %+v", got)
		}
		f.call(t, "b.acme", 0, 0, hook.Errorf(hook.BadResponse, "ignored"))
		if got := waits(); len(got) != 0 {
			t.Errorf("an ignored failure holds nothing: got %+v", got)
		}
		f.call(t, "b.acme", 0, 5, nil)
		if g, _ := f.Extension("acme"); len(g.Holds) != 1 {
			t.Errorf("acme holds %+v, want one Cluster", g.Holds)
		}
	})
}

func TestHandlersOfACluster(t *testing.T) {
	f := newReported(t)
	r, _ := f.Registry.(*registry.Registry)
	gold := registrationOf("gold", handlerOf("late", "BeforeClusterCreate", hook.Fail), handlerOf("last", "BeforeClusterUpgrade", hook.Fail))
	gold.NamespaceSelector = labels.SelectorFromSet(labels.Set{"tier": "gold"})
	if err := r.Apply(gold); err != nil {
		t.Fatal(err)
	}
	first, second := int32(1), int32(2)
	r.SetPolicies("acme", forHandler("b", policy.Policy{Order: &second}))
	r.SetPolicies("gold", forHandler("late", policy.Policy{Order: &first}))
	f.call(t, "a.acme", 0, 30, nil)
	for namespace, want := range map[string][]string{
		"n":    {"BeforeClusterCreate b.acme a.acme"},
		"gold": {"BeforeClusterCreate late.gold b.acme a.acme", "BeforeClusterUpgrade last.gold"},
	} {
		c, known := f.Cluster(namespace, "c")
		if known != (namespace == "n") || known != (c.LastCall != nil) {
			t.Errorf("%s: known %t, last call %v", namespace, known, c.LastCall)
		}
		var got []string
		for _, h := range c.Hooks {
			line := []string{h.Name}
			for _, handler := range h.Handlers {
				line = append(line, handler.Name)
			}
			got = append(got, strings.Join(line, " "))
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: -want +got\n%s", namespace, diff)
		}
		if (len(c.Holds) == 1) != (namespace == "n") {
			t.Errorf("%s: %d holds", namespace, len(c.Holds))
		}
	}
}

// TestClustersThatAreKnown lists those that wait before those that were called about last.
func TestClustersThatAreKnown(t *testing.T) {
	f := newReported(t)
	f.call(t, "a.acme", 0, 30, nil) // of n/c
	for _, name := range []string{"first", "second"} {
		req := &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: &hooksv1alpha1.RawExtension{
			Raw: []byte(`{"metadata": {"namespace": "m", "name": "` + name + `"}}`),
		}}
		f.answers["a.acme"] = func(context.Context, extension.Call) (proto.Message, error) {
			return &hooksv1alpha1.BeforeClusterCreateResponse{Status: success}, nil
		}
		if _, err := f.d.dispatch(t.Context(), hookOf(t, "BeforeClusterCreate"), "a.acme", req); err != nil {
			t.Fatal(err)
		}
	}
	for part, want := range map[string]string{"": "n/c:1 m/second:0 +1", "m/": "m/second:0 m/first:0 +0", "nothing": "+0"} {
		found, more := f.Clusters(part, 2)
		var got strings.Builder
		for _, c := range found {
			fmt.Fprintf(&got, "%s/%s:%d ", c.Namespace, c.Name, c.Holds)
		}
		fmt.Fprintf(&got, "+%d", more)
		if got := got.String(); got != want {
			t.Errorf("%q: got %s, want %s", part, got, want)
		}
	}
	for target, want := range map[string]struct {
		code int
		text string
	}{
		"m/first":  {http.StatusOK, `"lastCall"`},
		"m/frist":  {http.StatusNotFound, `no call about a Cluster "m/frist" has reached this process: did you mean "m/first"?`},
		"x/absent": {http.StatusNotFound, "look for the name with kubectl get clusters, or ask the other replicas"},
		"first":    {http.StatusBadRequest, `cluster="first": want cluster=NAMESPACE/NAME`},
		"":         {http.StatusBadRequest, "want cluster=NAMESPACE/NAME"},
	} {
		w := httptest.NewRecorder()
		f.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/status?cluster="+target, http.NoBody))
		if w.Code != want.code || !strings.Contains(w.Body.String(), want.text) {
			t.Errorf("%s: %d %s, want %d %s", target, w.Code, w.Body, want.code, want.text)
		}
	}
	f.HasCluster = func(_, name string) bool { return name == "absent" }
	if _, known := f.Cluster("x", "absent"); !known {
		t.Error("the API server has it, and it is not known")
	}
}

// TestClusterOfEveryHook finds the Cluster in the request of each hook that is about one.
func TestClusterOfEveryHook(t *testing.T) {
	without := map[string]bool{"Discovery": true, "DiscoverVariables": true}
	for _, name := range samples.Hooks() {
		m := hookOf(t, name).Request.New().Interface()
		if err := mandated.Decode(samples.Body(name), m); err != nil {
			t.Fatal(err)
		}
		if namespace, cluster := subject.Cluster(m); (cluster == "") != without[name] || (namespace == "") != without[name] {
			t.Errorf("%s: namespace %q, Cluster %q", name, namespace, cluster)
		}
	}
}

func TestStatusOverHTTP(t *testing.T) {
	f := newReported(t)
	f.Notices = func() []status.Notice {
		return []status.Notice{{Name: "fine"}, {Name: "certificate/serving", Text: "ends tomorrow"}}
	}
	get := func(target string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		f.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil))
		return w
	}
	var got status.Gateway
	if w := get("/status?extension=acme"); w.Code != http.StatusOK || json.Unmarshal(w.Body.Bytes(), &got) != nil {
		t.Fatalf("got %d %s", w.Code, w.Body)
	}
	want := status.Gateway{
		ID: "gateway-1", Version: "v1.2.3", Window: 300, Holds: []status.Hold{},
		Notices: []status.Notice{{Name: "certificate/serving", Text: "ends tomorrow"}},
	}
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(status.Gateway{}, "Started", "Now", "Extensions")); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	for name, want := range map[string]string{
		"other":                    "there is no extension \"other\"\n",
		"acmee":                    "there is no extension \"acmee\": did you mean \"acme\"?\n",
		strings.Repeat("x", 1_000): "there is no extension \"" + text.Cut(strings.Repeat("x", 1_000), limits.QuotedBytes) + "\"\n",
	} {
		if w := get("/status?extension=" + name); w.Code != http.StatusNotFound || w.Body.String() != want {
			t.Errorf("%s: got %d %s", name, w.Code, w.Body)
		}
	}
}
