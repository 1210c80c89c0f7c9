// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	infrastructurev1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/contract/convert"
	golden "github.com/hookgate/hookgate/proto"
	"github.com/hookgate/hookgate/registry"
)

// infrastructureHooks returns the hooks of the second group but the one that lists the handlers.
func infrastructureHooks() []*catalog.Hook {
	var found []*catalog.Hook
	for _, h := range allHooks.Hubs() {
		if h.Group == hook.InfrastructureGroup && !h.Singleton() {
			found = append(found, h)
		}
	}
	return found
}

// vector returns the golden answer of a hook.
func vector(t testing.TB, h *catalog.Hook) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "proto", "testdata", golden.Directory(h.GroupVersionHook), strings.ToLower(h.Hook)+".response.json"))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// withMember adds a member that the contract does not know to a JSON object.
func withMember(object string) string {
	return strings.TrimSuffix(object, "}") + `,"hint":{"n":9007199254740993}}`
}

// decoded returns the message of JSON.
func decoded(t testing.TB, m proto.Message, text []byte) proto.Message {
	t.Helper()
	if err := mandated.Decode(bytes.Clone(text), m); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return m
}

// callGRPC calls a hook over the gRPC front.
func (f *fixture) callGRPC(t testing.TB, h *catalog.Hook, request proto.Message) (proto.Message, error) {
	t.Helper()
	answer := h.Response.New().Interface()
	return answer, f.conn.Invoke(t.Context(), h.Method, request, answer)
}

// southREST and southGRPC start an extension that answers one hook with JSON, or with its message, and return what it
// was asked.
func (f *fixture) southREST(t testing.TB, h *catalog.Hook, answer string) func() proto.Message {
	t.Helper()
	asked := make(chan proto.Message, 1)
	f.register(t, h.Hook, hook.Fail, 20*time.Second, func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if want := h.Path("") + "/v"; err != nil || r.URL.Path != want {
			t.Errorf("asked at %s, want %s (%v)", r.URL.Path, want, err)
		}
		asked <- decoded(t, h.Request.New().Interface(), body)
		_, _ = io.WriteString(w, answer)
	})
	return func() proto.Message { return <-asked }
}

func (f *fixture) southGRPC(t testing.TB, h *catalog.Hook, answer string) func() proto.Message {
	t.Helper()
	asked := make(chan proto.Message, 1)
	handler := handlerOf("v", h.Hook, hook.Fail)
	handler.ClusterAPIVersion = f.understands
	f.registerGRPC(t, func(s *grpc.Server) {
		s.RegisterService(&grpc.ServiceDesc{
			ServiceName: strings.TrimPrefix(h.Method[:strings.LastIndex(h.Method, "/")], "/"), HandlerType: (*any)(nil),
			Methods: []grpc.MethodDesc{{
				MethodName: h.Hook,
				Handler: func(_ any, _ context.Context, decode func(any) error, _ grpc.UnaryServerInterceptor) (any, error) {
					request := h.Request.New().Interface()
					if err := decode(request); err != nil {
						return nil, err
					}
					if got := handlerIn(request); got != "v" {
						t.Errorf("asked for handler %q, want v", got)
					}
					setHandler(request, "")
					asked <- request
					return decoded(t, h.Response.New().Interface(), []byte(answer)), nil
				},
			}},
		}, nil)
	}, handler)
	return func() proto.Message { return <-asked }
}

func handlerIn(m proto.Message) string {
	return m.ProtoReflect().Get(m.ProtoReflect().Descriptor().Fields().ByName("handler")).String()
}

func setHandler(m proto.Message, name string) {
	field := m.ProtoReflect().Descriptor().Fields().ByName("handler")
	m.ProtoReflect().Set(field, protoreflect.ValueOfString(name))
}

