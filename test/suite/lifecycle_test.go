// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"crypto/tls"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/network/devcert"
	"github.com/hookgate/hookgate/test/certificates"
	"github.com/hookgate/hookgate/test/process"
	"github.com/hookgate/hookgate/test/samples"
)

// Calls in flight at SIGTERM are finished, on both fronts; meanwhile the gateway is not ready; then it exits 0.
func TestSIGTERMDrains(t *testing.T) {
	process.Program(t, gatewayVariable)
	a := newAuthority(t)
	s := startStub(t, a)
	arrived, release := make(chan struct{}, 2), make(chan struct{})
	s.serve("BeforeClusterCreate", "slow", handlerOptions{timeout: 30}, func(w http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		select {
		case <-release:
			success("done after SIGTERM")(w, r)
		case <-r.Context().Done():
		}
	})
	g := startGateway(t, a, map[string]string{"s.yaml": registration{name: "s", url: s.server.URL}.manifest(a)})
	g.awaitHandler(t, "ready--s")

	overREST, overGRPC := make(chan answer, 1), make(chan string, 1)
	go func() {
		defer close(overREST)
		got, err := try(g.client, "https://"+g.HTTPS+path("BeforeClusterCreate", "slow.s"), samples.S())
		if err != nil {
			t.Errorf("call over REST: %v", err)
			return
		}
		overREST <- got
	}()
	stub := hooksv1alpha1.NewLifecycleHooksServiceClient(g.dial(t))
	request := message(t, &hooksv1alpha1.BeforeClusterCreateRequest{Handler: "slow.s"}, samples.S())
	ctx := soon(t)
	go func() {
		defer close(overGRPC)
		got, err := stub.BeforeClusterCreate(ctx, request)
		if err != nil {
			t.Errorf("call over gRPC: %v", err)
			return
		}
		overGRPC <- got.GetMessage()
	}()
	for range 2 {
		select {
		case <-arrived:
		case <-time.After(process.Patience):
			t.Fatal("the calls did not reach the extension")
		}
	}

	if err := g.Terminate(); err != nil {
		t.Fatal(err)
	}
	process.Eventually(t, "GET /readyz answers 503",
		func() bool { return g.Ready(t.Context()) == http.StatusServiceUnavailable })
	select {
	case <-g.Exited():
		t.Fatal("the gateway ended with calls in flight")
	default:
	}
	close(release)
	if got := <-overREST; got.code != http.StatusOK || !strings.Contains(string(got.body), "done after SIGTERM") {
		t.Errorf("over REST: status %d: %s", got.code, got.body)
	}
	if got := <-overGRPC; got != "done after SIGTERM" {
		t.Errorf("over gRPC: message %q", got)
	}
	if code := g.ExitCode(t); code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
}

func TestSIGTERMWhenIdle(t *testing.T) {
	process.Program(t, gatewayVariable)
	g := startGateway(t, newAuthority(t), nil)
	g.EndWell(t)
}

// shows reports whether a new connection sees the certificate of pair.
func shows(t testing.TB, address string, pair *devcert.Pair) bool {
	t.Helper()
	config := pair.ClientTLS()
	config.NextProtos = []string{"h2", "http/1.1"}
	conn, err := tls.Dial("tcp", address, config)
	if err != nil {
		return false
	}
	defer func() { _ = conn.Close() }()
	want := certificates.Of(t, pair)
	return conn.ConnectionState().PeerCertificates[0].Equal(want.Leaf)
}

func TestCertificatesAreReloaded(t *testing.T) {
	process.Program(t, gatewayVariable)
	a := newAuthority(t)
	certs := t.TempDir()
	first := a.write(t, certs, time.Now().Add(time.Hour))
	g := startGatewayWith(t, a, certs, nil)
	for front, address := range map[string]string{"REST": g.HTTPS, "gRPC": g.GRPC} {
		if !shows(t, address, first) {
			t.Fatalf("%s does not show its certificate at the start", front)
		}
	}
	// A file that holds no certificate is not used: new connections still get the old certificate.
	writeFile(t, filepath.Join(g.certs, "tls.crt"), []byte("not a certificate"))
	g.Expect(t, `(?i)certificate`)
	if !shows(t, g.HTTPS, first) {
		t.Error("the old certificate is not shown while the file is broken")
	}
	second := a.write(t, g.certs, time.Now().Add(time.Hour))
	for front, address := range map[string]string{"REST": g.HTTPS, "gRPC": g.GRPC} {
		process.Eventually(t, front+" shows the new certificate", func() bool { return shows(t, address, second) })
	}
	if got := g.post(t, path("BeforeClusterCreate", ""), samples.S()); got.code != http.StatusOK {
		t.Errorf("the old connection answers %d", got.code)
	}
	select {
	case <-g.Exited():
		t.Error("the gateway ended")
	default:
	}
}

