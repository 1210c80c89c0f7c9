// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/registry"
)

// handlerJSON is a handler of a discovery answer; more is further members.
func handlerJSON(name, hookName, more string) string {
	return fmt.Sprintf(`{"name":%q,"requestHook":{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","hook":%q}%s}`, name, hookName, more)
}

func discoveryJSON(handlers ...string) string {
	return `{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","kind":"DiscoveryResponse","status":"Success","handlers":[` +
		strings.Join(handlers, ",") + `]}`
}

func gvh(name string) hook.GroupVersionHook {
	return hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: name}
}

func TestDiscover(t *testing.T) {
	var got *http.Request
	var body []byte
	s := newServer(t, newAuthority(t), func(w http.ResponseWriter, req *http.Request) {
		got = req
		body, _ = io.ReadAll(req.Body)
		_, _ = io.WriteString(w, discoveryJSON(
			handlerJSON("z", "BeforeClusterCreate", ""),
			handlerJSON("y", "GeneratePatches", `,"timeoutSeconds":0,"failurePolicy":"Fail"`),
			handlerJSON("a", "ValidateTopology", `,"timeoutSeconds":30,"failurePolicy":"Ignore"`),
			handlerJSON("x", "NotYetInvented", ""),
			handlerJSON("d", "Discovery", ""),
			`{"name":"v","requestHook":{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v9","hook":"BeforeClusterCreate"}}`,
		))
	}, nil)
	s.cc.URL += "/prefix"
	d, err := newREST(t, Config{}).Discover(t.Context(), s.cc)
	if err != nil {
		t.Fatal(err)
	}
	want := Discovered{
		Handlers: []registry.Handler{
			{Name: "a", Hook: gvh("ValidateTopology"), Timeout: 30 * time.Second, FailurePolicy: hook.Ignore},
			{Name: "y", Hook: gvh("GeneratePatches"), Timeout: 10 * time.Second, FailurePolicy: hook.Fail},
			{Name: "z", Hook: gvh("BeforeClusterCreate"), Timeout: 10 * time.Second, FailurePolicy: hook.Fail},
		},
		Skipped: []Skipped{
			{Name: "d", Reason: `hook "hooks.runtime.cluster.x-k8s.io/v1alpha1/Discovery" has no handlers`},
			{Name: "v", Reason: `hook "hooks.runtime.cluster.x-k8s.io/v9/BeforeClusterCreate" is not known to this gateway`},
			{Name: "x", Reason: `hook "hooks.runtime.cluster.x-k8s.io/v1alpha1/NotYetInvented" is not known to this gateway`},
		},
	}
	if diff := cmp.Diff(want, d); diff != "" {
		t.Errorf("Discover: -want +got\n%s", diff)
	}
	if u := "/prefix/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery?timeout=10s"; got.Method != http.MethodPost || got.URL.String() != u {
		t.Errorf("got %s %s, want POST %s", got.Method, got.URL, u)
	}
	if want := `{"kind":"DiscoveryRequest","apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1"}`; strings.TrimSpace(string(body)) != want {
		t.Errorf("body %s, want %s", body, want)
	}
}

func TestDiscoverRefuses(t *testing.T) {
	many := make([]string, limits.Handlers+1)
	for i := range many {
		many[i] = handlerJSON(fmt.Sprintf("h%d", i), "BeforeClusterCreate", "")
	}
	const hookName, lowerCase = "BeforeClusterCreate", "in paths, upper and lower case are the same"
	ok := handlerJSON("ok", hookName, "")
	a := newAuthority(t)
	for name, tc := range map[string]struct{ reason, answer, want string }{
		"failure":          {"the extension says why", `{"status":"Failure","message":"database is away"}`, "the extension answered Failure: database is away"},
		"no status":        {"a status is due here, too", `{"handlers":[]}`, `answer: status: want "Success" or "Failure", got ""`},
		"twice":            {"names are unique", discoveryJSON(ok, ok), `answer: handlers[1].name: another handler is also named "ok"`},
		"no name":          {"handlers have names", discoveryJSON(handlerJSON("", hookName, "")), "answer: handlers[0].name: must not be empty"},
		"long twice":       {"a name that is too long is not repeated", discoveryJSON(handlerJSON(strings.Repeat("a", 10_000), hookName, ""), handlerJSON(strings.Repeat("a", 10_000), hookName, "")), "answer: handlers[0].name: must have at most 63 characters, has 10000; handlers[1].name: must have at most 63 characters, has 10000"},
		"long":             {"a name has at most 63 characters", discoveryJSON(handlerJSON(strings.Repeat("a", 10_000), hookName, "")), "answer: handlers[0].name: must have at most 63 characters, has 10000"},
		"timeout":          {"30 s is the most", discoveryJSON(handlerJSON("a", hookName, `,"timeoutSeconds":31`)), "answer: handlers[0].timeoutSeconds: 31 is not between 0 and 30"},
		"of unknown hooks": {"even what is skipped must be right", discoveryJSON(handlerJSON("a", "NotYetInvented", `,"timeoutSeconds":-1`)), "answer: handlers[0].timeoutSeconds: -1 is not between 0 and 30"},
		"no hook":          {"a handler has a hook", discoveryJSON(`{"name":"a","requestHook":{"apiVersion":"x","hook":"y"}}`), `answer: handlers[0].requestHook: apiVersion "x" is not of the form group/version`},
		"many":             {"the status of an ExtensionConfig holds 512", discoveryJSON(many...), "answer: has 513 handlers, which is more than 512: split them over several extensions"},
		"policy":           {"case matters", discoveryJSON(handlerJSON("a", hookName, `,"failurePolicy":"fail"`)), `answer: handlers[0].failurePolicy: want "Ignore" or "Fail", got "fail"`},
		"dot": {
			"a name is a DNS-1123 label", discoveryJSON(ok, handlerJSON("a.b", hookName, "")),
			`answer: handlers[1].name: "a.b" must consist of lower case letters, digits and '-', and begin and end with a letter or digit`,
		},
		"case": {
			"paths are in lower case, and all faults are listed", discoveryJSON(handlerJSON("alpha", hookName, ""), handlerJSON("Alpha", hookName, ""), handlerJSON("Beta", hookName, "")),
			`answer: handlers[1].name: "alpha" and "Alpha" differ only in case: ` + lowerCase + `; handlers[2].name: "Beta" must be in lower case: ` + lowerCase,
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t, a, answer(tc.answer), nil)
			d, err := newREST(t, Config{}).Discover(t.Context(), s.cc)
			wantError(t, tc.reason, nil, err, hook.BadResponse, "discover handlers: "+tc.want)
			if diff := cmp.Diff(Discovered{}, d); diff != "" {
				t.Errorf("%s: beside the error: %s", tc.reason, diff)
			}
		})
	}
}

func TestDiscoverFails(t *testing.T) {
	a := newAuthority(t)
	s := newServer(t, a, http.NotFound, nil)
	r := newREST(t, Config{})
	_, err := r.Discover(t.Context(), s.cc)
	wantError(t, "no extension", nil, err, hook.BadResponse,
		"discover handlers: answered 404 Not Found at /hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery")

	s.cc.CABundle = []byte("no certificate")
	_, err = r.Discover(t.Context(), s.cc)
	wantError(t, "no authority", nil, err, hook.Unreachable, "discover handlers: caBundle: contains no valid PEM certificate")

	s = newServer(t, a, func(_ http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		<-req.Context().Done()
	}, nil)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = r.Discover(ctx, s.cc)
	wantError(t, "no answer", nil, err, hook.Timeout, "discover handlers: no answer before the caller's deadline")
}
