// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"crypto/tls"
	"errors"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/network/devcert"
)

// TestConnectErrors checks that a run without anything to check reports why, and what to do.
func TestConnectErrors(t *testing.T) {
	const closed = "127.0.0.1:1"
	at := func(scheme string, target Target) Target {
		_, rest, _ := strings.Cut(target.URL, "://")
		target.URL = scheme + "://" + rest
		if scheme == "grpc" || scheme == "http" {
			target.CA = nil
		}
		return target
	}
	plain := func() *stub {
		s := newStub()
		s.plain = true
		return s
	}
	other, err := devcert.NewAuthority(time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		reason string
		target func(t *testing.T) Target
		want   string
		hint   string
	}{
		"Refused":       {"no server listens", func(*testing.T) Target { return Target{URL: "https://" + closed} }, "connection refused", "is the port right?"},
		"RefusedGRPC":   {"no server listens", func(*testing.T) Target { return Target{URL: "grpc://" + closed} }, "connection refused", "is the port right?"},
		"NoSocket":      {"no such file", func(t *testing.T) Target { return Target{URL: "unix://" + filepath.Join(t.TempDir(), "none.sock")} }, "there is no such socket", "is the path right?"},
		"UnknownCA":     {"the CA was not given", func(t *testing.T) Target { return Target{URL: newStub().start(t, REST).URL} }, "signed by an unknown authority", "--ca FILE"},
		"OtherCA":       {"another CA was given", func(t *testing.T) Target { return Target{URL: newStub().start(t, GRPC).URL, CA: other.PEM} }, "signed by an unknown authority", "--ca FILE"},
		"RESTAsGRPCS":   {"HTTPS without HTTP/2", func(t *testing.T) Target { return at("grpcs", newStub().start(t, REST)) }, "does not speak HTTP/2", "Then use https://"},
		"RESTAsGRPC":    {"HTTP where gRPC was meant", func(t *testing.T) Target { return at("grpc", plain().start(t, REST)) }, "does not speak HTTP/2", "JSON over HTTP?"},
		"HTTP2AsGRPCS":  {"HTTPS with HTTP/2", func(t *testing.T) Target { return at("grpcs", http2Server(t)) }, "does not speak gRPC", "Then use https://"},
		"HTTPSAsGRPC":   {"TLS where none was meant", func(t *testing.T) Target { return at("grpc", newStub().start(t, GRPC)) }, "does not speak gRPC without TLS", "use grpcs://"},
		"GRPCSAsHTTPS":  {"gRPC where REST was meant", func(t *testing.T) Target { return at("https", newStub().start(t, GRPC)) }, "it speaks gRPC", "Use grpcs://"},
		"GRPCAsHTTP":    {"gRPC where HTTP was meant", func(t *testing.T) Target { return at("http", plain().start(t, GRPC)) }, "it speaks gRPC", "Use grpc://"},
		"GRPCAsHTTPS":   {"no TLS where some was meant", func(t *testing.T) Target { return at("https", plain().start(t, GRPC)) }, "does not speak TLS", "grpc://127.0.0.1:"},
		"HTTPAsHTTPS":   {"no TLS where some was meant", func(t *testing.T) Target { return at("https", plain().start(t, REST)) }, "does not speak TLS", "metrics or health"},
		"HTTPSAsHTTP":   {"TLS where none was meant", func(t *testing.T) Target { return at("http", newStub().start(t, REST)) }, "it speaks HTTPS", "Use https://"},
		"WantsAClient":  {"a client certificate is missing", func(t *testing.T) Target { return wantsClient(t, REST) }, "asked for a client certificate", "--cert FILE"},
		"WantsAClientG": {"a client certificate is missing", func(t *testing.T) Target { return wantsClient(t, GRPC) }, "asked for a client certificate", "--cert FILE"},
		"NoSuchHost":    {"the name is unknown", func(*testing.T) Target { return Target{URL: "https://no.such.host.invalid"} }, "host name not found", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Run(t.Context(), tt.target(t), Options{Only: []string{"discovery"}})
			var e *ConnectError
			if !errors.As(err, &e) || !strings.Contains(e.Problem, tt.want) || !strings.Contains(e.Hint, tt.hint) {
				t.Errorf("%s: got %v, want %q and %q", tt.reason, err, tt.want, tt.hint)
			}
		})
	}
}

// http2Server is no extension at all, but speaks HTTP/2.
func http2Server(t *testing.T) Target {
	s := newStub()
	s.tls = func(c *tls.Config) { c.NextProtos = []string{"h2", "http/1.1"} }
	s.http2 = true
	return s.start(t, REST)
}

func wantsClient(t *testing.T, p Protocol) Target {
	s := newStub()
	s.tls = func(c *tls.Config) { c.ClientAuth = tls.RequireAnyClientCert }
	return s.start(t, p)
}

