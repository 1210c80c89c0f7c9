// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"k8s.io/client-go/rest"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/auth"
	"github.com/hookgate/hookgate/internal/calls/auth/tokenreview"
	"github.com/hookgate/hookgate/internal/calls/auth/tokenreview/tokenreviewtest"
	"github.com/hookgate/hookgate/internal/network/certs"
	"github.com/hookgate/hookgate/internal/network/devcert"
	"github.com/hookgate/hookgate/internal/serving/servers"
)

const (
	everyToken  = "token-for-all-the-hooks"
	createToken = "token-for-one-of-the-hooks"
	oldToken    = "token-that-has-expired"
)

// callersManifest has a caller of each kind.
const callersManifest = `
apiVersion: hookgate.dev/v1alpha1
kind: Callers
callers:
- {name: everything, token: ` + everyToken + `, hooks: ["*"]}
- {name: create, token: ` + createToken + `, hooks: [BeforeClusterCreate]}
- {name: old, token: ` + oldToken + `, expires: "2026-01-01T00:00:00Z", hooks: ["*"]}
- {name: core, certificateNames: [core.example], hooks: ["*"]}
- {name: reader, certificateNames: [reader.example], hooks: [discovery]}
`

// guarded is a gateway with both fronts behind a gate.
type guarded struct {
	*fixture
	http, grpc string
	dir        string // with its certificate
	authority  *devcert.Authority
	roots      *x509.CertPool
	// authorities are those of callers.
	authorities *certs.Server
}

// authentication says how a test gateway authenticates callers.
type authentication struct {
	certificates bool
	names        []string
	callers      string
	reviewer     auth.Reviewer
	limits       auth.Limits
}

func (a authentication) start(t *testing.T) *guarded {
	t.Helper()
	end := time.Now().Add(time.Hour)
	authority, err := devcert.NewAuthority(end)
	if err != nil {
		t.Fatal(err)
	}
	server, err := authority.Issue(end)
	if err != nil {
		t.Fatal(err)
	}
	g := &guarded{dir: t.TempDir(), authority: authority, roots: x509.NewCertPool()}
	g.roots.AppendCertsFromPEM(authority.PEM)
	if err := server.WriteDir(g.dir); err != nil {
		t.Fatal(err)
	}
	if a.certificates {
		g.write(t, certs.CAFile, string(authority.PEM))
	}
	quiet := slog.New(slog.DiscardHandler)
	certificates, err := certs.OpenServer(g.dir, certs.Settings{}, quiet)
	if err != nil {
		t.Fatal(err)
	}
	g.authorities = certificates
	config := auth.Config{Certificates: certificates, Names: a.names, Reviewer: a.reviewer, Limits: a.limits}
	if a.callers != "" {
		g.write(t, "callers.yaml", a.callers)
		if config.Callers, err = auth.OpenCallers(filepath.Join(g.dir, "callers.yaml"), catalog.New(), quiet); err != nil {
			t.Fatal(err)
		}
	}
	gate := auth.NewGate(config)
	g.fixture = newGatedFixture(t, nil, gate)
	g.registry.SetReady()
	g.http, g.grpc, _ = serve(t, func(c *servers.Config) {
		c.REST, c.TLS = g.front, certificates.TLS()
		if gate.Tokens() {
			c.TLS = certificates.TLSOrToken()
		}
		c.GRPCOptions = GRPCOptions()
		c.Register = func(s grpc.ServiceRegistrar) { RegisterGRPC(s, g.services.dispatcher, g.services) }
	})
	return g
}

func (g *guarded) write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(g.dir, name), []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// shown is what a caller shows.
type shown struct {
	host          string // of a certificate of the authority; none if empty
	authorization []string
}

func (g *guarded) tls(t *testing.T, s shown) *tls.Config {
	t.Helper()
	config := &tls.Config{RootCAs: g.roots, MinVersion: tls.VersionTLS12}
	if s.host != "" {
		pair, err := g.authority.Issue(time.Now().Add(time.Hour), s.host)
		if err != nil {
			t.Fatal(err)
		}
		certificate, err := pair.Certificate()
		if err != nil {
			t.Fatal(err)
		}
		config.Certificates = []tls.Certificate{certificate}
	}
	return config
}

