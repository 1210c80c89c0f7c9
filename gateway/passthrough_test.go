// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/calls/bounds"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/calls/selection"
	"github.com/hookgate/hookgate/internal/contract/convert"
	"github.com/hookgate/hookgate/internal/seeing/observe"
	"github.com/hookgate/hookgate/internal/serving/shared"
	"github.com/hookgate/hookgate/registry"
)

// A request about templates in two namespaces and their Cluster, in two spellings: the items of the first one are built
// only if they are read, and those of the second one always.
const (
	passHead  = `"kind":"GeneratePatchesRequest","apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1"`
	passItems = `"variables":[{"name":"builtin","value":{"cluster":{"name":"c","namespace":"n","metadata":{"labels":{"tier":"gold"}}}}}],` +
		`"items":[{"uid":"1","holderReference":{"kind":"Cluster","namespace":"red"},"object":{"a":1},"new":true},` +
		`{"uid":"2","holderReference":{"kind":"Cluster","namespace":"blue"},"object":{"a":2}}]`
	passBody = `{` + passHead + `,` + passItems + `}`
	readBody = `{` + passItems + `,` + passHead + `}`
)

// passGateway is a Dispatcher with a handler of GeneratePatches, v.acme, and what its transport has seen.
type passGateway struct {
	*Dispatcher
	registry *registry.Registry
	observer *observe.Observer
	fails    error // of each call
	passed   bool  // whether the last call had no Request
	sent     any   // the JSON of the last one
	calls    int   // how many there were
}

func newPassGateway(t *testing.T, reg registry.Registration, p *policy.Policy) *passGateway {
	t.Helper()
	g := &passGateway{registry: filled(t, reg)}
	if p != nil {
		p.Name = "p"
		g.registry.SetPolicies("acme", registry.Policies{All: p})
	}
	g.observer = observe.NewObserver(observe.NewMetrics(prometheus.NewRegistry(), g.registry, allHooks, "test"), noop.NewTracerProvider(),
		slog.New(slog.DiscardHandler), convert.NewLosses(nil))
	g.Dispatcher = NewDispatcher(Config{
		Catalog: allHooks, Versions: allVersions, Registry: g.registry, Namespaces: fixedNamespaces{},
		Parts: shared.Parts{Codec: mandated, Objects: convert.NewObjects(convert.NewReferences()), Observer: g.observer, Transport: func(_ context.Context, c extension.Call) (extension.Result, error) { return g.transport(t, c) }},
	})
	return g
}

// transport answers with a patch for the item 2.
func (g *passGateway) transport(t *testing.T, c extension.Call) (extension.Result, error) {
	text := c.Body
	if text == nil || c.Handler.Registration.ClientConfig.Protocol == registry.GRPC {
		var err error
		if text, err = mandated.Append(nil, messageOf(t, c)); err != nil {
			t.Errorf("the request cannot be sent: %v", err)
		}
	}
	g.calls++
	g.passed, g.sent = c.Request == nil, jsonOf(t, text)
	if g.fails != nil {
		return extension.Result{}, g.fails
	}
	return extension.Result{Response: &hooksv1alpha1.GeneratePatchesResponse{
		Status: success, Items: []*hooksv1alpha1.GeneratePatchesResponseItem{{Uid: "2", Patch: []byte("[]")}},
	}}, nil
}

// messageOf returns the request of a call, with the elements that its partial message lacks.
func messageOf(t *testing.T, c extension.Call) proto.Message {
	t.Helper()
	if c.Request != nil {
		return c.Request
	}
	text, err := proto.Marshal(c.Partial)
	if err != nil {
		t.Error(err)
	}
	b := bytes.NewBuffer(text)
	if c.Elements == nil {
		t.Error("the elements are lost")
	} else if _, err = c.Elements.WriteTo(b); err != nil {
		t.Error(err)
	}
	m := c.Hook.Request.New().Interface()
	if err = proto.Unmarshal(b.Bytes(), m); err != nil {
		t.Error(err)
	}
	return m
}

func jsonOf(t *testing.T, text []byte) (v any) {
	t.Helper()
	if err := json.Unmarshal(text, &v); err != nil {
		t.Errorf("%s: %v", text, err)
	}
	return v
}

// answer answers a request over REST.
func (g *passGateway) answer(t *testing.T, handler, body string) (proto.Message, error) {
	t.Helper()
	ctx := bounds.With(t.Context(), &call{Call: observe.Call{Hook: hookOf(t, "GeneratePatches")}, isJSON: true, body: []byte(body)})
	return NewServices(g.Dispatcher).answer(ctx, &hooksv1alpha1.GeneratePatchesRequest{Handler: handler})
}

