// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/contract/convert"
	"github.com/hookgate/hookgate/internal/network/budget"
	"github.com/hookgate/hookgate/internal/network/via"
	"github.com/hookgate/hookgate/internal/seeing/observe"
	"github.com/hookgate/hookgate/internal/serving/servers"
	"github.com/hookgate/hookgate/internal/serving/shared"
	"github.com/hookgate/hookgate/registry"
	"github.com/hookgate/hookgate/test/process"
)

// fixture is a gateway with both fronts over real connections.
type fixture struct {
	registry *registry.Registry
	rest     *httptest.Server
	conn     *grpc.ClientConn
	log      *bytes.Buffer
	metrics  *prometheus.Registry
	observer *observe.Observer
	memory   *budget.Budget
	front    http.Handler
	services *Services
	id       string
	server   *grpc.Server
	// transport calls extensions.
	transport *extension.Protocols
	stop      func() // stops the gRPC front when its calls have ended
	// understands is the version of objects that the handlers understand that are registered from now on.
	understands string
	// failWith, if it is set, fails calls to handlers before they enter the chain of the transport.
	failWith func() error
	// audited has what rules that only audit would have answered.
	audited []string
	// lifted has the holds that policies have lifted.
	lifted chan string
}

func newFixture(t testing.TB, provider trace.TracerProvider) *fixture {
	t.Helper()
	return newGatedFixture(t, provider, nil)
}

// newGatedFixture is newFixture with a gate.
func newGatedFixture(t testing.TB, provider trace.TracerProvider, gate gate) *fixture {
	t.Helper()
	return newFixtureFor(t, registry.New(), provider, gate)
}

// newFixtureFor is newGatedFixture for a registry.
func newFixtureFor(t testing.TB, r *registry.Registry, provider trace.TracerProvider, gate gate) *fixture {
	t.Helper()
	f := &fixture{registry: r, log: &bytes.Buffer{}, metrics: prometheus.NewRegistry(), id: via.NewGateway(), lifted: make(chan string, 100)}
	if provider == nil {
		provider = noop.NewTracerProvider()
	}
	memory := budget.New(256 << 20)
	f.memory = memory
	t.Cleanup(func() { // after the fronts have stopped
		process.Eventually(t, "no memory is reserved after all calls", func() bool { // of HTTP/2, a call may outlive its server
			u := memory.Usage()
			return u.Used == 0 && u.Waiting == 0
		})
	})
	transport := extension.NewProtocols(extension.Config{
		Catalog: allHooks, Codec: mandated, Propagator: Propagator(), Gateway: f.id, Memory: memory,
		RestartWait: 1, // none
	})
	t.Cleanup(transport.Close)
	f.transport = transport
	call := func(ctx context.Context, c extension.Call) (extension.Result, error) {
		if f.failWith != nil {
			if err := f.failWith(); err != nil {
				return extension.Result{Inconclusive: true, Decided: true}, err
			}
		}
		return transport.Call(ctx, c)
	}
	observer := observe.NewObserver(observe.NewMetrics(f.metrics, f.registry, allHooks, "test"), provider, slog.New(slog.NewTextHandler(f.log, nil)), convert.NewLosses(nil))
	f.observer = observer
	dispatcher := NewDispatcher(Config{
		Catalog: allHooks, Versions: allVersions, Registry: f.registry, Namespaces: fixedNamespaces{}, Gate: gate, Gateway: f.id,
		Audited: func(rule, namespace, cluster, message string) {
			f.audited = append(f.audited, fmt.Sprintf("%s of %s/%s: %s", rule, namespace, cluster, message))
		},
		Lifted: func(policy, handler, namespace, cluster, message string) {
			f.lifted <- fmt.Sprintf("%s lifts %s of %s/%s: %s", policy, handler, namespace, cluster, message)
		},
		Parts: shared.Parts{Codec: mandated, Transport: call, Objects: convert.NewObjects(convert.NewReferences()), Observer: observer, Memory: memory},
	})
	services := NewServices(dispatcher)
	front, err := NewREST(dispatcher, services)
	if err != nil {
		t.Fatal(err)
	}
	f.front, f.services = front, services
	f.rest = httptest.NewUnstartedServer(front)
	f.rest.EnableHTTP2, f.rest.Config.HTTP2 = true, servers.HTTP2Settings()
	f.rest.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	f.rest.StartTLS()
	t.Cleanup(f.rest.Close)

	listener := bufconn.Listen(1 << 20)
	server := grpc.NewServer(GRPCOptions()...)
	RegisterGRPC(server, dispatcher, services)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	f.stop, f.server = server.GracefulStop, server
	f.conn, err = grpc.NewClient("passthrough:///gateway", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return listener.DialContext(ctx) }),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(BodyBytes), grpc.MaxCallSendMsgSize(BodyBytes)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.conn.Close() })
	return f
}

