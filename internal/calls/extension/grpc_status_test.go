// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/registry"
)

// Each status code of gRPC has a kind and a fixed text; only Unavailable and DeadlineExceeded are not the answer's
// fault. One that finds fault with the request says nothing about the next one.
func TestGRPCStatusCodes(t *testing.T) {
	a := newAuthority(t)
	faultOfTheRequest := []codes.Code{
		codes.InvalidArgument, codes.NotFound, codes.AlreadyExists, codes.PermissionDenied, codes.FailedPrecondition,
		codes.OutOfRange, codes.Unimplemented, codes.Unauthenticated,
	}
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		kind, want := hook.BadResponse, "answered "+code.String()
		switch code {
		case codes.Unavailable:
			kind = hook.Unreachable
		case codes.DeadlineExceeded:
			kind, want = hook.Timeout, "no answer within 30s"
		case codes.Unimplemented:
			want += ": it has no hookgate.hooks.v1alpha1.LifecycleHooksService/BeforeClusterCreate"
		case codes.Unauthenticated:
			want += ": it requires callers to authenticate"
		}
		cc := newAuthor(t, a, says(nil, status.Error(code, "secret")), nil)
		result, err := newGRPC(t, Config{}).Call(t.Context(), newCall(cc))
		wantError(t, code.String(), nil, err, kind, `handler "v.acme": call extension: `+want)
		if result.Response != nil || result.Inconclusive != slices.Contains(faultOfTheRequest, code) {
			t.Errorf("%s: got %v, inconclusive is %t", code, result.Response, result.Inconclusive)
		}
	}
}

// ResourceExhausted says nothing about the next request if the server finds this one too large, and that the extension
// has too much to do otherwise. The texts are those of gRPC in other languages.
func TestGRPCRefusedForItsSize(t *testing.T) {
	a := newAuthority(t)
	for text, aboutSize := range map[string]bool{
		"grpc: received message larger than max (6700000 vs. 4194304)":                                      true,
		"grpc: received message after decompression larger than max 4194304":                                true,
		"grpc: message after decompression larger than max (6700000 vs. 4194304)":                           true,
		"grpc: received message larger than max length allowed on current machine (6700000 vs. 2147483647)": true,
		"trying to send message larger than max (6700000 vs. 4194304)":                                      true,
		"Received message larger than max (6700000 vs. 4194304)":                                            true, // C core
		"SERVER: Received message larger than max (6700000 vs. 4194304)":                                    true,
		"Sent message larger than max (6700000 vs. 4194304)":                                                true,
		"Received message larger than max (6700000 vs 4194304)":                                             true, // Node.js
		"Received message that decompresses to a size larger than 4194304":                                  true,
		"Attempted to send message with a size larger than 4194304":                                         true,
		"gRPC message exceeds maximum size 4194304: 6700000":                                                true, // Java
		"Decompressed gRPC message exceeds maximum size 4194304":                                            true,
		"Received message exceeds the maximum configured message size.":                                     true, // .NET
		"Sending message exceeds the maximum configured message size.":                                      true,
		"Message has exceeded the configured maximum payload length (max: 4194304, actual: 6700000)":        true, // Swift
		"Error, decoded message length too large: found 6700000 bytes, the limit is: 4194304 bytes":         true, // Rust
		"message size 6700000 is larger than configured max 4194304":                                        true, // Connect
		"message size 6700000 is larger than configured readMaxBytes 4194304":                               true,
		"request too large":                                     true,
		"too many requests":                                     false,
		"message queue is too long":                             false,
		"quota exceeded":                                        false,
		"the number of messages is larger than the queue":       false,
		"request rate exceeds the maximum":                      false,
		"max concurrent requests exceeded: 100 is the max size": false,
		"Bandwidth exhausted or memory limit exceeded":          false,
		"Memory quota exceeded":                                 false,
		"":                                                      false,
	} {
		cc := newAuthor(t, a, says(nil, status.Error(codes.ResourceExhausted, text)), nil)
		result, err := newGRPC(t, Config{}).Call(t.Context(), newCall(cc))
		want := `handler "v.acme": call extension: answered ResourceExhausted`
		if aboutSize {
			want += ": a gRPC server accepts at most 4 MiB, unless it is configured otherwise"
		}
		wantError(t, text, nil, err, hook.BadResponse, want)
		if result.Inconclusive != aboutSize {
			t.Errorf("%q: inconclusive is %t", text, result.Inconclusive)
		}
	}
}