// answerOf is what a caller gets: the kind and text of an error, and whether it got one at all.
type answerOf struct{ kind, message string }

// throughREST calls a hook over REST. The answer of a caller that was refused must be the hook's.
func (g *guarded) throughREST(t *testing.T, h *catalog.Hook, s shown, body io.Reader) answerOf {
	t.Helper()
	transport := &http.Transport{TLSClientConfig: g.tls(t, s), ForceAttemptHTTP2: true}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://"+g.http+h.Path(""), body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header["Authorization"] = s.authorization
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return answerOf{"handshake", ""}
	}
	defer resp.Body.Close()
	var answer struct{ Kind, APIVersion, Status, Message string }
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		t.Fatalf("the answer, %s, is not JSON: %v", resp.Status, err)
	}
	kind := resp.Header.Get(ErrorKindHeader)
	if answer.Kind != string(h.Response.Descriptor().Name()) || answer.APIVersion != h.APIVersion() || resp.Header.Get(CallIDHeader) == "" {
		t.Errorf("the answer is %+v with call id %q: want the envelope of %s", answer, resp.Header.Get(CallIDHeader), h)
	}
	for _, k := range []hook.Kind{hook.Unauthenticated, hook.Forbidden} {
		if kind == k.String() && (resp.StatusCode != k.HTTPStatus() || answer.Status != "Failure") {
			t.Errorf("kind %s with status code %d and %q", kind, resp.StatusCode, answer.Status)
		}
	}
	if challenged := resp.Header.Get("WWW-Authenticate") != ""; challenged != (resp.StatusCode == http.StatusUnauthorized) {
		t.Errorf("status code %d, with a challenge: %v", resp.StatusCode, challenged)
	}
	return answerOf{kind, answer.Message}
}

// throughGRPC calls a hook over gRPC.
func (g *guarded) throughGRPC(t *testing.T, h *catalog.Hook, s shown) answerOf {
	t.Helper()
	conn, ctx := g.dial(t, s)
	err := conn.Invoke(ctx, h.Method, h.Request.New().Interface(), h.Response.New().Interface())
	return answerOfStatus(t, err)
}

func (g *guarded) dial(t *testing.T, s shown) (*grpc.ClientConn, context.Context) {
	t.Helper()
	conn, err := grpc.NewClient(g.grpc, grpc.WithTransportCredentials(credentials.NewTLS(g.tls(t, s))))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	md := metadata.MD{}
	md.Append("authorization", s.authorization...)
	return conn, metadata.NewOutgoingContext(t.Context(), md)
}

func answerOfStatus(t *testing.T, err error) answerOf {
	t.Helper()
	st := status.Convert(err)
	for _, d := range st.Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			for _, k := range []hook.Kind{hook.Unauthenticated, hook.Forbidden} {
				if info.GetReason() == k.String() && st.Code() != k.GRPCCode() {
					t.Errorf("kind %s with code %s", k, st.Code())
				}
			}
			return answerOf{info.GetReason(), st.Message()}
		}
	}
	if st.Code() == codes.Unavailable {
		return answerOf{"handshake", ""}
	}
	return answerOf{"", st.Message()}
}