// holds returns what is held now, without the times.
func (g *passGateway) holds() []status.Hold {
	reporter := observe.Reporter{Catalog: allHooks, Registry: g.registry, Observer: g.observer, Namespaces: fixedNamespaces{}}
	holds := reporter.Gateway().Holds
	for i := range holds {
		holds[i].Since, holds[i].Last = time.Time{}, time.Time{}
	}
	return holds
}

// Whatever reads a request finds all of it, and a request that nothing reads is not built.
func TestItemsAreBuiltWhereTheyAreRead(t *testing.T) {
	settings := func(r *registry.Registration) { r.Settings = map[string]string{"region": "eu"} }
	namespaces := func(text string) func(*registry.Registration) {
		return func(r *registry.Registration) { r.NamespaceSelector = selector(t, text) }
	}
	for name, tc := range map[string]struct {
		reason   string
		register func(*registry.Registration)
		policy   *policy.Policy
		handler  string // v.acme unless it is set
		fails    error
		passed   bool
		kind     hook.Kind // of the error
		calls    int       // that two requests make
	}{
		"Nothing":            {reason: "the body is sent on", passed: true, calls: 2},
		"AnyHandler":         {reason: "without a name, it is for the only handler", handler: "-", passed: true, calls: 2},
		"Label":              {reason: "under the name that the gateway's discovery gives it", handler: "v--acme", passed: true, calls: 2},
		"NoHandler":          {reason: "there is none", handler: "w.acme", kind: hook.UnknownHandler},
		"Settings":           {reason: "they are added to the message", register: settings, calls: 2},
		"AnySettings":        {reason: "also without a name", register: settings, handler: "-", calls: 2},
		"GRPC":               {reason: "the items are sent as protobuf", register: func(r *registry.Registration) { r.ClientConfig.Protocol = registry.GRPC }, passed: true, calls: 2},
		"Namespaces":         {reason: "of all items", register: namespaces("kubernetes.io/metadata.name in (red, blue)"), passed: true, calls: 2},
		"OtherNamespaces":    {reason: "one item is in another namespace", register: namespaces("kubernetes.io/metadata.name=red"), kind: hook.UnknownHandler},
		"AnyOtherNamespaces": {reason: "one item is in another namespace", register: namespaces("kubernetes.io/metadata.name=red"), handler: "-", kind: hook.UnknownHandler},
		"Labels":             {reason: "the Cluster is in the variables", policy: &policy.Policy{ObjectSelector: selector(t, "tier=gold")}, passed: true, calls: 2},
		"OtherLabels":        {reason: "the Cluster is in the variables", policy: &policy.Policy{ObjectSelector: selector(t, "tier=silver")}, kind: hook.UnknownHandler},
		"Condition":          {reason: "it reads the JSON", policy: &policy.Policy{Conditions: conditions(t, `request.items[1].uid == '2'`)}, passed: true, calls: 2},
		"OtherCondition":     {reason: "it reads the JSON", policy: &policy.Policy{Conditions: conditions(t, `request.items.size() == 1`)}, kind: hook.UnknownHandler},
		"WrongCondition":     {reason: "it reads the JSON", policy: &policy.Policy{Conditions: conditions(t, `request.items[2].uid == '2'`)}, kind: hook.Policy},
		"Cache":              {reason: "the key is made of the items", policy: &policy.Policy{CacheTTL: time.Minute}, calls: 1},
		"Understands": {reason: "templates are not converted, whatever the version", register: func(r *registry.Registration) {
			r.Handlers[0].ClusterAPIVersion = convert.V1Beta1
		}, passed: true, calls: 2},
		"OtherVersion": {reason: "the gateway has no such version", register: func(r *registry.Registration) {
			r.Handlers[0].Hook.Version = "v9"
		}, kind: hook.Conversion},
		"Failure": {reason: "the Cluster that waits is in the variables", fails: hook.Errorf(hook.Unreachable, "no"), passed: true, kind: hook.Unreachable, calls: 2},
		"Ambiguous": {reason: "one of two handlers reads the message", handler: "-", register: func(r *registry.Registration) {
			r.Handlers = append(r.Handlers, handlerOf("w", "GeneratePatches", hook.Fail))
		}, kind: hook.Ambiguous},
	} {
		t.Run(name, func(t *testing.T) {
			reg := registrationOf("acme", handlerOf("v", "GeneratePatches", hook.Fail))
			if tc.register != nil {
				tc.register(&reg)
			}
			handler := "v.acme"
			switch tc.handler {
			case "":
			case "-":
				handler = ""
			default:
				handler = tc.handler
			}
			g, whole := newPassGateway(t, reg, tc.policy), newPassGateway(t, reg, tc.policy)
			g.fails, whole.fails = tc.fails, tc.fails
			for range 2 {
				got, err := g.answer(t, handler, passBody)
				want, wantErr := whole.answer(t, handler, readBody)
				if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" || (err == nil) != (tc.kind == 0) {
					t.Errorf("%s: error %v, answer -read +passed\n%s", tc.reason, err, diff)
				}
				if err != nil && (err.Error() != wantErr.Error() || hook.KindOf(err) != tc.kind) {
					t.Errorf("%s: got %s %v, want %v", tc.reason, hook.KindOf(err), err, wantErr)
				}
			}
			if g.passed != tc.passed || whole.passed {
				t.Errorf("%s: the call was passed on: %t, and %t with its kind at the end", tc.reason, g.passed, whole.passed)
			}
			if g.calls != tc.calls || whole.calls != tc.calls {
				t.Errorf("%s: %d and %d calls, want %d", tc.reason, g.calls, whole.calls, tc.calls)
			}
			if diff := cmp.Diff(whole.sent, g.sent); diff != "" {
				t.Errorf("%s: sent -read +passed\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(whole.holds(), g.holds(), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("%s: holds -read +passed\n%s", tc.reason, diff)
			}
			fails := tc.kind == hook.Unreachable || tc.kind == hook.Conversion || tc.kind == hook.Policy
			if held := len(g.holds()) > 0; held != fails {
				t.Errorf("%s: held: %+v", tc.reason, g.holds())
			}
		})
	}
}