// register starts an extension and registers one handler of it, v.acme.
func (f *fixture) register(t testing.TB, hookName string, policy hook.FailurePolicy, timeout time.Duration, serve http.HandlerFunc) *httptest.Server {
	t.Helper()
	h := handlerOf("v", hookName, policy)
	h.Timeout, h.ClusterAPIVersion = timeout, f.understands
	return f.registerREST(t, serve, h)
}

// registerREST starts an extension and registers handlers of it, as those of acme.
func (f *fixture) registerREST(t testing.TB, serve http.HandlerFunc, handlers ...registry.Handler) *httptest.Server {
	t.Helper()
	server := httptest.NewTLSServer(serve)
	server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
	t.Cleanup(server.Close)
	reg := registrationOf("acme", handlers...)
	reg.ClientConfig = registry.ClientConfig{URL: server.URL, CABundle: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})}
	if err := f.registry.Apply(reg); err != nil {
		t.Fatal(err)
	}
	f.registry.SetReady()
	return server
}

// refuseConnections registers acme at an address where nothing listens, and nothing will: that of a server which has
// stopped may be another's a moment later.
func (f *fixture) refuseConnections(t testing.TB) {
	t.Helper()
	for _, reg := range f.registry.Snapshot().Registrations() {
		moved := *reg
		moved.ClientConfig.URL = strings.Replace(reg.ClientConfig.URL, "127.0.0.1", "127.0.0.9", 1)
		if err := f.registry.Apply(moved); err != nil {
			t.Fatal(err)
		}
	}
}

// reply is what a caller sees of a call, in the words of neither protocol.
type reply struct {
	kind    string // of the error; empty for an answer
	status  string
	message string
	retry   int32
	callID  bool
}

const createPath = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclustercreate"

const (
	createCluster = `{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"name":"c","namespace":"n"}}`
	createBody    = `{"kind":"BeforeClusterCreateRequest","apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","cluster":` + createCluster + `}`
)

// The handler of a matrix gets objects as they are sent, or converted.
var understandings = map[string]string{"Same": "", "Converted": convert.V1Beta1}

// answered is what came back over REST.
type answered struct {
	code   int
	status string
	header http.Header
	body   []byte
}