// TestGate tests what callers may show, for each way in which a gateway may authenticate them, over both fronts.
func TestGate(t *testing.T) {
	const (
		anonymous  = "the caller does not say who it is: "
		orShow     = "show a client certificate of an authority that the gateway trusts"
		orSend     = `send a token in the header "Authorization: Bearer <token>"`
		noToken    = `the Authorization header has no token: send "Bearer <token>"`
		notKnown   = "the gateway does not know the token: ask the operator of the gateway for a valid token"
		notAllowed = "caller %s may not call %s: ask the operator of the gateway to allow the hook for this caller"
	)
	forbidden := func(caller, hookName string) answerOf {
		return answerOf{"Forbidden", strings.NewReplacer("%s may", `"`+caller+`" may`, "call %s:", "call "+hookName+":").Replace(notAllowed)}
	}
	unauthenticated := func(message string) answerOf { return answerOf{"Unauthenticated", message} }
	admitted, handshake := answerOf{}, answerOf{"handshake", ""}
	bearer := func(token string) shown { return shown{authorization: []string{"Bearer " + token}} }
	for gateway, tt := range map[string]struct {
		authentication
		calls map[string]struct {
			shown
			hook string // Discovery if empty
			want answerOf
		}
	}{
		"Open": {authentication{}, map[string]struct {
			shown
			hook string
			want answerOf
		}{
			"Nothing": {shown{}, "", admitted},
			"Token":   {bearer("whatever"), "", admitted},
		}},
		"Certificates": {authentication{certificates: true}, map[string]struct {
			shown
			hook string
			want answerOf
		}{
			"Nothing":     {shown{}, "", handshake},
			"Certificate": {shown{host: "any.example"}, "", admitted},
			"Token":       {shown{host: "any.example", authorization: []string{"Basic x"}}, "", admitted}, // nothing reads it
		}},
		"Names": {authentication{certificates: true, names: []string{"core.example"}}, map[string]struct {
			shown
			hook string
			want answerOf
		}{
			"Listed":  {shown{host: "core.example"}, "", admitted},
			"Another": {shown{host: "other.example"}, "", answerOf{"Forbidden", `the client certificate of "localhost" is not allowed to call: ask the operator of the gateway to list one of the certificate's names`}},
		}},
		"Callers": {authentication{certificates: true, callers: callersManifest}, map[string]struct {
			shown
			hook string
			want answerOf
		}{
			"Nothing":          {shown{}, "", unauthenticated(anonymous + orShow + ", or " + orSend)},
			"Certificate":      {shown{host: "core.example"}, "", admitted},
			"OneHook":          {shown{host: "reader.example"}, "", admitted},
			"AnotherHook":      {shown{host: "reader.example"}, "GeneratePatches", forbidden("reader", "GeneratePatches")},
			"Unlisted":         {shown{host: "other.example"}, "", answerOf{"Forbidden", `the client certificate of "localhost" is not allowed to call: ask the operator of the gateway to list one of the certificate's names`}},
			"Token":            {bearer(everyToken), "", admitted},
			"TokenOfAnother":   {bearer(createToken), "", forbidden("create", "Discovery")},
			"LowerCase":        {shown{authorization: []string{"bearer " + everyToken}}, "", admitted},
			"Spaces":           {shown{authorization: []string{"BEARER   " + everyToken}}, "", admitted},
			"NoScheme":         {shown{authorization: []string{everyToken}}, "", unauthenticated(noToken)},
			"Basic":            {shown{authorization: []string{"Basic " + everyToken}}, "", unauthenticated(noToken)},
			"Empty":            {shown{authorization: []string{""}}, "", unauthenticated(noToken)},
			"EmptyToken":       {shown{authorization: []string{"Bearer "}}, "", unauthenticated(noToken)},
			"Wrong":            {bearer(everyToken + "x"), "", unauthenticated(notKnown)},
			"Expired":          {bearer(oldToken), "", unauthenticated(`the token of caller "old" has expired: ask the operator of the gateway for a new token`)},
			"Two":              {shown{authorization: []string{"Bearer " + everyToken, "Bearer " + everyToken}}, "", unauthenticated("the request has several Authorization headers: send one")},
			"Longest":          {bearer(strings.Repeat("x", limits.TokenBytes)), "", unauthenticated(notKnown)},
			"TooLong":          {bearer(strings.Repeat("x", limits.TokenBytes+1)), "", unauthenticated("the token is longer than 16384 bytes")},
			"TokenFirst":       {shown{"core.example", []string{"Bearer wrong"}}, "", unauthenticated(notKnown)},
			"TokenOfLess":      {shown{"core.example", []string{"Bearer " + createToken}}, "", forbidden("create", "Discovery")},
			"CertificateFirst": {shown{"reader.example", []string{"Bearer " + everyToken}}, "CanUpdateMachine", answerOf{}},
		}},
		"TokensAlone": {authentication{callers: callersManifest}, map[string]struct {
			shown
			hook string
			want answerOf
		}{
			"Nothing":     {shown{}, "", unauthenticated(anonymous + orSend)},
			"Certificate": {shown{host: "core.example"}, "", unauthenticated(anonymous + orSend)}, // nothing has verified it
			"Token":       {bearer(everyToken), "", admitted},
		}},
	} {
		t.Run(gateway, func(t *testing.T) {
			g := tt.start(t)
			for name, call := range tt.calls {
				t.Run(name, func(t *testing.T) {
					h := hookOf(t, "Discovery")
					if call.hook != "" {
						h = hookOf(t, call.hook)
					}
					rest, rpc := g.throughREST(t, h, call.shown, strings.NewReader("{}")), g.throughGRPC(t, h, call.shown)
					want := call.want
					if rest != rpc {
						t.Errorf("the fronts differ: REST %+v, gRPC %+v", rest, rpc)
					}
					refused := rest.kind == "Unauthenticated" || rest.kind == "Forbidden" || rest.kind == "handshake"
					if want == admitted && refused || want != admitted && rest != want {
						t.Errorf("got %+v, want %+v", rest, want)
					}
				})
			}
		})
	}
}