// A ca.crt beside the certificate makes both fronts ask callers for one.
func TestCACertificateMakesBothFrontsRequireClientCertificates(t *testing.T) {
	process.Program(t, gatewayVariable)
	a, callers := newAuthority(t), newAuthority(t)
	certs := a.dir(t)
	writeFile(t, filepath.Join(certs, "ca.crt"), callers.PEM)
	g := startGatewayWith(t, a, certs, nil)
	for name, tc := range map[string]struct {
		reason       string
		certificates []tls.Certificate
		accepted     bool
	}{
		"none":               {"the caller does not say who it is", nil, false},
		"of the callers' CA": {"the caller is known", []tls.Certificate{callers.certificate(t)}, true},
		"of another CA":      {"the caller is a stranger", []tls.Certificate{a.certificate(t)}, false},
	} {
		t.Run(name, func(t *testing.T) {
			config := &tls.Config{RootCAs: a.pool, Certificates: tc.certificates}
			transport := &http.Transport{TLSClientConfig: config, ForceAttemptHTTP2: true}
			defer transport.CloseIdleConnections()
			got, err := try(&http.Client{Transport: transport, Timeout: process.Patience},
				"https://"+g.HTTPS+path("BeforeClusterCreate", ""), samples.S())
			if accepted := err == nil && got.code == http.StatusOK; accepted != tc.accepted {
				t.Errorf("REST, %s: status %d, %v", tc.reason, got.code, err)
			}
			conn, err := grpc.NewClient(g.GRPC, grpc.WithTransportCredentials(credentials.NewTLS(config.Clone())))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = conn.Close() }()
			_, err = hooksv1alpha1.NewDiscoveryServiceClient(conn).Discovery(soon(t), &hooksv1alpha1.DiscoveryRequest{})
			if (err == nil) != tc.accepted {
				t.Errorf("gRPC, %s: %v", tc.reason, err)
			}
		})
	}
}

// An extension that is down at the start is found once it runs, keeps its handlers while it is down, and answers again
// once it is back.
func TestHandlersStayWhileTheirExtensionIsDown(t *testing.T) {
	process.Program(t, gatewayVariable)
	a := newAuthority(t)
	port := strconv.Itoa(process.FreePort(t))
	g := startGateway(t, a, map[string]string{"late.yaml": registration{name: "late",
		url: "https://127.0.0.1:" + port}.manifest(a)})
	if g.offers(t, "patches--late") {
		t.Fatal("handlers of an extension that never answered")
	}
	checkFailure(t, "GeneratePatches", g.post(t, path("GeneratePatches", "patches--late"),
		samples.Body("GeneratePatches")), http.StatusServiceUnavailable)
	unasked := g.post(t, path("BeforeClusterDelete", ""), samples.Body("BeforeClusterDelete"))
	checkFailure(t, "BeforeClusterDelete", unasked, http.StatusServiceUnavailable)
	if text := string(unasked.body); !strings.Contains(text, `ExtensionConfig \"late\"`) {
		t.Errorf("the answer does not name who was not asked: %s", text)
	}
	if again := g.post(t, path("BeforeClusterDelete", ""), samples.Body("BeforeClusterDelete")); string(unasked.body) != string(again.body) {
		t.Errorf("the second answer differs:\n%s\n%s", unasked.body, again.body)
	}

	e := startExtension(t, a, "late", port)
	g.awaitHandler(t, "patches--late")
	if got := g.post(t, path("GeneratePatches", "patches--late"), samples.Body("GeneratePatches")); got.code != http.StatusOK {
		t.Fatalf("status %d: %s", got.code, got.body)
	}

	e.Kill()
	checkFailure(t, "GeneratePatches", g.post(t, path("GeneratePatches", "patches--late"),
		samples.Body("GeneratePatches")), http.StatusServiceUnavailable)
	if !g.offers(t, "patches--late") {
		t.Error("the handlers went with the extension")
	}
	if code := g.Ready(t.Context()); code != http.StatusOK {
		t.Errorf("/readyz answers %d because an extension is away", code)
	}
	// Handlers under Fail fail the aggregate; the message does not depend on which connection broke.
	first := g.post(t, path("BeforeClusterDelete", ""), samples.Body("BeforeClusterDelete"))
	checkFailure(t, "BeforeClusterDelete", first, http.StatusServiceUnavailable)
	if again := g.post(t, path("BeforeClusterDelete", ""), samples.Body("BeforeClusterDelete")); string(first.body) != string(again.body) {
		t.Errorf("the second answer differs:\n%s\n%s", first.body, again.body)
	}

	startExtension(t, a, "late", port)
	process.Eventually(t, "the extension that is back answers", func() bool {
		return g.post(t, path("GeneratePatches", "patches--late"),
			samples.Body("GeneratePatches")).code == http.StatusOK
	})
}

