// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/hookgate/hookgate/test/process"
	"github.com/hookgate/hookgate/test/samples"
)

// fault is one way in which an extension fails to answer.
type fault struct {
	reason string
	answer http.HandlerFunc
	codes  []int // of the gateway, under Fail
}

// hangs reports whether the handler's timeout ends the call.
func (f fault) hangs() bool { return slices.Equal(f.codes, []int{http.StatusGatewayTimeout}) }

// call calls the faulty handler. A busy machine may need more than the handler's 30 s to send 30 MiB, so a fault that
// does not hang is retried after a timeout.
func (f fault) call(t testing.TB, g *gateway, name string) answer {
	t.Helper()
	var got answer
	for range 5 {
		got = g.post(t, path("BeforeClusterCreate", name+".bad"), samples.S())
		if f.hangs() || got.code != http.StatusGatewayTimeout {
			break
		}
	}
	return got
}

// soonerThanTheMaximum bounds calls with a short deadline: it is below the 30 s maximum of a handler, yet long enough
// on a busy machine.
const soonerThanTheMaximum = 25 * time.Second

const secret = "secret-of-the-extension"

// faults returns all faults by name, a DNS-1123 label.
func faults(t testing.TB) map[string]fault {
	t.Helper()
	bomb := compress(t, io.MultiReader(strings.NewReader(`{"status":"Success","retryAfterSeconds":30,"message":"`),
		io.LimitReader(letters{}, 30<<20), strings.NewReader(`"}`)))
	compressed := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(bomb)
	}
	bad := []int{http.StatusBadGateway}
	status := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			_, _ = io.WriteString(w, body)
		}
	}
	return map[string]fault{
		"status-500": {"an error with a body", status(http.StatusInternalServerError, secret+" stack trace"), bad},
		"status-404": {"the handler is gone", status(http.StatusNotFound, secret), bad},
		"status-201": {"only 200 is an answer", status(http.StatusCreated, `{"status":"Success","retryAfterSeconds":30}`), bad},
		"status-204": {"no body at all", status(http.StatusNoContent, ""), bad},
		"redirect": {"redirects are not followed", func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "/"+secret, http.StatusTemporaryRedirect)
		}, bad},
		"html":             {"a login page with status 200", say("<html><body>" + secret + "</body></html>"), bad},
		"empty":            {"200 and nothing", say(""), bad},
		"half-a-body":      {"the connection breaks", halfABody, []int{http.StatusBadGateway, http.StatusServiceUnavailable}},
		"half-of-json":     {"the body ends early, the connection does not", say(`{"status":"Success","retryAfterSeconds":30,"message":"` + secret), bad},
		"wrong-kind":       {"an answer of another hook", say(`{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","kind":"BeforeClusterDeleteResponse","status":"Success","retryAfterSeconds":30}`), bad},
		"wrong-apiversion": {"an answer of another version", say(`{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v9","kind":"BeforeClusterCreateResponse","status":"Success","retryAfterSeconds":30}`), bad},
		"status-empty":     {"neither success nor failure", say(`{"status":"","retryAfterSeconds":30}`), bad},
		"status-absent":    {"neither success nor failure", say(`{"retryAfterSeconds":30}`), bad},
		"status-unknown":   {"neither success nor failure", say(`{"status":"Perhaps","retryAfterSeconds":30}`), bad},
		"wrong-type":       {"a member of the wrong type", say(`{"status":"Success","retryAfterSeconds":"soon"}`), bad},
		"array":            {"not an object", say(`[]`), bad},
		"null":             {"not an object", say(`null`), bad},
		"two-documents":    {"one answer, one document", say(`{"status":"Success","retryAfterSeconds":30}{"status":"Success"}`), bad},
		"30-mib":           {"more than the limit", huge(30 << 20), bad},
		"gzip-bomb":        {"more than the limit once it is decompressed", compressed, bad},
		"hang":             {"nothing until the deadline", hang, []int{http.StatusGatewayTimeout}},
		"half-and-hang": {"a beginning, and nothing more until the deadline", func(w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, `{"status":"Success","retryAfterSeconds":30,`)
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		}, []int{http.StatusGatewayTimeout}},
		"abort": {"the connection breaks before a status", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			[]int{http.StatusServiceUnavailable, http.StatusBadGateway}},
	}
}