func TestTargetErrors(t *testing.T) {
	for url, want := range map[string]string{
		"":                              "must not be empty",
		"ftp://127.0.0.1":               `not with "ftp"`,
		"127.0.0.1:9090":                "must begin with https://",
		"https://":                      "must have a host",
		"https://u@127.0.0.1":           "must not have a user",
		"http://ext.example":            "must be on loopback, because http:// has no TLS; use https://ext.example",
		"grpc://ext.example:9090":       "use grpcs://ext.example:9090",
		"grpc://127.0.0.1":              "must have a port",
		"grpcs://ext.example:9090/path": "must not have a path",
		"unix://run/ext.sock":           "the absolute path of a socket",
	} {
		_, err := Run(t.Context(), Target{URL: url}, Options{})
		var e *TargetError
		if !errors.As(err, &e) || !strings.Contains(e.Problem, want) {
			t.Errorf("%q: got %v, want %q", url, err, want)
		}
	}
	for reason, target := range map[string]Target{
		"it has no certificate": {URL: "https://127.0.0.1:1", CA: []byte("no PEM")},
		"there is no TLS":       {URL: "grpc://127.0.0.1:1", CA: []byte("no PEM")},
	} {
		var e *TargetError
		if _, err := Run(t.Context(), target, Options{}); !errors.As(err, &e) {
			t.Errorf("a CA where %s: got %v", reason, err)
		}
	}
}

// TestRequests checks that the user's own request is sent, and that an invalid one is refused.
func TestRequests(t *testing.T) {
	s := newStub()
	s.only("ValidateTopology")
	seen := make(chan string, 100)
	s.answer = func(_ *catalog.Hook, in, _ proto.Message) {
		if q := in.(*hooksv1alpha1.ValidateTopologyRequest); len(q.GetItems()) == 1 {
			seen <- string(q.GetItems()[0].GetObject().GetRaw())
		}
	}
	target := s.start(t, GRPC)
	requests := map[string][]byte{"ValidateTopology": []byte(`{"items":[{"object":{"kind":"Mine"}}]}`)}
	if _, err := Run(t.Context(), target, Options{Only: []string{"answers.valid"}, Requests: requests}); err != nil || len(seen) != 1 {
		t.Fatalf("got %d calls, %v", len(seen), err)
	}
	if got := <-seen; got != `{"kind":"Mine"}` {
		t.Errorf("got %s", got)
	}
	for name, body := range map[string]string{"ValidateTopology": "{", "BeforeCoffee": "{}"} {
		var e *TargetError
		if _, err := Run(t.Context(), target, Options{Requests: map[string][]byte{name: []byte(body)}}); !errors.As(err, &e) || !strings.Contains(e.Problem, name) {
			t.Errorf("%s %s: got %v", name, body, err)
		}
	}
}

// TestReflection checks an extension that implements some hooks and leaves discovery to server reflection.
func TestReflection(t *testing.T) {
	s := newStub()
	s.noSuch = map[string]bool{
		"hookgate.hooks.v1alpha1.DiscoveryService": true, "hookgate.hooks.v1alpha1.LifecycleHooksService": true,
		"hookgate.hooks.v1alpha1.InPlaceUpdateHooksService": true, "hookgate.hooks.v1alpha1.UpgradePlanHooksService": true,
	}
	report, err := Run(t.Context(), s.start(t, GRPC), Options{Skip: []string{"load"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(report.Handlers, " "); got != "discovervariables generatepatches validatetopology" || !report.Conforms(true) {
		t.Errorf("got handlers %s, %+v", got, report.Results)
	}
}

// TestGoneExtension checks that an extension that dies does not pass the later checks.
func TestGoneExtension(t *testing.T) {
	t.Parallel()
	s := newStub()
	dead := make(chan struct{})
	s.only("BeforeClusterCreate")
	s.serve = func(w http.ResponseWriter, r *http.Request, next http.HandlerFunc) {
		select {
		case <-dead:
		default:
			if r.ContentLength != 1 {
				next(w, r)
				return
			}
			close(dead) // at the body "{"
		}
		panic(http.ErrAbortHandler)
	}
	report, err := Run(t.Context(), s.start(t, REST), Options{Only: []string{"answers", "malformed", "protocol.unknown-hook", "envelope"}})
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]Status{}
	for _, r := range report.Results {
		got[r.ID] = r.Status
		if r.Status == Error && r.Reason != "the extension no longer answers" {
			t.Errorf("%s: %s", r.ID, r.Reason)
		}
	}
	if got["envelope.settings"] != Pass || got["malformed.refused"] != Fail || got["malformed.survives"] != Error || got["protocol.unknown-hook"] != Error || report.Conforms(true) {
		t.Errorf("got %v", got)
	}
}