// A gateway that starts while its extension is down calls no handler and answers no lifecycle hook with Success until the
// extension is back; with a state, it knows which handlers to call.
func TestRestartsWhileTheExtensionIsDown(t *testing.T) {
	process.Program(t, gatewayVariable)
	a := newAuthority(t)
	port, kept := strconv.Itoa(process.FreePort(t)), filepath.Join(t.TempDir(), "state")
	manifests := map[string]string{"acme.yaml": registration{name: "acme", url: "https://127.0.0.1:" + port}.manifest(a)}
	request := func(g *gateway) answer {
		return g.post(t, path("BeforeClusterDelete", ""), samples.Body("BeforeClusterDelete"))
	}
	text := func(got answer) string { return asCaller(t, "BeforeClusterDelete", got.body).GetMessage() }
	for _, args := range [][]string{nil, {"--state-dir", kept}} {
		e, g := startExtension(t, a, "acme", port), startGateway(t, a, manifests, args...)
		g.awaitHandler(t, "patches--acme")
		if got := request(g); got.code != http.StatusOK {
			t.Fatalf("status %d: %s", got.code, got.body)
		}
		e.Kill()
		g.Kill()

		g = startGateway(t, a, manifests, args...)
		got := request(g)
		checkFailure(t, "BeforeClusterDelete", got, http.StatusServiceUnavailable)
		asked := strings.Contains(text(got), ".acme\": call extension: connection refused")
		if asked != (args != nil) || g.offers(t, "patches--acme") != asked {
			t.Errorf("%v: %s", args, got.body)
		}
		if code := g.Ready(t.Context()); code != http.StatusOK {
			t.Errorf("/readyz answers %d because an extension is away", code)
		}
		e = startExtension(t, a, "acme", port)
		process.Eventually(t, "the extension that is back is asked", func() bool { return request(g).code == http.StatusOK })
		e.Kill()
		g.Kill()
	}
}

// A configuration that cannot work ends the program at once, with a message that says what to do.
func TestBadConfigurationEndsTheProgram(t *testing.T) {
	binary := process.Program(t, gatewayVariable)
	a := newAuthority(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	certs, configs := a.dir(t), t.TempDir()
	halfCerts := t.TempDir()
	writeFile(t, filepath.Join(halfCerts, "tls.crt"), a.PEM)
	expired := t.TempDir()
	a.write(t, expired, time.Now().Add(-time.Minute))
	base := func(configs, certs, http string, more ...string) []string {
		return append([]string{"serve", "--extension-configs", configs, "--cert-dir", certs, "--http-address", http,
			"--grpc-address", "127.0.0.1:0", "--diagnostics-address", "127.0.0.1:0"}, more...)
	}
	for name, tc := range map[string]struct {
		reason string
		args   []string
		code   int
		text   string
	}{
		"unknown flag":           {"a typing error", base(configs, certs, "127.0.0.1:0", "--no-such-flag"), 2, `no-such-flag`},
		"unknown command":        {"a typing error", []string{"sevre"}, 2, `sevre`},
		"port in use":            {"another gateway runs", base(configs, certs, taken.Addr().String()), 1, `in use`},
		"no such directory":      {"a typing error", base(filepath.Join(configs, "missing"), certs, "127.0.0.1:0"), 1, `missing`},
		"no certificate":         {"not made yet", base(configs, t.TempDir(), "127.0.0.1:0"), 1, `tls\.(crt|key)`},
		"no key":                 {"half of a pair", base(configs, halfCerts, "127.0.0.1:0"), 1, `tls\.key`},
		"certificate expired":    {"every caller would refuse it", base(configs, expired, "127.0.0.1:0"), 1, `expired|valid only from`},
		"address not an address": {"a typing error", base(configs, certs, "localhost"), 1, `localhost`},
	} {
		t.Run(name, func(t *testing.T) {
			p := process.Run(t, "gateway", exec.Command(binary, tc.args...))
			code := p.ExitCode(t)
			if code != tc.code && (tc.code != 1 || code != 2) {
				t.Errorf("%s: exit code %d, want %d", tc.reason, code, tc.code)
			}
			p.Expect(t, tc.text)
			if text := p.Output(); strings.Contains(text, "goroutine ") {
				t.Errorf("a panic instead of a message:\n%s", text)
			}
		})
	}
}

// Readiness does not wait for extensions, and a new gateway answers at once. Its only extension never starts, which the
// operator may ignore.
func TestReadyWithoutExtensions(t *testing.T) {
	process.Program(t, gatewayVariable)
	a := newAuthority(t)
	away := registration{name: "away", url: "https://127.0.0.1:" + strconv.Itoa(process.FreePort(t))}.manifest(a)
	ignored := "---\napiVersion: hookgate.dev/v1alpha1\nkind: ExtensionPolicy\nmetadata: {name: away}\n" +
		"spec: {targetRef: {name: away}, onUndiscovered: Ignore}\n"
	for manifest, code := range map[string]int{away: http.StatusServiceUnavailable, away + ignored: http.StatusOK} {
		g := startGateway(t, a, map[string]string{"away.yaml": manifest})
		if got := g.post(t, path("BeforeClusterCreate", "beforeclustercreate"), samples.S()); got.code != code {
			t.Errorf("status %d, want %d: %s", got.code, code, got.body)
		}
	}
}