// post sends a body to the REST front.
func (f *fixture) post(t testing.TB, path, body string) answered {
	t.Helper()
	resp, err := f.rest.Client().Post(f.rest.URL+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answered{code: resp.StatusCode, status: resp.Status, header: resp.Header, body: answer}
}

// throughREST and throughGRPC call BeforeClusterCreate on v.acme.
func (f *fixture) throughREST(t *testing.T) reply {
	resp := f.post(t, createPath+"/v.acme", createBody)
	var answer struct {
		APIVersion, Kind, Status, Message string
		RetryAfterSeconds                 int32
	}
	if err := json.Unmarshal(resp.body, &answer); err != nil {
		t.Fatalf("answer %q: %v", resp.body, err)
	}
	if answer.Kind != "BeforeClusterCreateResponse" || answer.APIVersion != hook.APIVersion {
		t.Errorf("answer is a %q of %q", answer.Kind, answer.APIVersion)
	}
	o := reply{
		kind: resp.header.Get(ErrorKindHeader), status: answer.Status, message: answer.Message, retry: answer.RetryAfterSeconds,
		callID: resp.header.Get(CallIDHeader) != "",
	}
	if wantCode := http.StatusOK; o.kind == "" && resp.code != wantCode {
		t.Errorf("status code %d, want %d", resp.code, wantCode)
	}
	return o
}

func (f *fixture) throughGRPC(t *testing.T) reply {
	var header metadata.MD
	resp, err := hooksv1alpha1.NewLifecycleHooksServiceClient(f.conn).BeforeClusterCreate(t.Context(),
		&hooksv1alpha1.BeforeClusterCreateRequest{Handler: "v.acme", Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(createCluster)}}, grpc.Header(&header))
	o := reply{callID: len(header.Get(CallIDHeader)) == 1}
	if err != nil {
		st := status.Convert(err)
		// Over REST the body says Failure; over gRPC there is no body, and the code says it.
		o.status, o.message = "Failure", st.Message()
		for _, d := range st.Details() {
			if info, ok := d.(*errdetails.ErrorInfo); ok {
				o.kind = info.GetReason()
				if info.GetMetadata()["handler"] != "v.acme" {
					t.Errorf("error details name handler %q", info.GetMetadata()["handler"])
				}
			}
		}
		return o
	}
	o.status = map[hooksv1alpha1.ResponseStatus]string{success: "Success", failure: "Failure"}[resp.GetStatus()]
	o.message, o.retry = resp.GetMessage(), resp.GetRetryAfterSeconds()
	return o
}

// The matrix: {REST, gRPC} callers × what an extension can do × {Fail, Ignore} × {same, converted}.
func TestMatrix(t *testing.T) {
	write := func(s string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w, s)
		}
	}
	faults := map[string]struct {
		serve   http.HandlerFunc
		refuse  bool
		kind    hook.Kind
		message string
		answer  reply // for those that are no faults
	}{
		"Success": {serve: write(`{"status":"Success","message":"hold","retryAfterSeconds":5}`), answer: reply{status: "Success", message: "hold", retry: 5}},
		"Failure": {serve: write(`{"status":"Failure","message":"no","retryAfterSeconds":0}`), answer: reply{status: "Failure", message: "no"}},
		"Nothing": {serve: func(_ http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			<-r.Context().Done()
		}, kind: hook.Timeout, message: "no answer within its timeout of 200ms"},
		"Status500": {serve: func(w http.ResponseWriter, _ *http.Request) {
			http.Error(w, "secret stack trace", http.StatusInternalServerError)
		}, kind: hook.BadResponse},
		"HTML":        {serve: write(`<!doctype html><html>`), kind: hook.BadResponse},
		"HalfABody":   {serve: write(`{"status":"Success","retryAfterSeconds":30`), kind: hook.BadResponse},
		"WrongKind":   {serve: write(`{"kind":"BeforeClusterDeleteResponse","status":"Success"}`), kind: hook.BadResponse},
		"WrongType":   {serve: write(`{"status":"Success","retryAfterSeconds":"soon"}`), kind: hook.BadResponse},
		"EmptyStatus": {serve: write(`{"status":"","retryAfterSeconds":30}`), kind: hook.BadResponse},
		"Oversized": {serve: func(w http.ResponseWriter, _ *http.Request) {
			chunk := bytes.Repeat([]byte(" "), 1<<20)
			for range 30 {
				if _, err := w.Write(chunk); err != nil {
					return
				}
			}
		}, kind: hook.BadResponse},
		"Refused": {refuse: true, kind: hook.Unreachable},
	}
	for name, fault := range faults {
		for _, policy := range []hook.FailurePolicy{hook.Fail, hook.Ignore} {
			for objects, understands := range understandings {
				t.Run(fmt.Sprintf("%s/%s/%s", name, policy, objects), func(t *testing.T) {
					t.Parallel()
					f := newFixture(t, nil)
					f.understands = understands
					timeout := 20 * time.Second
					if name == "Nothing" {
						timeout = 200 * time.Millisecond
					}
					f.register(t, "BeforeClusterCreate", policy, timeout, fault.serve)
					if fault.refuse {
						f.refuseConnections(t)
					}
					f.check(t, policy, fault.kind, fault.message, fault.answer)
				})
			}
		}
	}
}