// The matrix of the hooks of infrastructure: {REST, gRPC} callers × {REST, gRPC} extensions. Everything arrives in both
// directions, members that the contract does not know among it.
func TestMatrixInfrastructure(t *testing.T) {
	for _, h := range infrastructureHooks() {
		for south, register := range map[string]func(*fixture, testing.TB, *catalog.Hook, string) func() proto.Message{
			"REST": (*fixture).southREST, "gRPC": (*fixture).southGRPC,
		} {
			t.Run(h.Hook+"/"+south, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, nil)
				answer, request := withMember(vector(t, h)), []byte(withMember(string(golden.Request(h.GroupVersionHook))))
				asked := register(f, t, h, answer)
				want := decoded(t, h.Request.New().Interface(), request)

				rest := f.post(t, h.Path("")+"/v.acme", string(request))
				if rest.code != http.StatusOK || string(rest.body) != answer {
					t.Errorf("over REST, got %s: %s\nwant %s", rest.status, rest.body, answer)
				}
				if diff := cmp.Diff(want, asked(), protocmp.Transform()); diff != "" {
					t.Errorf("the extension was asked (-want +got):\n%s", diff)
				}

				message := decoded(t, h.Request.New().Interface(), request)
				setHandler(message, "v.acme")
				got, err := f.callGRPC(t, h, message)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(decoded(t, h.Response.New().Interface(), []byte(answer)), got, protocmp.Transform()); diff != "" {
					t.Errorf("over gRPC (-want +got):\n%s", diff)
				}
				if diff := cmp.Diff(want, asked(), protocmp.Transform()); diff != "" {
					t.Errorf("the extension was asked over gRPC (-want +got):\n%s", diff)
				}
			})
		}
	}
}

// Errors of infrastructure are never ignored, whatever the failure policy, and look the same over both fronts.
func TestFailuresOfInfrastructureAreNeverIgnored(t *testing.T) {
	write := func(s string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w, s)
		}
	}
	for name, tc := range map[string]struct {
		serve  http.HandlerFunc
		refuse bool
		kind   hook.Kind
		text   string
	}{
		"Status500": {serve: func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "token s3cr3t", http.StatusInternalServerError)
		}, kind: hook.BadResponse, text: "answered 500 Internal Server Error"},
		"NoState": {serve: write(`{"status":"Success"}`), kind: hook.BadResponse, text: `answer: state: want "Deleting" or "Gone", got ""`},
		"Refused": {refuse: true, kind: hook.Unreachable, text: "connection refused"},
	} {
		for _, how := range []string{"registered", "policy"} {
			t.Run(name+"/"+how, func(t *testing.T) {
				t.Parallel()
				f := newFixture(t, nil)
				ignore := hook.Ignore
				if how == "policy" {
					ignore = hook.Fail
				}
				f.register(t, "DeleteMachine", ignore, 20*time.Second, tc.serve)
				if how == "policy" {
					f.registry.SetPolicies("acme", registry.Policies{All: &policy.Policy{FailurePolicy: hook.Ignore}})
				}
				if tc.refuse {
					f.refuseConnections(t)
				}
				h := hookOf(t, "DeleteMachine")
				rest := f.post(t, h.Path("")+"/v.acme", `{"subject":{"externalId":"m"}}`)
				if kind := rest.header.Get(ErrorKindHeader); kind != tc.kind.String() || !strings.Contains(string(rest.body), `"status":"Failure"`) {
					t.Errorf("REST: %s %s: %s, want %s", rest.status, kind, rest.body, tc.kind)
				}
				_, err := f.callGRPC(t, h, &infrastructurev1alpha1.DeleteMachineRequest{Handler: "v.acme", Subject: &infrastructurev1alpha1.Subject{ExternalId: "m"}})
				kind, message := kindOver(err)
				if kind != tc.kind.String() || !strings.HasPrefix(message, `handler "v.acme": `) || !strings.Contains(message, tc.text) {
					t.Errorf("gRPC: %s: %s, want %s with %q", kind, message, tc.kind, tc.text)
				}
			})
		}
	}
}