// A body that is wrong is refused before anything is looked up, in the same words whether its items are built or not.
func TestWrongItemsAreRefused(t *testing.T) {
	for name, tc := range map[string]struct{ old, wrong, want string }{
		"Twice":   {`"uid":"1"`, `"uid":"1","uid":"3"`, "items[0].uid: occurs twice in one object"},
		"Unknown": {`"new":true`, `"new":true,"new":true`, "items[0].new: occurs twice in one object"},
		"Type":    {`"namespace":"blue"`, `"namespace":["blue"]`, "items[1].holderReference.namespace: want a string, got an array"},
		"Null":    {`"items":[`, `"items":[null,`, "items[0]: want an object, got null"},
		"Kind":    {`GeneratePatchesRequest`, `ValidateTopologyRequest`, "kind: want GeneratePatchesRequest, got ValidateTopologyRequest"},
	} {
		g := newPassGateway(t, registrationOf("acme", handlerOf("v", "GeneratePatches", hook.Fail)), nil)
		for _, body := range []string{passBody, readBody} {
			for _, handler := range []string{"v.acme", "", "none"} {
				_, err := g.answer(t, handler, strings.Replace(body, tc.old, tc.wrong, 1))
				if hook.KindOf(err) != hook.InvalidRequest || err.Error() != tc.want {
					t.Errorf("%s: got %v, want %s", name, err, tc.want)
				}
			}
		}
		if g.calls > 0 {
			t.Errorf("%s: the handler was called", name)
		}
	}
}

// A link that forgets its condition in readingOf fails the call, instead of sending a request without items.
func TestPartialRequestsAreNeverSentByMistake(t *testing.T) {
	for _, protocol := range []registry.Protocol{registry.REST, registry.GRPC} {
		f := newFixture(t, nil)
		f.registerREST(t, func(http.ResponseWriter, *http.Request) { t.Error("the extension was called") },
			handlerOf("v", "GeneratePatches", hook.Fail))
		e, ok := f.registry.Snapshot().Handler("v.acme")
		if !ok {
			t.Fatal("the handler is not registered")
		}
		forgotten := *e
		reg := *e.Registration
		reg.ClientConfig.Protocol = protocol
		forgotten.Registration = &reg
		_, err := f.services.dispatcher.call(t.Context(), Request{
			Hook: hookOf(t, "GeneratePatches"), Partial: &hooksv1alpha1.GeneratePatchesRequest{},
		}, selection.Target{Entry: &forgotten})
		if hook.KindOf(err) != hook.Internal {
			t.Errorf("%q: got %v, want an error of kind Internal", protocol, err)
		}
	}
}