// check calls the handler from both fronts, and looks at what they and the metrics say. kind is that of the fault that
// the extension has, and fault the end of its message; without one, answer is what it answers.
func (f *fixture) check(t *testing.T, policy hook.FailurePolicy, kind hook.Kind, fault string, answer reply) {
	t.Helper()
	rest, again, rpc := f.throughREST(t), f.throughREST(t), f.throughGRPC(t)
	if rest != rpc {
		t.Errorf("the fronts differ: REST %+v, gRPC %+v", rest, rpc)
	}
	if rest != again {
		t.Errorf("the same call was answered in two ways: %+v, %+v", rest, again)
	}
	want := answer
	if kind != 0 {
		want = reply{status: "Success", message: `ignored: handler "v.acme": ` + kind.String()}
		if policy == hook.Fail {
			want = reply{status: "Failure", kind: kind.String(), message: rest.message}
			if !strings.HasPrefix(rest.message, `handler "v.acme": `) || fault != "" && !strings.HasSuffix(rest.message, fault) {
				t.Errorf("message %q does not name the handler and the fault", rest.message)
			}
		}
	}
	want.callID = true
	if rest != want {
		t.Errorf("got %+v, want %+v", rest, want)
	}
	if strings.Contains(rest.message, "secret") || strings.Contains(rest.message, "127.0.0.1") {
		t.Errorf("message %q has text that it must not have", rest.message)
	}
	ignored, err := testutil.GatherAndCount(f.metrics, "hookgate_handler_ignored_failures_total")
	if wantIgnored := kind != 0 && policy == hook.Ignore; err != nil || (ignored > 0) != wantIgnored {
		t.Errorf("ignored failures are counted: %v (%v), want %v", ignored > 0, err, wantIgnored)
	}
}

func TestFailedCallsAreLoggedWithTheirCause(t *testing.T) {
	f := newFixture(t, nil)
	f.register(t, "BeforeClusterCreate", hook.Fail, 30*time.Second, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "secret stack trace", http.StatusInternalServerError)
	})
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.rest.URL+createPath, strings.NewReader(createBody))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(CallIDHeader, "my-call")
	resp, err := f.rest.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if got := resp.Header.Get(CallIDHeader); got != "my-call" {
		t.Errorf("call id %q, want the caller's", got)
	}
	f.rest.Close() // the line is written when the call ends
	lines := strings.Split(strings.TrimSpace(f.log.String()), "\n")
	if len(lines) != 1 {
		t.Fatalf("got %d lines, want one for the call:\n%s", len(lines), f.log)
	}
	for _, want := range []string{"call_id=my-call", "hook=BeforeClusterCreate", "kind=BadResponse", "secret stack trace", `handler \"v.acme\"`} {
		if !strings.Contains(lines[0], want) {
			t.Errorf("log line has no %s:\n%s", want, lines[0])
		}
	}
}

