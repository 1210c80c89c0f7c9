// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"

	"k8s.io/utils/ptr"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/hookgate/hookgate/test/process"
	"github.com/hookgate/hookgate/test/samples"
)

// The tests in this file are named after mistakes that Cluster API's own client, registry or server make today, as far as
// they can be seen from outside. Some are met elsewhere in this package too; here each has a test of its own.

// startStubs starts a gateway with one stub, "s", that prepare has filled.
func startStubs(t *testing.T, prepare func(*stub), flags ...string) (*gateway, *stub) {
	t.Helper()
	process.Program(t, gatewayVariable)
	a := newAuthority(t)
	s := startStub(t, a)
	prepare(s)
	g := startGateway(t, a, map[string]string{"s.yaml": registration{name: "s", url: s.server.URL}.manifest(a)}, flags...)
	g.awaitHandler(t, "ready--s")
	return g, s
}

// Ignore is for calls that could not be completed; it must not swallow every error there is.
func TestTrap01IgnoreSwallowsEverything(t *testing.T) {
	g, s := startStubs(t, func(s *stub) {
		s.serve("BeforeClusterCreate", "refuses", handlerOptions{ignore: true}, say(`{"status":"Failure","message":"no","retryAfterSeconds":0}`))
		s.serve("BeforeClusterUpgrade", "broken", handlerOptions{ignore: true}, say(`{`))
	})
	t.Run("bad request", func(t *testing.T) {
		checkFailure(t, "BeforeClusterCreate", g.post(t, path("BeforeClusterCreate", "refuses.s"), []byte(`{"settings":1}`)), http.StatusBadRequest)
	})
	t.Run("unknown handler", func(t *testing.T) {
		checkFailure(t, "BeforeClusterCreate", g.post(t, path("BeforeClusterCreate", "nobody.s"), samples.S()), http.StatusNotFound)
	})
	t.Run("handler of another hook", func(t *testing.T) {
		checkFailure(t, "BeforeClusterCreate", g.post(t, path("BeforeClusterCreate", "broken.s"), samples.S()), http.StatusNotFound)
	})
	t.Run("Failure of the extension", func(t *testing.T) {
		for _, handler := range []string{"refuses.s", "beforeclustercreate", ""} {
			got := g.post(t, path("BeforeClusterCreate", handler), samples.S())
			if out := asCaller(t, "BeforeClusterCreate", got.body); out.GetStatus() != runtimehooksv1.ResponseStatusFailure {
				t.Errorf("handler %q: %s", handler, got.body)
			}
		}
	})
	t.Run("call that could not be completed", func(t *testing.T) {
		got := g.post(t, path("BeforeClusterUpgrade", "broken.s"), samples.Body("BeforeClusterUpgrade"))
		if out := asCaller(t, "BeforeClusterUpgrade", got.body); got.code != http.StatusOK || out.GetStatus() != runtimehooksv1.ResponseStatusSuccess {
			t.Errorf("status %d: %s", got.code, got.body)
		}
	})
	if s.count("BeforeClusterUpgrade", "broken") == 0 {
		t.Error("the handler under Ignore was never called")
	}
}

// An answer that breaks off must not leave half of itself behind: a stray retryAfterSeconds would still block.
func TestTrap02IgnoreReturnsAHalfDecodedAnswer(t *testing.T) {
	g, _ := startStubs(t, func(s *stub) {
		s.serve("BeforeClusterCreate", "half", handlerOptions{ignore: true}, say(`{"status":"Failure","retryAfterSeconds":30,"message":"stray","unknown":1,"handlers":[`))
		s.serve("GeneratePatches", "half-patches", handlerOptions{ignore: true}, say(`{"status":"Success","items":[{"uid":"u","patchType":"JSONPatch","patch":"W10="},{"uid":7`))
	})
	for _, handler := range []string{"half.s", "beforeclustercreate"} {
		got := g.post(t, path("BeforeClusterCreate", handler), samples.S())
		out := asCaller(t, "BeforeClusterCreate", got.body).(*runtimehooksv1.BeforeClusterCreateResponse)
		if got.code != http.StatusOK || out.Status != runtimehooksv1.ResponseStatusSuccess || out.RetryAfterSeconds != 0 || strings.Contains(out.Message, "stray") {
			t.Errorf("handler %s: %s", handler, got.body)
		}
	}
	got := g.post(t, path("GeneratePatches", "half-patches.s"), samples.Body("GeneratePatches"))
	if out := asCaller(t, "GeneratePatches", got.body).(*runtimehooksv1.GeneratePatchesResponse); got.code != http.StatusOK || len(out.Items) != 0 {
		t.Errorf("status %d: %s", got.code, got.body)
	}
}