// TestGateKnowsEveryHook tests for each hook of the catalog that a caller of that hook alone may call it, and no other.
func TestGateKnowsEveryHook(t *testing.T) {
	hooks := catalog.New().Hubs()
	var callers strings.Builder
	callers.WriteString("apiVersion: hookgate.dev/v1alpha1\nkind: Callers\ncallers:\n")
	for _, h := range hooks {
		callers.WriteString("- {name: " + h.Hook + ", token: token-of-the-hook-" + h.Hook + ", hooks: [" + h.Hook + "]}\n")
	}
	g := authentication{callers: callers.String()}.start(t)
	for i, h := range hooks {
		for _, of := range []*catalog.Hook{h, hooks[(i+1)%len(hooks)]} {
			s := shown{authorization: []string{"Bearer token-of-the-hook-" + of.Hook}}
			for protocol, got := range map[string]answerOf{"REST": g.throughREST(t, h, s, strings.NewReader("{}")), "gRPC": g.throughGRPC(t, h, s)} {
				if got.kind == "Unauthenticated" || (got.kind == "Forbidden") != (h != of) {
					t.Errorf("%s: %s with the token of %s: %+v", protocol, h.Hook, of.Hook, got)
				}
			}
		}
	}
}

// TestGateAsksTheAPIServer tests tokens of a cluster over both fronts: a user may call the hooks whose paths RBAC allows
// it to post to, in any spelling of the scheme, and nobody may while the API server does not answer.
func TestGateAsksTheAPIServer(t *testing.T) {
	hooks := catalog.New().Hubs()
	api := &tokenreviewtest.APIServer{Users: map[string]string{}, Allowed: map[string][]string{}}
	for _, h := range hooks {
		api.Users["token-of-"+h.Hook], api.Allowed["user-of-"+h.Hook] = "user-of-"+h.Hook, []string{h.Path("")}
	}
	server := httptest.NewServer(api)
	t.Cleanup(server.Close)
	reviewer, err := tokenreview.New(&rest.Config{Host: server.URL, ContentConfig: rest.ContentConfig{ContentType: "application/json"}}, server.Client(), nil)
	if err != nil {
		t.Fatal(err)
	}
	g := authentication{certificates: true, reviewer: reviewer}.start(t)
	both := func(h *catalog.Hook, s shown) answerOf {
		t.Helper()
		rest, rpc := g.throughREST(t, h, s, strings.NewReader("{}")), g.throughGRPC(t, h, s)
		if rest != rpc {
			t.Errorf("%s: the fronts differ: REST %+v, gRPC %+v", h.Hook, rest, rpc)
		}
		return rest
	}
	for i, h := range hooks {
		other := hooks[(i+1)%len(hooks)]
		if got := both(h, shown{authorization: []string{"bearer token-of-" + h.Hook}}); got.kind == "Unauthenticated" || got.kind == "Forbidden" {
			t.Errorf("%s with its own token: %+v", h.Hook, got)
		}
		want := answerOf{"Forbidden", `user "user-of-` + other.Hook + `" may not call this hook: bind a ClusterRole that has the verb post on the nonResourceURL ` + h.Path("")}
		if got := both(h, shown{authorization: []string{"Bearer token-of-" + other.Hook}}); got != want {
			t.Errorf("%s with the token of another: %+v, want %+v", h.Hook, got, want)
		}
	}
	discovery := hookOf(t, "Discovery")
	if got := both(discovery, shown{authorization: []string{"Bearer made-up"}}); got.kind != "Unauthenticated" {
		t.Errorf("a token that is none: %+v", got)
	}
	if got := both(discovery, shown{host: "core.example"}); got != (answerOf{}) {
		t.Errorf("a client certificate: %+v", got)
	}
	server.Close()
	want := answerOf{"NotReady", "the token could not be checked, because the API server did not answer: try again"}
	if got := both(discovery, shown{authorization: []string{"Bearer another"}}); got != want {
		t.Errorf("without the API server: %+v, want %+v", got, want)
	}
}