func startFaulty(t *testing.T, all map[string]fault, ignore bool) *gateway {
	t.Helper()
	process.Program(t, gatewayVariable)
	a := newAuthority(t)
	s := startStub(t, a)
	for name, f := range all {
		// Only a fault that hangs may run into its timeout.
		timeout := int32(30)
		if f.hangs() {
			timeout = 1
		}
		s.serve("BeforeClusterCreate", name, handlerOptions{ignore: ignore, timeout: timeout}, f.answer)
	}
	s.serve("BeforeClusterCreate", "refuses", handlerOptions{ignore: ignore},
		say(`{"status":"Failure","message":"no more clusters","retryAfterSeconds":0}`))
	g := startGateway(t, a, map[string]string{
		"bad.yaml": registration{name: "bad", url: s.server.URL}.manifest(a),
		// Each fault is called, also after many others.
		"policy.yaml": "apiVersion: hookgate.dev/v1alpha1\nkind: ExtensionPolicy\nmetadata: {name: faults}\n" +
			"spec: {targetRef: {name: bad}, circuit: {mode: Disabled}}\n",
	})
	g.awaitHandler(t, "ready--bad")
	return g
}

func TestFaultsFail(t *testing.T) {
	all := faults(t)
	g := startFaulty(t, all, false)
	for name, f := range all {
		t.Run(name, func(t *testing.T) {
			call := func() answer { return f.call(t, g, name) }
			began := time.Now()
			got := call()
			if took := time.Since(began); f.hangs() && took > soonerThanTheMaximum {
				t.Errorf("took %s with a timeout of one second", took)
			}
			if !slices.Contains(f.codes, got.code) {
				t.Fatalf("%s: status %d, want one of %v: %.500s", f.reason, got.code, f.codes, got.body)
			}
			message := checkFailure(t, "BeforeClusterCreate", got, got.code)
			if !strings.Contains(message, name+".bad") {
				t.Errorf("message %q does not name the handler", message)
			}
			if strings.Contains(string(got.body), secret) {
				t.Errorf("the extension's own words reach the caller: %s", got.body)
			}
			if again := call(); !bytes.Equal(got.body, again.body) {
				t.Errorf("the second answer differs:\n%s\n%s", got.body, again.body)
			}
		})
	}
	t.Run("an answer that says Failure", func(t *testing.T) { checkRefused(t, g) })
	if code := g.Ready(t.Context()); code != http.StatusOK {
		t.Errorf("/readyz answers %d after faults", code)
	}
}

func TestFaultsIgnore(t *testing.T) {
	all := faults(t)
	g := startFaulty(t, all, true)
	for name, f := range all {
		t.Run(name, func(t *testing.T) {
			got := f.call(t, g, name)
			if got.code != http.StatusOK {
				t.Fatalf("%s: status %d: %.500s", f.reason, got.code, got.body)
			}
			out := asCaller(t, "BeforeClusterCreate", got.body).(*runtimehooksv1.BeforeClusterCreateResponse)
			if out.Status != runtimehooksv1.ResponseStatusSuccess || out.RetryAfterSeconds != 0 ||
				strings.Contains(out.Message, secret) {
				t.Errorf("an ignored failure leaves something behind: %s", got.body)
			}
		})
	}
	t.Run("an answer that says Failure", func(t *testing.T) { checkRefused(t, g) })
}

// checkRefused checks that the failure policy does not change a Failure of the extension.
func checkRefused(t *testing.T, g *gateway) {
	t.Helper()
	got := g.post(t, path("BeforeClusterCreate", "refuses.bad"), samples.S())
	if got.code != http.StatusOK {
		t.Fatalf("status %d: %s", got.code, got.body)
	}
	out := asCaller(t, "BeforeClusterCreate", got.body)
	if out.GetStatus() != runtimehooksv1.ResponseStatusFailure ||
		!strings.Contains(out.GetMessage(), "no more clusters") {
		t.Errorf("status %q, message %q", out.GetStatus(), out.GetMessage())
	}
}