// A request for several handlers is read as the one that needs most of it.
func TestReadingOf(t *testing.T) {
	reg := func(name string, protocol registry.Protocol, settings map[string]string) registry.Registration {
		r := registrationOf(name, handlerOf("v", "ValidateTopology", hook.Fail))
		r.ClientConfig.Protocol, r.Settings = protocol, settings
		return r
	}
	rest, overGRPC := reg("rest", registry.REST, nil), reg("grpc", registry.GRPC, nil)
	reads := reg("reads", registry.GRPC, map[string]string{"a": "b"})
	for name, tc := range map[string]struct {
		registered []registry.Registration
		handler    string
		want       reading
	}{
		"none":        {nil, "", passThrough},
		"REST":        {[]registry.Registration{rest}, "", passThrough},
		"gRPC":        {[]registry.Registration{overGRPC}, "", passThroughToGRPC},
		"both":        {[]registry.Registration{overGRPC, rest}, "", passThroughToGRPC},
		"settings":    {[]registry.Registration{overGRPC, reads, rest}, "", readWhole},
		"one of them": {[]registry.Registration{overGRPC, reads, rest}, "v.rest", passThrough},
		"another":     {[]registry.Registration{overGRPC, reads, rest}, "v.grpc", passThroughToGRPC},
		"the third":   {[]registry.Registration{overGRPC, reads, rest}, "v.reads", readWhole},
		"no such one": {[]registry.Registration{rest}, "v.none", readWhole},
	} {
		s := filled(t, tc.registered...).Snapshot()
		if got := readingOf(s, hookOf(t, "ValidateTopology"), tc.handler, nil); got != tc.want {
			t.Errorf("%s: got %d, want %d", name, got, tc.want)
		}
	}
}

// The bytes of a request that nothing reads get to the extension, whatever their size.
func TestPassedBodiesAreSentOnUnchanged(t *testing.T) {
	for _, pad := range []int{0, 1 << 20} {
		body := strings.Replace(passBody, `"a":2`, `"a": "`+strings.Repeat("x", pad)+`"`, 1)
		var got []byte
		f := newFixture(t, nil)
		f.register(t, "GeneratePatches", hook.Fail, 30*time.Second, func(w http.ResponseWriter, r *http.Request) {
			var b bytes.Buffer
			_, _ = b.ReadFrom(r.Body)
			got = b.Bytes()
			_, _ = w.Write([]byte(`{"status":"Success"}`))
		})
		if resp := f.post(t, patchesPath+"/v.acme", body); resp.code != http.StatusOK {
			t.Errorf("got %s: %s", resp.status, resp.body)
		}
		if string(got) != body {
			t.Errorf("%d bytes: got %.500s", len(body), got)
		}
	}
}

// patcher is an extension over gRPC that keeps the last request.
type patcher struct {
	hooksv1alpha1.UnimplementedTopologyMutationHooksServiceServer
	last proto.Message
}

func (p *patcher) GeneratePatches(_ context.Context, in *hooksv1alpha1.GeneratePatchesRequest) (
	*hooksv1alpha1.GeneratePatchesResponse, error,
) {
	p.last = in
	return &hooksv1alpha1.GeneratePatchesResponse{Status: success}, nil
}

// An extension over gRPC gets the same message whether the gateway has built its items or not, whatever their size. A
// request with more items than may be is refused either way.
func TestPassedItemsAreSentOverGRPC(t *testing.T) {
	f, p := newFixture(t, nil), &patcher{}
	f.registerGRPC(t, func(s *grpc.Server) { hooksv1alpha1.RegisterTopologyMutationHooksServiceServer(s, p) },
		handlerOf("v", "GeneratePatches", hook.Fail))
	for _, pad := range []int{0, 1000, 100 << 10, 1 << 20} {
		var got []proto.Message
		for _, body := range []string{passBody, readBody} {
			body = strings.Replace(body, `"a":2`, `"\u0061": "`+strings.Repeat("x", pad)+`"`, 1)
			body = strings.Replace(body, `"uid":"1"`, `"uid":"\u0031\ud83d\ude00"`, 1)
			if resp := f.post(t, patchesPath+"/v.acme", body); resp.code != http.StatusOK {
				t.Fatalf("%d bytes: got %s: %s", pad, resp.status, resp.body)
			}
			got = append(got, p.last)
		}
		if diff := cmp.Diff(got[1], got[0], protocmp.Transform()); diff != "" {
			t.Errorf("%d bytes: -built +skipped\n%.2000s", pad, diff)
		}
		if items := got[0].(*hooksv1alpha1.GeneratePatchesRequest).GetItems(); len(items) != 2 || items[0].GetUid() != "1😀" {
			t.Errorf("%d bytes: got %d items: %.200v", pad, len(items), items)
		}
	}
	for _, head := range []string{passHead + ",", ""} {
		body := `{` + head + `"items":[` + strings.Repeat("{},", 100_000) + `{}]}`
		if resp := f.post(t, patchesPath+"/v.acme", body); resp.code != http.StatusRequestEntityTooLarge {
			t.Errorf("too many items: got %s: %s", resp.status, resp.body)
		}
	}
}