// The text of an aggregate is in the order of names, whoever answers first.
func TestTrap03OrderOfHandlersComesOutOfAMap(t *testing.T) {
	turn := make(chan struct{}, 1)
	turn <- struct{}{}
	var want []string
	g, _ := startStubs(t, func(s *stub) {
		for _, name := range []string{"m", "c", "z", "a", "k", "b", "y"} {
			want = append(want, "from "+name)
			s.serve("BeforeClusterCreate", name, handlerOptions{}, func(w http.ResponseWriter, r *http.Request) {
				<-turn // one after the other, in the order in which they happen to arrive
				success("from "+name)(w, r)
				turn <- struct{}{}
			})
		}
	})
	slices.Sort(want)
	for range 30 {
		got := g.post(t, path("BeforeClusterCreate", ""), samples.S())
		if out := asCaller(t, "BeforeClusterCreate", got.body); out.GetMessage() != strings.Join(want, ", ") {
			t.Fatalf("message %q, want %q", out.GetMessage(), strings.Join(want, ", "))
		}
	}
	t.Run("failures", func(t *testing.T) {
		g, _ := startStubs(t, func(s *stub) {
			for _, name := range []string{"m", "c", "z", "a"} {
				s.serve("BeforeClusterCreate", name, handlerOptions{}, say(`{"status":"Failure","message":"no `+name+`","retryAfterSeconds":0}`))
			}
		})
		first := g.post(t, path("BeforeClusterCreate", ""), samples.S())
		for range 30 {
			if again := g.post(t, path("BeforeClusterCreate", ""), samples.S()); !bytes.Equal(first.body, again.body) {
				t.Fatalf("several failures make a text that changes:\n%s\n%s", first.body, again.body)
			}
		}
	})
}

// The list of handlers is sorted, and the same from call to call and from replica to replica.
func TestTrap04OrderOfDiscoveryComesOutOfAMap(t *testing.T) {
	process.Program(t, gatewayVariable)
	a := newAuthority(t)
	e := startExtension(t, a, "north", "0")
	manifests := map[string]string{"hub.yaml": registration{name: "hub", url: e.url}.manifest(a), "b.yaml": registration{name: "branch", url: e.url}.manifest(a)}
	var first []byte
	for replica := range 2 {
		g := startGateway(t, a, manifests)
		g.awaitHandler(t, "patches--hub")
		g.awaitHandler(t, "patches--branch")
		for range 10 {
			got, handlers := g.discovery(t)
			if first == nil {
				first = got.body
			}
			if !bytes.Equal(got.body, first) {
				t.Fatalf("replica %d: discovery differs:\n%s\n%s", replica, first, got.body)
			}
			if !slices.IsSortedFunc(handlers, func(x, y runtimehooksv1.ExtensionHandler) int { return strings.Compare(x.Name, y.Name) }) {
				t.Fatalf("discovery is not sorted by name: %s", got.body)
			}
		}
	}
}

// The limit holds for answers with status 200 too, and for what they decompress to.
func TestTrap05SizeLimitOnlyForErrors(t *testing.T) {
	g, _ := startStubs(t, func(s *stub) {
		s.serve("BeforeClusterCreate", "huge", handlerOptions{timeout: 20}, huge(64<<20))
		s.serve("BeforeClusterCreate", "fits", handlerOptions{timeout: 20}, huge(19<<20))
		bomb := compress(t, io.MultiReader(strings.NewReader(`{"status":"Success","retryAfterSeconds":0,"message":"`), io.LimitReader(letters{}, 64<<20), strings.NewReader(`"}`)))
		s.serve("BeforeClusterCreate", "bomb", handlerOptions{timeout: 20}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb)
		})
	})
	for _, handler := range []string{"huge", "bomb"} {
		t.Run(handler, func(t *testing.T) {
			checkFailure(t, "BeforeClusterCreate", g.post(t, path("BeforeClusterCreate", handler+".s"), samples.S()), http.StatusBadGateway)
		})
	}
	t.Run("fits", func(t *testing.T) {
		if got := g.post(t, path("BeforeClusterCreate", "fits.s"), samples.S()); got.code != http.StatusOK || len(got.body) < 19<<20 {
			t.Errorf("status %d, %d bytes", got.code, len(got.body))
		}
	})
}

