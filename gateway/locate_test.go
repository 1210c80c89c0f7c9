// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/auth"
	"github.com/hookgate/hookgate/internal/calls/policy"
)

const where = " namespace=n cluster=c"

// cut is what is left of a long name.
var cut = strings.Repeat("x", limits.QuotedBytes-len("…")) + "…"

// TestFailedCallsAreLocated holds that the log line of a failed call has the Cluster, the hook, the handler, the
// extension and the kind as members of their own, however the call fails and from whichever front it comes.
func TestFailedCallsAreLocated(t *testing.T) {
	answers := func(s string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w, s)
		}
	}
	broken := answers("<!doctype html>")
	tests := map[string]struct {
		reason  string
		handler string // of the request
		cluster string // of the request, if it is another one
		setup   func(t *testing.T, f *fixture)
		want    string
		kind    hook.Kind
	}{
		"BadResponse": {handler: "v.acme", kind: hook.BadResponse, want: where + " handler=v.acme extension=acme"},
		"OfAll":       {reason: "the handler is the one that failed", kind: hook.BadResponse, want: where + " handler=v.acme extension=acme"},
		"Unreachable": {setup: func(t *testing.T, f *fixture) { f.refuseConnections(t) }, kind: hook.Unreachable, want: where + " handler=v.acme extension=acme"},
		"Several": {reason: "their merged error names no single handler", setup: func(t *testing.T, f *fixture) {
			for _, name := range []string{"beta", "gamma"} {
				reg := registrationOf(name, handlerOf("w", "BeforeClusterCreate", hook.Fail))
				reg.ClientConfig = f.registry.Snapshot().Registrations()[0].ClientConfig
				if err := f.registry.Apply(reg); err != nil {
					t.Fatal(err)
				}
			}
		}, kind: hook.BadResponse, want: where + ` handler="v.acme, w.beta, w.gamma" extension="acme, beta, gamma"`},
		"Policy": {setup: func(t *testing.T, f *fixture) {
			f.registry.SetPolicies("acme", forHandler("v", policy.Policy{Conditions: conditions(t, `request.nothing`)}))
		}, kind: hook.Policy, want: where + " handler=v.acme extension=acme"},
		"Panic": {setup: func(_ *testing.T, f *fixture) { f.failWith = func() error { panic("out of cheese") } },
			kind: hook.Internal, want: where + " handler=v.acme extension=acme"},
		"UnknownHandler": {reason: "the handler is the one asked for", handler: "v.gone", kind: hook.UnknownHandler, want: where + " handler=v.gone"},
		"LongHandler":    {reason: "the name is cut", handler: strings.Repeat("x", 600), kind: hook.UnknownHandler, want: where + " handler=" + cut},
		"NoSuchCluster": {reason: "a name that no Cluster can have is left out", handler: "v.acme",
			cluster: `{"metadata":{"namespace":"n","name":"` + strings.Repeat("c", 600) + `"}}`, kind: hook.BadResponse, want: " handler=v.acme extension=acme"},
		"NotAnObject": {cluster: `[]`, handler: "v.acme", kind: hook.InvalidRequest, want: " handler=v.acme extension=acme"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, nil)
			f.register(t, "BeforeClusterCreate", hook.Fail, 20*time.Second, broken)
			if tc.setup != nil {
				tc.setup(t, f)
			}
			cluster := createCluster
			if tc.cluster != "" {
				cluster = tc.cluster
			}
			path := createPath
			if tc.handler != "" {
				path += "/" + tc.handler
			}
			f.post(t, path, strings.Replace(createBody, createCluster, cluster, 1))
			_, err := hooksv1alpha1.NewLifecycleHooksServiceClient(f.conn).BeforeClusterCreate(t.Context(),
				&hooksv1alpha1.BeforeClusterCreateRequest{Handler: tc.handler, Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(cluster)}})
			if err == nil {
				t.Fatal("the call did not fail")
			}
			f.wantLocated(t, tc.kind, tc.want, "REST", "gRPC")
		})
	}
}

// wantLocated checks that the log has one line of a failed call from each front, and where it belongs. It closes them.
func (f *fixture) wantLocated(t *testing.T, kind hook.Kind, want string, protocols ...string) {
	t.Helper()
	f.rest.Close()
	f.stop()
	for _, protocol := range protocols {
		found := 0
		for line := range strings.Lines(f.log.String()) {
			if !strings.Contains(line, `msg="call failed"`) || !strings.Contains(line, "protocol="+protocol) {
				continue
			}
			found++
			_, place, _ := strings.Cut(strings.TrimSpace(line), " took=")
			_, place, _ = strings.Cut(place+" ", " ")
			place, _, _ = strings.Cut(" "+strings.TrimSpace(place), " caller=")
			place, _, _ = strings.Cut(place, " cause=")
			if place != want || !strings.Contains(line, fmt.Sprintf(" hook=BeforeClusterCreate kind=%s ", kind)) {
				t.Errorf("%s: located at\n%s, want\n%s of kind %s in\n%s", protocol, place, want, kind, line)
			}
		}
		if found != 1 {
			t.Errorf("%s: the log has %d lines of failed calls, want 1:\n%s", protocol, found, f.log)
		}
	}
}

// closedGate admits nobody.
type closedGate struct{}

func (closedGate) Challenge() string { return "" }

func (closedGate) Admit(context.Context, auth.Credentials, *catalog.Hook) (auth.Admission, error) {
	return auth.Admission{}, hook.Errorf(hook.Overloaded, "come back later")
}

// A call that is refused before its request is read has the handler in its path alone, and one that is explained has
// what its request says.
func TestRefusedCallsAreLocated(t *testing.T) {
	f := newGatedFixture(t, nil, closedGate{})
	f.register(t, "BeforeClusterCreate", hook.Fail, time.Second, func(http.ResponseWriter, *http.Request) {})
	f.post(t, createPath+"/v.acme", createBody)
	f.wantLocated(t, hook.Overloaded, " handler=v.acme extension=acme", "REST")

	f = newFixture(t, nil)
	f.register(t, "BeforeClusterCreate", hook.Fail, time.Second, func(http.ResponseWriter, *http.Request) {})
	f.post(t, ExplainPrefix+createPath+"/"+strings.Repeat("x", 600), createBody)
	f.wantLocated(t, hook.UnknownHandler, where+" handler="+cut, "explain")
}

// TestIgnoredFailuresAreLocated holds the same for failures that a policy hides, and for those that an extension answers.
func TestIgnoredFailuresAreLocated(t *testing.T) {
	for answer, message := range map[string]string{
		"<!doctype html>": "failure ignored", `{"status":"Failure","message":"no"}`: "handler answered Failure",
	} {
		f := newFixture(t, nil)
		f.register(t, "BeforeClusterCreate", hook.Ignore, 20*time.Second, func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.Copy(io.Discard, r.Body)
			_, _ = io.WriteString(w, answer)
		})
		f.post(t, createPath, createBody)
		f.rest.Close()
		for _, want := range []string{message, "hook=BeforeClusterCreate", "handler=v.acme", "namespace=n cluster=c extension=acme"} {
			if !strings.Contains(f.log.String(), want) {
				t.Errorf("%s: the log lacks %s:\n%s", message, want, f.log)
			}
		}
	}
}