// TestGateDecidesBeforeTheRequestIsRead tests that a caller that is refused has its answer while it still owes the
// request.
func TestGateDecidesBeforeTheRequestIsRead(t *testing.T) {
	g := authentication{callers: callersManifest}.start(t)
	h := hookOf(t, "GeneratePatches")
	body, end := io.Pipe()
	defer func() { _ = end.Close() }()
	if got := g.throughREST(t, h, shown{}, body); got.kind != "Unauthenticated" {
		t.Errorf("REST: %+v", got)
	}
	conn, ctx := g.dial(t, shown{})
	stream, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true}, h.Method)
	if err != nil {
		t.Fatal(err)
	}
	if got := answerOfStatus(t, stream.RecvMsg(h.Response.New().Interface())); got.kind != "Unauthenticated" {
		t.Errorf("gRPC: %+v", got)
	}
}

// TestGateLooksAtConnectionsThatStay tests that a connection that was made before there was an authority, or under
// another, is asked as new ones are.
func TestGateLooksAtConnectionsThatStay(t *testing.T) {
	g := authentication{certificates: true}.start(t)
	h := hookOf(t, "Discovery")
	conn, ctx := g.dial(t, shown{host: "core.example"})
	call := func() answerOf {
		return answerOfStatus(t, conn.Invoke(ctx, h.Method, h.Request.New().Interface(), h.Response.New().Interface()))
	}
	if got := call(); got != (answerOf{}) {
		t.Fatalf("under the first authority: %+v", got)
	}
	next, err := devcert.NewAuthority(time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	g.write(t, certs.CAFile, string(next.PEM))
	g.authorities.Reload()
	want := answerOf{"Unauthenticated", "the gateway no longer trusts the authority that signed the client certificate: show a certificate of another authority"}
	if got := call(); got != want {
		t.Errorf("under another authority: %+v, want %+v", got, want)
	}
}

// TestGateLetsHealthThrough tests that probes need no credentials, and that a path that is no hook's is not described
// to strangers.
func TestGateLetsHealthThrough(t *testing.T) {
	g := authentication{callers: callersManifest}.start(t)
	conn, ctx := g.dial(t, shown{})
	if _, err := healthv1.NewHealthClient(conn).Check(ctx, &healthv1.HealthCheckRequest{}); err != nil {
		t.Error(err)
	}
	transport := &http.Transport{TLSClientConfig: g.tls(t, shown{})}
	defer transport.CloseIdleConnections()
	for token, code := range map[string]int{"": http.StatusUnauthorized, createToken: http.StatusNotFound} {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, "https://"+g.http+"/hooks.runtime.cluster.x-k8s.io/v1alpha1/none", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		resp, err := transport.RoundTrip(req)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != code {
			t.Errorf("token %q: %s, want %d", token, resp.Status, code)
		}
	}
}

// TestGateLimitsEachCaller tests that calls of both fronts count together for one caller, that others are not affected,
// and that the place of a call is given back when it ends.
func TestGateLimitsEachCaller(t *testing.T) {
	for name, tt := range map[string]struct {
		authentication
		first, same, other shown
		shared             bool // the other is the same caller to the gate
	}{
		"Tokens": {
			authentication{callers: callersManifest, limits: auth.Limits{InFlight: 1}},
			shown{authorization: []string{"Bearer " + everyToken}}, shown{authorization: []string{"bearer " + everyToken}},
			shown{authorization: []string{"Bearer " + createToken}}, false,
		},
		"Hosts": {authentication{limits: auth.Limits{InFlight: 1}}, shown{}, shown{}, shown{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := tt.start(t)
			arrived, finish := make(chan struct{}, 9), make(chan struct{})
			g.register(t, "BeforeClusterCreate", hook.Fail, 20*time.Second, func(w http.ResponseWriter, _ *http.Request) {
				arrived <- struct{}{}
				<-finish
				_, _ = io.WriteString(w, `{"status":"Success"}`)
			})
			h := hookOf(t, "BeforeClusterCreate")
			conn, ctx := g.dial(t, tt.first)
			done := make(chan error, 1)
			go func() {
				req := &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(createCluster)}}
				done <- conn.Invoke(ctx, h.Method, req, h.Response.New().Interface())
			}()
			<-arrived
			want := answerOf{"Overloaded", "the caller has 1 calls in flight, the most that one caller may have: try again once some have ended"}
			if rest, rpc := g.throughREST(t, h, tt.same, strings.NewReader(createBody)), g.throughGRPC(t, h, tt.same); rest != want || rpc != want {
				t.Errorf("one call more: REST %+v, gRPC %+v, want %+v", rest, rpc, want)
			}
			if got := g.throughGRPC(t, h, tt.other); (got.kind == "Overloaded") != tt.shared {
				t.Errorf("the other caller: %+v", got)
			}
			close(finish)
			if err := <-done; err != nil {
				t.Errorf("the call in flight: %v", err)
			}
			if got := g.throughREST(t, h, tt.same, strings.NewReader(createBody)); got.kind != "" {
				t.Errorf("after it has ended: %+v", got)
			}
		})
	}
}