// One bad handler under Fail fails the aggregate and is named; under Ignore the message names it.
func TestFaultsInAnAggregate(t *testing.T) {
	process.Program(t, gatewayVariable)
	for name, ignore := range map[string]bool{"Fail": false, "Ignore": true} {
		t.Run(name, func(t *testing.T) {
			a := newAuthority(t)
			s := startStub(t, a)
			s.serve("BeforeClusterCreate", "a-good", handlerOptions{},
				say(`{"status":"Success","message":"one","retryAfterSeconds":20}`))
			s.serve("BeforeClusterCreate", "b-bad", handlerOptions{ignore: ignore},
				say(`{"status":"Success","retryAfterSeconds":5,`))
			s.serve("BeforeClusterCreate", "c-good", handlerOptions{},
				say(`{"status":"Success","message":"two","retryAfterSeconds":0}`))
			g := startGateway(t, a, map[string]string{"s.yaml": registration{name: "s", url: s.server.URL}.manifest(a)})
			g.awaitHandler(t, "ready--s")
			got := g.post(t, path("BeforeClusterCreate", "beforeclustercreate"), samples.S())
			if !ignore {
				if message := checkFailure(t, "BeforeClusterCreate", got, http.StatusBadGateway); !strings.Contains(message, "b-bad.s") {
					t.Errorf("message %q does not name b-bad.s", message)
				}
				return
			}
			out := asCaller(t, "BeforeClusterCreate", got.body).(*runtimehooksv1.BeforeClusterCreateResponse)
			if got.code != http.StatusOK || out.Message != `one, ignored: handler "b-bad.s": BadResponse, two` || out.RetryAfterSeconds != 20 {
				t.Errorf("status %d: %s", got.code, got.body)
			}
		})
	}
}

func TestDeadlineOfTheCaller(t *testing.T) {
	process.Program(t, gatewayVariable)
	a := newAuthority(t)
	s := startStub(t, a)
	s.serve("BeforeClusterCreate", "patient", handlerOptions{timeout: 30}, hang)
	g := startGateway(t, a, map[string]string{"s.yaml": registration{name: "s", url: s.server.URL}.manifest(a)})
	g.awaitHandler(t, "ready--s")
	began := time.Now()
	checkFailure(t, "BeforeClusterCreate", g.post(t, path("BeforeClusterCreate", "patient.s")+"?timeout=500ms",
		samples.S()), http.StatusGatewayTimeout)
	if took := time.Since(began); took > soonerThanTheMaximum {
		t.Errorf("took %s with ?timeout=500ms", took)
	}
}

// Handlers of a lifecycle hook are called concurrently; otherwise ten slow ones would need ten times as long.
func TestHandlersAreCalledAtTheSameTime(t *testing.T) {
	process.Program(t, gatewayVariable)
	a := newAuthority(t)
	s := startStub(t, a)
	const n = 5
	arrived, all := make(chan struct{}, n), make(chan struct{})
	for i := range n {
		s.serve("BeforeClusterCreate", "together-"+string(rune('a'+i)), handlerOptions{timeout: 30}, func(w http.ResponseWriter, r *http.Request) {
			arrived <- struct{}{}
			select {
			case <-all:
				success("")(w, r)
			case <-r.Context().Done():
			}
		})
	}
	g := startGateway(t, a, map[string]string{"s.yaml": registration{name: "s", url: s.server.URL}.manifest(a)})
	g.awaitHandler(t, "ready--s")
	go func() {
		for range n {
			<-arrived
		}
		close(all) // only when every handler has been called does any of them answer
	}()
	if got := g.post(t, path("BeforeClusterCreate", ""), samples.S()); got.code != http.StatusOK {
		t.Errorf("status %d: %s", got.code, got.body)
	}
}
