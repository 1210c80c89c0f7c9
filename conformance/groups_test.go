// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
	dnsv1alpha1 "github.com/hookgate/hookgate/examples/own-hooks/gen/acme/dns/v1alpha1"
)

const dns = "dns.acme.example/v1alpha1"

// withDNS returns a catalog with a group of hooks that manage DNS.
func withDNS(t *testing.T) *catalog.Catalog {
	t.Helper()
	hooks, err := catalog.With(append(catalog.Infrastructure(), catalog.Source{
		Group: "dns.acme.example", Version: "v1alpha1", FailOnly: true,
		Files: []protoreflect.FileDescriptor{dnsv1alpha1.File_acme_dns_v1alpha1_dns_proto},
	})...)
	if err != nil {
		t.Fatal(err)
	}
	return hooks
}

// dnsHandler returns a handler in the answer of DiscoverDNS.
func dnsHandler(name, hook, more string) string {
	return fmt.Sprintf(`{"name":%q,"requestHook":{"apiVersion":%q,"hook":%q}%s}`, name, dns, hook, more)
}

// startDNS serves the group alone: discover returns the handlers, or a status other than 200, the n-th time.
func startDNS(t *testing.T, discover func(n int32) (int, string)) Target {
	t.Helper()
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/" + dns + "/discoverdns":
			code, handlers := discover(asked.Add(1))
			w.WriteHeader(code)
			_, _ = fmt.Fprintf(w, `{"apiVersion":%q,"kind":"DiscoverDNSResponse","status":"Success","handlers":[%s]}`, dns, handlers)
		case "/" + dns + "/ensurerecord/ensure":
			var request struct{ Name string }
			body, err := io.ReadAll(r.Body)
			if err == nil {
				err = json.Unmarshal(body, &request)
			}
			if err != nil {
				http.Error(w, "no request", http.StatusBadRequest)
				return
			}
			_, _ = fmt.Fprintf(w, `{"apiVersion":%q,"kind":"EnsureRecordResponse","status":"Success","retryAfterSeconds":0}`, dns)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return Target{URL: server.URL}
}

func resultOf(t *testing.T, report Report, id string) Result {
	t.Helper()
	i := slices.IndexFunc(report.Results, func(r Result) bool { return r.ID == id })
	if i < 0 {
		t.Fatalf("there is no result of %s", id)
	}
	return report.Results[i]
}

// TestAddedGroup checks an extension that has only hooks of an added group: its handlers are called if there is a
// request for them.
func TestAddedGroup(t *testing.T) {
	target := startDNS(t, func(int32) (int, string) { return http.StatusOK, dnsHandler("ensure", "EnsureRecord", "") })
	for name, tt := range map[string]struct {
		requests map[string][]byte
		handlers int
		called   Status
	}{
		"without a request": {nil, 0, Skip},
		"with a request":    {map[string][]byte{"EnsureRecord": []byte(`{"name":"a.example"}`)}, 1, Pass},
	} {
		t.Run(name, func(t *testing.T) {
			report, err := Run(t.Context(), target, Options{
				Catalog: withDNS(t), Requests: tt.requests, Skip: []string{"load", "tls", "protocol"},
			})
			if err != nil {
				t.Fatal(err)
			}
			if len(report.Handlers) != tt.handlers {
				t.Errorf("handlers %q, want %d", report.Handlers, tt.handlers)
			}
			for id, want := range map[string]Status{
				"groups.discovery": Pass, "groups.content": Pass, "discovery.answers": Skip, "answers.valid": tt.called,
				"answers.kind": tt.called, "envelope.unknown-members": tt.called, "malformed.refused": tt.called, "malformed.survives": tt.called,
				"idempotence.again": tt.called, "patches.apply": Skip,
			} {
				if r := resultOf(t, report, id); r.Status != want {
					t.Errorf("%s: got %s (%s) %+v, want %s", id, r.Status, r.Reason, r.Findings, want)
				}
			}
			if r := resultOf(t, report, "answers.valid"); tt.called == Skip && !strings.Contains(r.Reason, "EnsureRecord") {
				t.Errorf("the reason %q does not name the hook without a request", r.Reason)
			}
			for _, r := range report.Results {
				if r.Status == Fail || r.Status == Error {
					t.Errorf("%s: %s (%s) %+v", r.ID, r.Status, r.Reason, r.Findings)
				}
			}
		})
	}
}

// goodDNS is a handler that is as it should be.
var goodDNS = dnsHandler("ensure", "EnsureRecord", "")