// A server with the limit of gRPC refuses a request of 5 MiB before its handler sees it, and takes the next one.
func TestGRPCLargerThanTheServerTakes(t *testing.T) {
	a := newAuthority(t)
	certificate, l := issue(t, a, time.Now().Add(time.Hour)), listen(t, "tcp", "127.0.0.1:0")
	serveGRPC(t, l, says(fine(), nil), nil, grpc.Creds(credentials.NewServerTLSFromCert(&certificate)), grpc.MaxRecvMsgSize(usualLimit))
	cc := registry.ClientConfig{Protocol: registry.GRPC, URL: "grpcs://" + l.Addr().String(), CABundle: a.PEM}
	g := newGRPC(t, Config{})
	large := newCall(cc)
	large.Request = &hooksv1alpha1.BeforeClusterCreateRequest{
		Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(`{"a":"` + strings.Repeat("x", 5<<20) + `"}`)},
	}
	result, err := g.Call(t.Context(), large)
	wantError(t, "it is too large", nil, err, hook.BadResponse, `handler "v.acme": call extension: answered ResourceExhausted: `+
		"a gRPC server accepts at most 4 MiB, unless it is configured otherwise")
	if !result.Inconclusive {
		t.Error("the refusal is held against the extension")
	}
	if _, err := g.Call(t.Context(), newCall(cc)); err != nil {
		t.Error(err)
	}
}

// A status that this version of the contract does not know is no success.
func TestGRPCUnknownStatus(t *testing.T) {
	m := fine()
	m.Status = 3
	cc := newAuthor(t, newAuthority(t), says(m, nil), nil)
	got, err := callGRPC(t.Context(), newGRPC(t, Config{}), newCall(cc))
	wantError(t, "neither of the two", got, err, hook.BadResponse,
		`handler "v.acme": call extension: answer: status: want "Success" or "Failure", got 3`)
}

// A host that resolves to a forbidden address is not called over gRPC either, nor are such endpoints of a Service.
func TestGRPCForbiddenAddresses(t *testing.T) {
	const want = `handler "v.acme": call extension: address of the host is link-local, where extensions are not allowed`
	g := newGRPC(t, Config{LookupHost: resolver("::ffff:169.254.169.254")})
	m, err := callGRPC(t.Context(), g, newCall(registry.ClientConfig{Protocol: registry.GRPC, URL: "grpcs://ext.example:443"}))
	wantError(t, "the name is harmless", m, err, hook.Unreachable, want)

	endpoints := &fixedEndpoints{changed: make(chan struct{}), addresses: []netip.AddrPort{netip.MustParseAddrPort("[fe80::1]:443")}}
	g = newGRPC(t, Config{Endpoints: endpoints})
	m, err = callGRPC(t.Context(), g, newCall(registry.ClientConfig{Protocol: registry.GRPC, URL: "https://acme.default.svc:443", InCluster: true}))
	wantError(t, "a Service can be given any endpoints", m, err, hook.Unreachable, want)
}

// Names that two handlers share in lower case are refused over gRPC as over REST, and nothing of the answer is used.
func TestGRPCDiscoverDuplicates(t *testing.T) {
	handler := func(name string) *hooksv1alpha1.ExtensionHandler {
		return &hooksv1alpha1.ExtensionHandler{Name: name, RequestHook: &hooksv1alpha1.GroupVersionHook{
			ApiVersion: hook.Group + "/" + hook.Version, Hook: "BeforeClusterCreate",
		}}
	}
	cc := newAuthor(t, newAuthority(t), &author{discover: func() (*hooksv1alpha1.DiscoveryResponse, error) {
		return &hooksv1alpha1.DiscoveryResponse{
			Status:   hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS,
			Handlers: []*hooksv1alpha1.ExtensionHandler{handler("a"), handler("b"), handler("a"), handler("A")},
		}, nil
	}}, nil)
	d, err := newGRPC(t, Config{}).Discover(t.Context(), cc)
	if len(d.Handlers) > 0 || hook.KindOf(err) != hook.BadResponse ||
		!strings.Contains(err.Error(), `handlers[2].name: another handler is also named "a"; handlers[3].name: "a" and "A" differ only in case`) {
		t.Errorf("got %v, %v", d, err)
	}
}

// Discovery falls back to reflection only if it is not implemented: other failures are reported.
func TestGRPCDiscoverUnavailable(t *testing.T) {
	cc := newAuthor(t, newAuthority(t), &author{discover: func() (*hooksv1alpha1.DiscoveryResponse, error) {
		return nil, status.Error(codes.Unavailable, "starting")
	}}, notServingNothing)
	_, err := newGRPC(t, Config{}).Discover(t.Context(), cc)
	wantError(t, "it will have Discovery later", nil, err, hook.Unreachable, "discover handlers: answered Unavailable")
	_, err = newGRPC(t, Config{}).Discover(canceled(t), cc)
	wantError(t, "the caller has left", nil, err, hook.Canceled, "discover handlers: the caller left")
}

func canceled(t *testing.T) context.Context {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	return ctx
}