// kindOver returns the kind and the message of an error of the gRPC front.
func kindOver(err error) (kind, message string) {
	st := status.Convert(err)
	for _, d := range st.Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			kind = info.GetReason()
		}
	}
	return kind, st.Message()
}

// A request says which infrastructure it is about, or no extension is asked.
func TestSubjectIsRequired(t *testing.T) {
	for _, h := range infrastructureHooks() {
		f := newFixture(t, nil)
		f.register(t, h.Hook, hook.Fail, time.Second, func(http.ResponseWriter, *http.Request) { t.Error("the extension was asked") })
		for _, body := range []string{`{}`, `{"subject":{}}`, `{"subject":{"externalId":"","name":"n"}}`} {
			resp := f.post(t, h.Path("")+"/v.acme", body)
			if kind := resp.header.Get(ErrorKindHeader); kind != hook.InvalidRequest.String() || !strings.Contains(string(resp.body), "subject.externalId: required") {
				t.Errorf("%s %s: %s %s", h.Hook, body, kind, resp.body)
			}
		}
		_, err := f.callGRPC(t, h, h.Request.New().Interface())
		if kind, message := kindOver(err); kind != hook.InvalidRequest.String() || message != "subject.externalId: required" || status.Code(err) != codes.InvalidArgument {
			t.Errorf("%s over gRPC: %v", h.Hook, err)
		}
	}
}

// The namespaceSelector of an ExtensionConfig is for the namespace of the subject, the objectSelector of a policy for
// the labels of its Machine or MachinePool, or else of its Cluster.
func TestSelectorsOfSubjects(t *testing.T) {
	object := func(kind, tier string) *hooksv1alpha1.RawExtension {
		return &hooksv1alpha1.RawExtension{Raw: fmt.Appendf(nil, `{"kind":%q,"metadata":{"namespace":"elsewhere","labels":{"tier":%q}}}`, kind, tier)}
	}
	for name, tc := range map[string]struct {
		namespace string
		subject   *infrastructurev1alpha1.Subject
		called    bool
		kind      hook.Kind
	}{
		"machine":               {namespace: "red", subject: &infrastructurev1alpha1.Subject{Cluster: object("Cluster", "silver"), Machine: object("Machine", "gold")}, called: true},
		"other machine":         {namespace: "red", subject: &infrastructurev1alpha1.Subject{Cluster: object("Cluster", "gold"), Machine: object("Machine", "silver")}, kind: hook.UnknownHandler},
		"pool":                  {namespace: "red", subject: &infrastructurev1alpha1.Subject{MachinePool: object("MachinePool", "gold")}, called: true},
		"other pool":            {namespace: "red", subject: &infrastructurev1alpha1.Subject{Cluster: object("Cluster", "gold"), MachinePool: object("MachinePool", "silver")}, kind: hook.UnknownHandler},
		"cluster":               {namespace: "red", subject: &infrastructurev1alpha1.Subject{Cluster: object("Cluster", "gold")}, called: true},
		"other cluster":         {namespace: "red", subject: &infrastructurev1alpha1.Subject{Cluster: object("Cluster", "silver")}, kind: hook.UnknownHandler},
		"all objects are gone":  {namespace: "red", subject: &infrastructurev1alpha1.Subject{}, called: true},
		"another namespace":     {namespace: "blue", subject: &infrastructurev1alpha1.Subject{Cluster: object("Cluster", "gold")}, kind: hook.UnknownHandler},
		"labels are no strings": {namespace: "red", subject: &infrastructurev1alpha1.Subject{Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(`{"metadata":{"labels":{"tier":1}}}`)}}, kind: hook.InvalidRequest},
	} {
		t.Run(name, func(t *testing.T) {
			reg := registrationOf("acme", handlerOf("v", "DeleteMachinePool", hook.Fail))
			reg.NamespaceSelector = selector(t, "kubernetes.io/metadata.name=red")
			r := filled(t, reg)
			r.SetPolicies("acme", forHandler("v", policy.Policy{ObjectSelector: selector(t, "tier=gold")}))
			called := &callLog{}
			tc.subject.ExternalId, tc.subject.Namespace = "p", tc.namespace
			for _, handler := range []string{"", "v.acme"} {
				_, err := newDispatcher(r, fixedNamespaces{}, called).dispatch(t.Context(), hookOf(t, "DeleteMachinePool"), handler,
					&infrastructurev1alpha1.DeleteMachinePoolRequest{Handler: handler, Subject: tc.subject})
				if kind := hook.KindOf(err); (err == nil) != tc.called || err != nil && kind != tc.kind {
					t.Errorf("handler %q: got %v (%s), want %s", handler, err, kind, tc.kind)
				}
			}
			if (len(called.calls) == 2) != tc.called {
				t.Errorf("called %v, want calls: %t", called.calls, tc.called)
			}
		})
	}
}