// brokenGroups are the mistakes in the discovery of an added group.
var brokenGroups = map[string]struct {
	discover func(n int32) (int, string)
	check    string
	want     string // in the problem
}{
	"name": {func(int32) (int, string) { return 200, dnsHandler("Ensure", "EnsureRecord", "") },
		"groups.discovery", "DNS-1123"},
	"name twice": {func(int32) (int, string) { return 200, goodDNS + "," + goodDNS }, "groups.discovery", "another handler"},
	"hook of Cluster API": {func(int32) (int, string) {
		return 200, `{"name":"a","requestHook":{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","hook":"BeforeClusterCreate"}}`
	}, "groups.discovery", "want apiVersion dns.acme.example/v1alpha1"},
	"discovery itself": {func(int32) (int, string) { return 200, dnsHandler("a", "DiscoverDNS", "") },
		"groups.discovery", "no hook"},
	"31 seconds": {func(int32) (int, string) { return 200, dnsHandler("a", "EnsureRecord", `,"timeoutSeconds":31`) },
		"groups.discovery", "timeoutSeconds is 31"},
	"Ignore": {func(int32) (int, string) { return 200, dnsHandler("a", "EnsureRecord", `,"failurePolicy":"Ignore"`) },
		"groups.discovery", "never ignored"},
	"policy": {func(int32) (int, string) { return 200, dnsHandler("a", "EnsureRecord", `,"failurePolicy":"Maybe"`) },
		"groups.discovery", "neither Fail nor Ignore"},
	"513 handlers": {func(int32) (int, string) { return 200, dnsHandlers(513) }, "groups.discovery", "513 handlers"},
	"failure":      {func(int32) (int, string) { return 500, "" }, "groups.discovery", "no answer with status Success"},
	"other handlers": {func(n int32) (int, string) {
		if n > 5 {
			return 200, goodDNS
		}
		return 200, goodDNS + "," + dnsHandler("remove", "RemoveRecord", "")
	}, "groups.content", "[ensure] after [ensure remove]"},
	"later failure": {func(n int32) (int, string) { return map[bool]int{true: 200, false: 500}[n < 3], goodDNS },
		"groups.content", "does not now"},
}

// toleratedGroups are added groups that keep the rules of a check in a way that a careless check would take for a violation.
var toleratedGroups = []struct {
	check, how string
	discover   func(n int32) (int, string)
}{
	{"groups.discovery", "has 512 handlers of one hook, with names of 63 characters", func(int32) (int, string) {
		return 200, dnsHandlers(512)
	}},
	{"groups.discovery", "lists no handlers for now", func(int32) (int, string) { return 200, "" }},
	{"groups.discovery", "has the shortest and the longest timeout, and says Fail itself", func(int32) (int, string) {
		return 200, dnsHandler("a", "EnsureRecord", `,"timeoutSeconds":0,"failurePolicy":"Fail"`) + "," +
			dnsHandler("b", "RemoveRecord", `,"timeoutSeconds":30,"failurePolicy":null`)
	}},
	{"groups.discovery", "names handlers after hooks that they are not for, with members that are not known", func(int32) (int, string) {
		return 200, dnsHandler("removerecord", "EnsureRecord", `,"since":"v2"`) + "," + dnsHandler("discoverdns", "RemoveRecord", "")
	}},
	{"groups.content", "lists handlers in another order each time", func(n int32) (int, string) {
		handlers := []string{goodDNS, dnsHandler("remove", "RemoveRecord", "")}
		if n%2 == 0 {
			slices.Reverse(handlers)
		}
		return 200, strings.Join(handlers, ",")
	}},
	{"groups.content", "states defaults at some times, and how often it was asked", func(n int32) (int, string) {
		more := fmt.Sprintf(`,"asked":%d`, n)
		if n%2 == 0 {
			more += `,"timeoutSeconds":10,"failurePolicy":"Fail"`
		}
		return 200, dnsHandler("ensure", "EnsureRecord", more)
	}},
}

// TestToleratedGroups checks that the checks of added groups fail no extension that keeps all rules.
func TestToleratedGroups(t *testing.T) {
	for _, tt := range toleratedGroups {
		t.Run(tt.check+"/"+tt.how, func(t *testing.T) {
			report, err := Run(t.Context(), startDNS(t, tt.discover), Options{Catalog: withDNS(t), Only: []string{"groups"}})
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range report.Results {
				if r.Status != Pass {
					t.Errorf("an extension that %s: %s: got %s %s %+v", tt.how, r.ID, r.Status, r.Reason, r.Findings)
				}
			}
		})
	}
}

func TestBrokenAddedGroup(t *testing.T) {
	for name, tt := range brokenGroups {
		t.Run(name, func(t *testing.T) {
			report, err := Run(t.Context(), startDNS(t, tt.discover), Options{Catalog: withDNS(t), Only: []string{tt.check}})
			if err != nil {
				t.Fatal(err)
			}
			r := resultOf(t, report, tt.check)
			if r.Status != Fail || len(r.Findings) == 0 || !strings.Contains(r.Findings[0].Problem, tt.want) {
				t.Errorf("got %s %+v, want a problem with %q", r.Status, r.Findings, tt.want)
			}
		})
	}
}

// dnsHandlers returns so many handlers, with names of 63 characters.
func dnsHandlers(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = dnsHandler(fmt.Sprintf("%s-%03d", strings.Repeat("n", 59), i), "EnsureRecord", "")
	}
	return strings.Join(all, ",")
}

// TestNoAddedGroup checks that an extension of Cluster API's hooks that fails at any path that it does not know has no
// added group, as a gateway takes it.
func TestNoAddedGroup(t *testing.T) {
	s := newStub()
	s.only("BeforeClusterCreate")
	s.serve = func(w http.ResponseWriter, r *http.Request, next http.HandlerFunc) {
		if _, _, ok := hooks.ByPath(r.URL.Path); !ok {
			http.Error(w, "no such path", http.StatusInternalServerError)
			return
		}
		next(w, r)
	}
	report, err := Run(t.Context(), s.start(t, REST), Options{Catalog: withDNS(t), Only: []string{"groups", "protocol"}})
	if err != nil {
		t.Fatal(err)
	}
	if r := resultOf(t, report, "groups.discovery"); r.Status != Skip || !report.Conforms(false) {
		t.Errorf("got %s %+v, want a skipped check", r.Status, r.Findings)
	}
}