// One extension that is down, one that answers rubbish and one whose manifest is bad hurt nobody else.
func TestTrap10WarmUpIsAllOrNothing(t *testing.T) {
	process.Program(t, gatewayVariable)
	a, stranger := newAuthority(t), newAuthority(t)
	good, rubbish, untrusted := startStub(t, a), startStub(t, a), startStub(t, stranger)
	rubbish.answers[path("Discovery", "")] = say("<html>")
	g := startGateway(t, a, map[string]string{
		"a-down.yaml":      registration{name: "down", url: "https://127.0.0.1:" + freePort(t)}.manifest(a),
		"b-rubbish.yaml":   registration{name: "rubbish", url: rubbish.server.URL}.manifest(a),
		"c-untrusted.yaml": registration{name: "untrusted", url: untrusted.server.URL}.manifest(a),
		"d-broken.yaml":    "kind: [",
		"e-good.yaml":      registration{name: "good", url: good.server.URL}.manifest(a),
	})
	g.awaitHandler(t, "ready--good")
	_, handlers := g.discovery(t)
	for _, h := range handlers {
		if strings.Contains(h.Name, "--") && h.Name != "ready--good" {
			t.Errorf("handler %q of an extension that was never discovered", h.Name)
		}
	}
	for _, name := range []string{"down", "rubbish", "untrusted"} {
		g.Expect(t, regexp.QuoteMeta(name)) // each is reported
	}
	select {
	case <-g.Exited():
		t.Error("the gateway ended")
	default:
	}
}

// An extension that is upgraded behind the same URL gets its new handlers known.
func TestTrap11DiscoveryIsNotRepeated(t *testing.T) {
	g, s := startStubs(t, func(*stub) {}, "--resync", "200ms")
	s.serve("GeneratePatches", "new", handlerOptions{}, say(`{"status":"Success"}`))
	g.awaitHandler(t, "new--s")
}

// Names that differ only in case would share one path.
func TestTrap12NamesThatDifferOnlyInCase(t *testing.T) {
	process.Program(t, gatewayVariable)
	a := newAuthority(t)
	good, colliding := startStub(t, a), startStub(t, a)
	colliding.serve("GeneratePatches", "patch", handlerOptions{}, say(`{"status":"Success"}`))
	colliding.serve("GeneratePatches", "Patch", handlerOptions{}, say(`{"status":"Success"}`))
	g := startGateway(t, a, map[string]string{
		"colliding.yaml": registration{name: "colliding", url: colliding.server.URL}.manifest(a),
		"good.yaml":      registration{name: "good", url: good.server.URL}.manifest(a),
	})
	g.awaitHandler(t, "ready--good")
	g.Expect(t, `Patch`) // the log tells which name it is
	for _, name := range []string{"patch--colliding", "ready--colliding"} {
		if g.offers(t, name) {
			t.Errorf("handler %s is offered", name)
		}
	}
}

// Metrics carry the handler, and ignored failures are counted.
func TestTrap14MetricsCarryNoHandler(t *testing.T) {
	g, _ := startStubs(t, func(s *stub) {
		s.serve("BeforeClusterCreate", "good", handlerOptions{}, success(""))
		s.serve("BeforeClusterCreate", "ignored", handlerOptions{ignore: true}, say(`<html>`))
	})
	const calls = 3
	for range calls {
		if got := g.post(t, path("BeforeClusterCreate", ""), samples.S()); got.code != http.StatusOK {
			t.Fatalf("status %d: %s", got.code, got.body)
		}
	}
	text := g.metrics(t)
	for what, pattern := range map[string]string{
		"calls of the good handler":       `(?m)^hookgate_handler_calls_total\{[^}]*handler="good\.s"[^}]*outcome="success"[^}]*\} %d$`,
		"ignored calls":                   `(?m)^hookgate_handler_calls_total\{[^}]*handler="ignored\.s"[^}]*kind="BadResponse"[^}]*outcome="ignored"[^}]*\} %d$`,
		"ignored failures":                `(?m)^hookgate_handler_ignored_failures_total\{[^}]*handler="ignored\.s"[^}]*\} %d$`,
		"duration of the good handler":    `(?m)^hookgate_handler_call_duration_seconds_count\{[^}]*handler="good\.s"[^}]*\} %d$`,
		"duration of the ignored handler": `(?m)^hookgate_handler_call_duration_seconds_count\{[^}]*handler="ignored\.s"[^}]*\} %d$`,
	} {
		if !regexp.MustCompile(fmt.Sprintf(pattern, calls)).MatchString(text) {
			t.Errorf("%s: nothing in /metrics matches %s", what, fmt.Sprintf(pattern, calls))
		}
	}
}

