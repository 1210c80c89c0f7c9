// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package badservers

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/hookgate/hookgate/test/process"
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

// outcome is the kind and the text of the error that the caller gets.
type outcome struct{ kind, want string }

// codesOf maps kinds to the codes of docs/errors.md.
var codesOf = map[string]struct {
	http int
	grpc codes.Code
}{
	"BadResponse": {http.StatusBadGateway, codes.Unavailable},
	"Timeout":     {http.StatusGatewayTimeout, codes.DeadlineExceeded},
	"Unreachable": {http.StatusServiceUnavailable, codes.Unavailable},
}

// cases lists the faults. Each extension works when the gateway discovers it, and is then restarted with the fault.
var cases = map[string]struct {
	reason string
	scheme string
	mode   string // of the server; "grpc" and "rest" are good ones
	certs  certificates
	outcome
}{
	"rest-for-grpc":       {"the other protocol, with TLS", overTLS, "rest", valid, outcome{"Unreachable", "call extension: " + speaksREST}},
	"rest-for-plain-grpc": {"the other protocol, without TLS", overPlain, "rest", none, outcome{"Unreachable", "call extension: " + speaksREST}},
	"grpc-for-rest":       {"the other protocol", overREST, "grpc", valid, outcome{"BadResponse", "call extension: " + speaksGRPC}},
	"large":               {"more than 20 MiB", overPlain, "large", none, outcome{"BadResponse", "call extension: answer is larger than 20971520 bytes"}},
	"cut":                 {"the connection is reset when the answer has begun", overPlain, "cut", none, outcome{"BadResponse", "call extension: answer ended early"}},
	"mute":                {"it never answers", overPlain, "mute", none, outcome{"Timeout", "no answer within its timeout of 1s"}},
	"other":               {"services, but not the contract's", overPlain, "other", none, outcome{"BadResponse", "call extension: answered Unimplemented: it has no hookgate.hooks.v1alpha1.LifecycleHooksService/BeforeClusterCreate"}},
	"throw":               {"its handler throws, and what it says is not for the caller", overPlain, "throw", none, outcome{"BadResponse", "call extension: answered Unknown"}},
	"expired":             {"the certificate has expired", overTLS, "grpc", expired, outcome{"Unreachable", "call extension: certificate not trusted: expired or not yet valid"}},
	"rest-large":          {"more than 20 MiB, over REST", overREST, "rest-large", valid, outcome{"BadResponse", "call extension: answer is larger than 20971520 bytes"}},
	"rest-cut":            {"the connection breaks when the answer has begun, over REST", overREST, "rest-cut", valid, outcome{"BadResponse", "call extension: answer ended early"}},
	"rest-mute":           {"it never answers, over REST", overREST, "rest-mute", valid, outcome{"Timeout", "no answer within its timeout of 1s"}},
	"rest-throw":          {"its handler throws, over REST", overREST, "rest-throw", valid, outcome{"BadResponse", "call extension: answered 500 Internal Server Error"}},
	"forbidden":           {"the gateway may not use the socket", overSocket, "grpc", none, outcome{"Unreachable", "call extension: no permission to use the socket"}},
}

func TestBadServers(t *testing.T) {
	for _, language := range languages {
		t.Run(language.name, func(t *testing.T) {
			w := newFixture(t, language)
			for name, tc := range cases {
				if own, ok := language.outcomes[name]; ok {
					tc.outcome = own
				}
				wantCodes := codesOf[tc.kind]
				t.Run(name, func(t *testing.T) {
					w.startServer(t, tc.mode, tc.certs, w.addresses[name])
					if socket, ok := strings.CutPrefix(w.addresses[name], "unix://"); ok {
						chmod(t, socket, 0)
					}
					handler := "create." + name
					if tc.kind == "Timeout" {
						handler = "quick." + name
					}
					want := `handler "` + handler + `": ` + tc.want
					for range 2 { // the text is the same every time
						code, kind, body, st := w.awaitServer(t, handler, tc.kind)
						var answer struct{ Status, Message string }
						if err := json.Unmarshal(body, &answer); err != nil {
							t.Fatalf("the gateway answered %q: %v", body, err)
						}
						if code != wantCodes.http || kind != tc.kind || answer.Status != "Failure" ||
							answer.Message != want {
							t.Errorf("REST: %d %s %s %q,\nwant %d %s Failure %q (%s)", code, kind, answer.Status,
								answer.Message, wantCodes.http, tc.kind, want, tc.reason)
						}
						if st.Code() != wantCodes.grpc || kindOf(st) != tc.kind || st.Message() != want {
							t.Errorf("gRPC: %s %s %q,\nwant %s %s %q (%s)", st.Code(), kindOf(st), st.Message(),
								wantCodes.grpc, tc.kind, want, tc.reason)
						}
					}
					w.checkGood(t)
				})
			}
			w.gateway.EndWell(t)
		})
	}
}

// A gateway that discovers the extension for the first time reports the fault.
func TestDiscoveryOfTheOtherProtocol(t *testing.T) {
	for _, language := range languages {
		t.Run(language.name, func(t *testing.T) {
			w := newFixture(t, language)
			for name, want := range map[string]string{
				"rest-for-grpc":       speaksREST,
				"rest-for-plain-grpc": speaksREST,
				"grpc-for-rest":       "set protocol GRPC",
			} {
				tc := cases[name]
				address := freeAddresses(t, 1)[0]
				w.startServer(t, tc.mode, tc.certs, address)
				w.writeManifest(t, "new-"+name, tc.scheme, address)
				process.Eventually(t, "the log says of "+name+": "+want, func() bool {
					for line := range strings.Lines(w.gateway.Output()) {
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