func TestUnknownMembersSurviveBothFronts(t *testing.T) {
	f := newFixture(t, nil)
	var sent []byte
	f.register(t, "BeforeClusterCreate", hook.Fail, 30*time.Second, func(w http.ResponseWriter, r *http.Request) {
		sent, _ = io.ReadAll(r.Body)
		_, _ = io.WriteString(w, `{"status":"Success","retryAfterSeconds":0,"hint":{"n":9007199254740993}}`)
	})
	request := `{"kind":"BeforeClusterCreateRequest","apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","settings":{"a":"b"},` +
		`"cluster":{"kind":"Cluster",  "spec":{"n":9007199254740993}},"newMember":[1, 2]}`
	resp := f.post(t, createPath, request)
	if resp.code != http.StatusOK {
		t.Fatalf("%s: %s", resp.status, resp.body)
	}
	if string(sent) != request {
		t.Errorf("the extension got\n%s\nwant what the caller sent\n%s", sent, request)
	}
	if want := `{"kind":"BeforeClusterCreateResponse","apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","status":"Success","retryAfterSeconds":0,"hint":{"n":9007199254740993}}`; string(resp.body) != want {
		t.Errorf("the caller got\n%s\nwant\n%s", resp.body, want)
	}
	answer, err := hooksv1alpha1.NewLifecycleHooksServiceClient(f.conn).BeforeClusterCreate(t.Context(), &hooksv1alpha1.BeforeClusterCreateRequest{
		Settings: map[string]string{"a": "b"}, Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(`{"kind":"Cluster",  "spec":{"n":9007199254740993}}`)},
		UnknownMembers: map[string]*hooksv1alpha1.JSON{"newMember": {Raw: []byte(`[1, 2]`)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if string(sent) != request {
		t.Errorf("from gRPC the extension got\n%s\nwant\n%s", sent, request)
	}
	if got := string(answer.GetUnknownMembers()["hint"].GetRaw()); got != `{"n":9007199254740993}` {
		t.Errorf("the gRPC caller got hint %s", got)
	}
}

func TestGRPCRequestsAreChecked(t *testing.T) {
	f := newFixture(t, nil)
	f.registry.SetReady()
	for name, raw := range map[string]string{"NotJSON": `{"kind":`, "NotUTF8": "{\"kind\":\"\xff\"}", "TwoValues": `{} {}`} {
		t.Run(name, func(t *testing.T) {
			_, err := hooksv1alpha1.NewLifecycleHooksServiceClient(f.conn).BeforeClusterCreate(t.Context(),
				&hooksv1alpha1.BeforeClusterCreateRequest{Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(raw)}})
			if st := status.Convert(err); st.Code().String() != "InvalidArgument" || !strings.HasPrefix(st.Message(), "cluster: ") {
				t.Errorf("got %v, want InvalidArgument about the member cluster", err)
			}
		})
	}
}

// Both limits of gRPC's default, 4 MiB, would be in the way of a 5 MB request and its answer.
func TestLargeMessagesThroughBothFronts(t *testing.T) {
	f := newFixture(t, nil)
	patch := strings.Repeat("x", 5<<20)
	f.register(t, "GeneratePatches", hook.Fail, 20*time.Second, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		_, _ = fmt.Fprintf(w, `{"status":"Success","message":"%d","big":%q}`, len(body), patch)
	})
	raw := []byte(`{"pad":"` + patch + `"}`)
	resp := f.post(t, "/hooks.runtime.cluster.x-k8s.io/v1alpha1/generatepatches/v.acme", `{"items":[{"uid":"1","object":`+string(raw)+`}]}`)
	if resp.code != http.StatusOK || len(resp.body) < len(patch) {
		t.Errorf("REST: %s with %d bytes", resp.status, len(resp.body))
	}
	answer, err := hooksv1alpha1.NewTopologyMutationHooksServiceClient(f.conn).GeneratePatches(t.Context(), &hooksv1alpha1.GeneratePatchesRequest{
		Handler: "v.acme", Items: []*hooksv1alpha1.GeneratePatchesRequestItem{{Uid: "1", Object: &hooksv1alpha1.RawExtension{Raw: raw}}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if proto.Size(answer) < len(patch) {
		t.Errorf("gRPC: answer has %d bytes", proto.Size(answer))
	}
}
