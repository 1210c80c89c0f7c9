// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package badservers

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// How a gateway reaches an extension.
const (
	overPlain  = "grpc"
	overTLS    = "grpcs"
	overSocket = "unix"
	overREST   = "https"
)

const (
	speaksREST = "the server does not speak HTTP/2, as gRPC does: is it a REST extension?"
	speaksGRPC = "the server speaks gRPC: set protocol GRPC"
)

// cases are the ways to be bad. Each is an extension that is good when the gateway discovers it, and then started anew as this.
var cases = map[string]struct {
	reason string
	scheme string
	mode   string // of the server; "grpc" and "rest" are good ones
	certs  certificates
	kind   string
	http   int
	grpc   codes.Code
	want   string
}{
	"rest-for-grpc":       {"the other protocol, with TLS", overTLS, "rest", valid, "Unreachable", http.StatusServiceUnavailable, codes.Unavailable, "call extension: " + speaksREST},
	"rest-for-plain-grpc": {"the other protocol, without TLS", overPlain, "rest", none, "Unreachable", http.StatusServiceUnavailable, codes.Unavailable, "call extension: " + speaksREST},
	"grpc-for-rest":       {"the other protocol", overREST, "grpc", valid, "BadResponse", http.StatusBadGateway, codes.Unavailable, "call extension: " + speaksGRPC},
	"large":               {"more than 20 MiB", overPlain, "large", none, "BadResponse", http.StatusBadGateway, codes.Unavailable, "call extension: answer is larger than the limit"},
	"cut":                 {"the connection is reset when the answer has begun", overPlain, "cut", none, "BadResponse", http.StatusBadGateway, codes.Unavailable, "call extension: answer ended early"},
	"mute":                {"it never answers", overPlain, "mute", none, "Timeout", http.StatusGatewayTimeout, codes.DeadlineExceeded, "no answer within its timeout of 1s"},
	"other": {"services, but not those of the contract", overPlain, "other", none, "BadResponse", http.StatusBadGateway, codes.Unavailable,
		"call extension: answered Unimplemented: it has no hookgate.hooks.v1alpha1.LifecycleHooksService/BeforeClusterCreate"},
	"throw": {"its handler throws, and what it says is not for the caller", overPlain, "throw", none, "BadResponse", http.StatusBadGateway, codes.Unavailable, "call extension: answered Unknown"},
	"expired": {"the certificate has expired", overTLS, "grpc", expired, "Unreachable", http.StatusServiceUnavailable, codes.Unavailable,
		"call extension: certificate not trusted: expired or not yet valid"},
	"forbidden": {"the gateway may not use the socket", overSocket, "grpc", none, "Unreachable", http.StatusServiceUnavailable, codes.Unavailable,
		"call extension: no permission to use the socket"},
}

func TestBadServers(t *testing.T) {
	for _, language := range languages {
		t.Run(language.name, func(t *testing.T) {
			w := newWorld(t, language)
			for name, tc := range cases {
				if language.closesSilently && name == "grpc-for-rest" {
					// The gateway knows that the server spoke HTTP/1.1 at first, and has no reason to take this for another protocol.
					tc.kind, tc.http, tc.want = "Unreachable", http.StatusServiceUnavailable, "call extension: connection closed without an answer"
				}
				t.Run(name, func(t *testing.T) {
					w.startServer(t, tc.mode, tc.certs, w.addresses[name])
					if socket, ok := strings.CutPrefix(w.addresses[name], "unix://"); ok {
						chmod(t, socket, 0)
					}
					want := `handler "create.` + name + `": ` + tc.want
					for range 2 { // the text is the same every time
						code, kind, body := w.awaitServer(t, name)
						var answer struct{ Status, Message string }
						if err := json.Unmarshal(body, &answer); err != nil {
							t.Fatalf("the gateway answered %q: %v", body, err)
						}
						if code != tc.http || kind != tc.kind || answer.Status != "Failure" || answer.Message != want {
							t.Errorf("REST: %d %s %s %q,\nwant %d %s Failure %q (%s)", code, kind, answer.Status, answer.Message, tc.http, tc.kind, want, tc.reason)
						}
						began := time.Now()
						err := w.call(t, name)
						if st := status.Convert(err); st.Code() != tc.grpc || kindOf(st) != tc.kind || st.Message() != want {
							t.Errorf("gRPC: %s %s %q,\nwant %s %s %q (%s)", st.Code(), kindOf(st), st.Message(), tc.grpc, tc.kind, want, tc.reason)
						}
						if took := time.Since(began); took > 10*time.Second {
							t.Errorf("the caller waited for %s", took)
						}
					}
					w.checkGood(t)
				})
			}
			w.gateway.stop(t)
		})
	}
}

// A gateway that has never seen the extension says what is wrong with it when it discovers it.
func TestDiscoveryOfTheOtherProtocol(t *testing.T) {
	for _, language := range languages {
		t.Run(language.name, func(t *testing.T) {
			w := newWorld(t, language)
			for name, want := range map[string]string{
				"rest-for-grpc":       speaksREST,
				"rest-for-plain-grpc": speaksREST,
				"grpc-for-rest":       "set protocol GRPC",
			} {
				tc := cases[name]
				address := freeAddresses(t, 1)[0]
				w.startServer(t, tc.mode, tc.certs, address)
				w.writeManifest(t, "new-"+name, tc.scheme, address)
				eventually(t, "the log says of "+name+": "+want, func() bool {
					for line := range strings.Lines(w.log(t)) {
						if strings.Contains(line, "extensionConfig=new-"+name) && strings.Contains(line, want) {
							return true
						}
					}
					return false
				})
			}
			w.checkGood(t)
		})
	}
}