// A handler that understands v1beta1 gets all objects of the subject in it, over both protocols.
func TestSubjectIsConverted(t *testing.T) {
	for south, register := range map[string]func(*fixture, testing.TB, *catalog.Hook, string) func() proto.Message{
		"REST": (*fixture).southREST, "gRPC": (*fixture).southGRPC,
	} {
		t.Run(south, func(t *testing.T) {
			f, h := newFixture(t, nil), hookOf(t, "ReconcileMachine")
			f.understands = convert.V1Beta1
			asked := register(f, t, h, vector(t, h))
			resp := f.post(t, h.Path("")+"/v.acme", `{"subject":{"externalId":"m","cluster":{"kind":"Cluster","apiVersion":"cluster.x-k8s.io/v1beta2","spec":{"paused":true}},`+
				`"machine":{"kind":"Machine","apiVersion":"cluster.x-k8s.io/v1beta2","spec":{"clusterName":"c","minReadySeconds":3}},"parameters":{"apiVersion":"cluster.x-k8s.io/v1beta2"}}}`)
			if resp.code != http.StatusOK || string(resp.body) != vector(t, h) {
				t.Fatalf("%s: %s", resp.status, resp.body)
			}
			s := asked().(*infrastructurev1alpha1.ReconcileMachineRequest).GetSubject()
			for _, raw := range [][]byte{s.GetCluster().GetRaw(), s.GetMachine().GetRaw()} {
				if !bytes.Contains(raw, []byte(`"apiVersion":"cluster.x-k8s.io/v1beta1"`)) {
					t.Errorf("the handler got %s", raw)
				}
			}
			if string(s.GetParameters().GetRaw()) != `{"apiVersion":"cluster.x-k8s.io/v1beta2"}` {
				t.Errorf("parameters became %s", s.GetParameters().GetRaw())
			}
		})
	}
}