// TestGateIsObserved tests that decisions are counted with few labels, and that the log names the caller of a call.
func TestGateIsObserved(t *testing.T) {
	g := authentication{certificates: true, callers: callersManifest}.start(t)
	h := hookOf(t, "GeneratePatches")
	g.throughGRPC(t, h, shown{host: "reader.example"})
	g.throughGRPC(t, h, shown{authorization: []string{"Bearer " + everyToken}})
	g.throughGRPC(t, h, shown{authorization: []string{"Bearer made-up"}})
	want := `
# HELP hookgate_authentications_total Total number of decisions on whether a caller may call. The label method is "none" (the caller shows no credentials, or needs none), "certificate" (a client certificate), "token" (a token from the file of callers, or an unknown token) or "kubernetes" (a token that Kubernetes reviews). The label result is "admitted" (the caller may call), "Unauthenticated" (the credentials are missing or not valid), "Forbidden" (the caller is not allowed to make the call), "Overloaded" (the caller makes too many calls) or "error" (no decision was possible, so the call was refused).
# TYPE hookgate_authentications_total counter
hookgate_authentications_total{method="certificate",result="Forbidden"} 1
hookgate_authentications_total{method="token",result="Unauthenticated"} 1
hookgate_authentications_total{method="token",result="admitted"} 1
`
	if err := testutil.GatherAndCompare(g.metrics, strings.NewReader(want), "hookgate_authentications_total"); err != nil {
		t.Error(err)
	}
	log := g.log.String()
	if !strings.Contains(log, "kind=Forbidden") || !strings.Contains(log, "caller=reader") || strings.Contains(log, "made-up") || strings.Contains(log, everyToken) {
		t.Errorf("the log does not name the caller, or has a token:\n%s", log)
	}
}