// What an extension writes into an error goes to the log, where the call id finds it, and not into conditions.
func TestTrap15BodyOfAnErrorReachesConditions(t *testing.T) {
	const body = "panic: runtime error at 2026-03-02T08:14:55Z, request 7f3a, token hunter2"
	g, _ := startStubs(t, func(s *stub) {
		s.serve("BeforeClusterCreate", "broken", handlerOptions{}, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, body, http.StatusInternalServerError) })
	})
	for _, handler := range []string{"broken.s", "beforeclustercreate", ""} {
		got := g.post(t, path("BeforeClusterCreate", handler), samples.S())
		message := checkFailure(t, "BeforeClusterCreate", got, http.StatusBadGateway)
		if strings.Contains(message, "hunter2") || strings.Contains(message, "7f3a") {
			t.Errorf("message %q", message)
		}
		if !strings.Contains(message, "500") {
			t.Errorf("message %q does not tell the status code", message)
		}
	}
	// The caller gets the id under which the log has the whole story.
	id := g.post(t, path("BeforeClusterCreate", "broken.s"), samples.S()).header.Get("Hookgate-Call-Id")
	if id == "" {
		t.Fatal("no Hookgate-Call-Id in the answer")
	}
	g.Expect(t, `(?m)^.*`+regexp.QuoteMeta(id)+`.*7f3a.*$`)
}

// A registration that cannot be used leaves what was known before in place.
func TestTrap16ABadUpdateRemovesTheOldEntries(t *testing.T) {
	g, s := startStubs(t, func(s *stub) {
		s.serve("GeneratePatches", "patch", handlerOptions{}, say(`{"status":"Success"}`))
	}, "--resync", "200ms")
	g.awaitHandler(t, "patch--s")
	served := make(chan struct{}, 1024)
	bad, err := json.Marshal(runtimehooksv1.DiscoveryResponse{
		CommonResponse: runtimehooksv1.CommonResponse{Status: runtimehooksv1.ResponseStatusSuccess},
		Handlers: []runtimehooksv1.ExtensionHandler{{
			Name: "other", TimeoutSeconds: ptr.To[int32](3600),
			RequestHook: runtimehooksv1.GroupVersionHook{APIVersion: runtimehooksv1.GroupVersion.String(), Hook: "GeneratePatches"},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	s.answers[path("Discovery", "")] = func(w http.ResponseWriter, r *http.Request) {
		say(string(bad))(w, r)
		served <- struct{}{}
	}
	s.mu.Unlock()
	for range 3 { // with the third, the first has been judged
		<-served
	}
	t.Run("a discovery that is refused", func(t *testing.T) {
		if !g.offers(t, "patch--s") || g.offers(t, "other--s") {
			t.Error("the old handlers are gone, or the bad one is there")
		}
	})
	t.Run("a manifest that is refused", func(t *testing.T) {
		g.write(t, "s.yaml", "apiVersion: runtime.cluster.x-k8s.io/v1beta2\nkind: ExtensionConfig\nmetadata:\n  name: s\nspec:\n  clientConfig:\n    url: ftp://nowhere\n")
		g.Expect(t, `s\.yaml:7\b`)
		if !g.offers(t, "patch--s") {
			t.Error("the old handlers are gone")
		}
		if got := g.post(t, path("GeneratePatches", "patch--s"), samples.Body("GeneratePatches")); got.code != http.StatusOK {
			t.Errorf("status %d: %s", got.code, got.body)
		}
	})
}