// Cluster API's Discovery never lists handlers of infrastructure, and DiscoverInfrastructure lists no others.
func TestDiscoveriesOfBothGroups(t *testing.T) {
	for _, sole := range []bool{false, true} {
		r, create, patch, machine := registry.New(), "beforeclustercreate", "p--acme", "m--acme"
		if sole {
			r, create, patch, machine = registry.NewSidecar(), "c", "p", "m"
		}
		f := newFixtureFor(t, r, nil, nil)
		f.registerREST(t, http.NotFound, handlerOf("m", "ReconcileMachine", hook.Fail), handlerOf("p", "GeneratePatches", hook.Fail), handlerOf("c", "BeforeClusterCreate", hook.Fail))
		r.SetPolicies("acme", registry.Policies{All: &policy.Policy{FailurePolicy: hook.Ignore}})
		for group, want := range map[string][]string{hook.Group: {create, patch}, hook.InfrastructureGroup: {machine}} {
			for _, versions := range allHooks.Discoveries() {
				h := versions[0]
				if h.Group != group {
					continue
				}
				over, err := f.callGRPC(t, h, h.Request.New().Interface())
				if err != nil {
					t.Fatal(err)
				}
				resp := f.post(t, h.Path(""), `{}`)
				if diff := cmp.Diff(over, decoded(t, h.Response.New().Interface(), resp.body), protocmp.Transform()); diff != "" {
					t.Errorf("the fronts differ:\n%s", diff)
				}
				listed := map[string]bool{}
				for _, x := range over.(interface {
					GetHandlers() []*hooksv1alpha1.ExtensionHandler
				}).GetHandlers() {
					if !strings.HasPrefix(x.GetRequestHook().GetApiVersion(), group+"/") {
						t.Errorf("%s lists %v", h.Hook, x)
					}
					ignores := x.GetFailurePolicy() == hooksv1alpha1.FailurePolicy_FAILURE_POLICY_IGNORE
					if wantIgnores := sole && group == hook.Group; ignores != wantIgnores {
						t.Errorf("sole %t: %v, want failures ignored: %t", sole, x, wantIgnores)
					}
					listed[x.GetName()] = true
				}
				for _, name := range want {
					if !listed[name] {
						t.Errorf("sole %t: %s lacks %s: %v", sole, h.Hook, name, listed)
					}
				}
			}
		}
	}
}

// discoverThrough answers DiscoverInfrastructure of one extension with whether it was asked with the right name.
func discoverThrough(t *testing.T, want string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != want {
			t.Errorf("the extension was asked at %s, want %s", r.URL.Path, want)
		}
		_, _ = io.WriteString(w, `{"status":"Success","providerIdPrefix":"acme://","machineParameters":{"type":"object"},`+
			`"handlers":[{"name":"m","requestHook":{"apiVersion":"infrastructure.hookgate.dev/v1alpha1","hook":"ReconcileMachine"}}]}`)
	}
}

// A discovery with a handler reaches its extension, through a chain of a gateway and a sidecar too, whatever a policy
// selects.
func TestDiscoveryIsPassedOnThroughAChain(t *testing.T) {
	h := hookOf(t, "DiscoverInfrastructure")
	sidecar, hub := newFixtureFor(t, registry.NewSidecar(), nil, nil), newFixture(t, nil)
	handler := handlerOf("m", "ReconcileMachine", hook.Fail)
	sidecar.registerREST(t, discoverThrough(t, h.Path("")+"/m"), handler, handlerOf("c", "BeforeClusterCreate", hook.Fail))
	hub.registerGateway(t, "rack", sidecar.rest)
	hub.registry.SetPolicies("rack", forHandler("m", policy.Policy{
		ObjectSelector: selector(t, "tier=gold"), Conditions: conditions(t, `request.subject.name == "x"`),
	}))
	for _, tc := range []struct {
		f       *fixture
		handler string
	}{{sidecar, "m"}, {hub, "m.rack"}, {hub, "m--rack"}, {hub, "rack"}} {
		resp := tc.f.post(t, h.Path("")+"/"+tc.handler, `{}`)
		if resp.code != http.StatusOK || !strings.Contains(string(resp.body), `"providerIdPrefix":"acme://"`) {
			t.Errorf("%s: %s %s", tc.handler, resp.status, resp.body)
		}
		answer, err := tc.f.callGRPC(t, h, &infrastructurev1alpha1.DiscoverInfrastructureRequest{Handler: tc.handler})
		if err != nil || string(answer.(*infrastructurev1alpha1.DiscoverInfrastructureResponse).GetMachineParameters().GetRaw()) != `{"type":"object"}` {
			t.Errorf("%s over gRPC: %v, %v", tc.handler, answer, err)
		}
	}
	// Cluster API's Discovery stands for no extension.
	if resp := hub.post(t, "/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery/m.rack", `{}`); resp.code != http.StatusNotFound {
		t.Errorf("Discovery with a handler: %s %s", resp.status, resp.body)
	}
}
