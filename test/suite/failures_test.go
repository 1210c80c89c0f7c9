// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"

	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/hookgate/hookgate/test/samples"
)

// Ignore covers calls that could not be completed; every other error still reaches the caller.
func TestIgnoreHidesOnlyCallsThatCouldNotBeCompleted(t *testing.T) {
	g, s := startStubs(t, func(s *stub) {
		s.serve("BeforeClusterCreate", "refuses", handlerOptions{ignore: true},
			say(`{"status":"Failure","message":"no","retryAfterSeconds":0}`))
		s.serve("BeforeClusterUpgrade", "broken", handlerOptions{ignore: true}, say(`{`))
	})
	t.Run("bad request", func(t *testing.T) {
		checkFailure(t, "BeforeClusterCreate", g.post(t, path("BeforeClusterCreate", "refuses.s"),
			[]byte(`{"settings":1}`)), http.StatusBadRequest)
	})
	t.Run("unknown handler", func(t *testing.T) {
		checkFailure(t, "BeforeClusterCreate", g.post(t, path("BeforeClusterCreate", "nobody.s"), samples.S()),
			http.StatusNotFound)
	})
	t.Run("handler of another hook", func(t *testing.T) {
		checkFailure(t, "BeforeClusterCreate", g.post(t, path("BeforeClusterCreate", "broken.s"), samples.S()),
			http.StatusNotFound)
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
		if out := asCaller(t, "BeforeClusterUpgrade", got.body); got.code != http.StatusOK ||
			out.GetStatus() != runtimehooksv1.ResponseStatusSuccess {
			t.Errorf("status %d: %s", got.code, got.body)
		}
	})
	if s.count("BeforeClusterUpgrade", "broken") == 0 {
		t.Error("the handler under Ignore was never called")
	}
}

// A truncated response must leave nothing behind: a stray retryAfterSeconds would still block.
func TestIgnoreDropsHalfDecodedResponses(t *testing.T) {
	g, _ := startStubs(t, func(s *stub) {
		s.serve("BeforeClusterCreate", "half", handlerOptions{ignore: true},
			say(`{"status":"Failure","retryAfterSeconds":30,"message":"stray","unknown":1,"handlers":[`))
		s.serve("GeneratePatches", "half-patches", handlerOptions{ignore: true},
			say(`{"status":"Success","items":[{"uid":"u","patchType":"JSONPatch","patch":"W10="},{"uid":7`))
	})
	for _, handler := range []string{"half.s", "beforeclustercreate"} {
		got := g.post(t, path("BeforeClusterCreate", handler), samples.S())
		out := asCaller(t, "BeforeClusterCreate", got.body).(*runtimehooksv1.BeforeClusterCreateResponse)
		if got.code != http.StatusOK || out.Status != runtimehooksv1.ResponseStatusSuccess ||
			out.RetryAfterSeconds != 0 || strings.Contains(out.Message, "stray") {
			t.Errorf("handler %s: %s", handler, got.body)
		}
	}
	got := g.post(t, path("GeneratePatches", "half-patches.s"), samples.Body("GeneratePatches"))
	if out := asCaller(t, "GeneratePatches", got.body).(*runtimehooksv1.GeneratePatchesResponse); got.code != http.StatusOK || len(out.Items) != 0 {
		t.Errorf("status %d: %s", got.code, got.body)
	}
}

// The size limit also holds for responses with status 200, and for their decompressed size.
func TestSizeLimitHoldsForSuccessfulResponses(t *testing.T) {
	g, _ := startStubs(t, func(s *stub) {
		s.serve("BeforeClusterCreate", "huge", handlerOptions{timeout: 30}, huge(64<<20))
		s.serve("BeforeClusterCreate", "fits", handlerOptions{timeout: 30}, huge(19<<20))
		bomb := compress(t, io.MultiReader(strings.NewReader(`{"status":"Success","retryAfterSeconds":0,"message":"`),
			io.LimitReader(letters{}, 64<<20), strings.NewReader(`"}`)))
		s.serve("BeforeClusterCreate", "bomb", handlerOptions{timeout: 30}, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = w.Write(bomb)
		})
	})
	for _, handler := range []string{"huge", "bomb"} {
		t.Run(handler, func(t *testing.T) {
			checkFailure(t, "BeforeClusterCreate", g.post(t, path("BeforeClusterCreate", handler+".s"), samples.S()),
				http.StatusBadGateway)
		})
	}
	t.Run("fits", func(t *testing.T) {
		if got := g.post(t, path("BeforeClusterCreate", "fits.s"), samples.S()); got.code != http.StatusOK ||
			len(got.body) < 19<<20 {
			t.Errorf("status %d, %d bytes", got.code, len(got.body))
		}
	})
}

// The metrics name the handler, and count ignored failures.
func TestMetricsNameTheHandlerAndCountIgnoredFailures(t *testing.T) {
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

// The body of an error response goes to the log, under the call's ID, and never into conditions.
func TestErrorBodiesReachTheLogOnly(t *testing.T) {
	const body = "panic: runtime error at 2026-03-02T08:14:55Z, request 7f3a, token hunter2"
	g, _ := startStubs(t, func(s *stub) {
		s.serve("BeforeClusterCreate", "broken", handlerOptions{},
			func(w http.ResponseWriter, _ *http.Request) { http.Error(w, body, http.StatusInternalServerError) })
	})
	for _, handler := range []string{"broken.s", "beforeclustercreate", ""} {
		got := g.post(t, path("BeforeClusterCreate", handler), samples.S())
		message := checkFailure(t, "BeforeClusterCreate", got, http.StatusBadGateway)
		if strings.Contains(message, "hunter2") || strings.Contains(message, "7f3a") {
			t.Errorf("message %q quotes the body", message)
		}
		if !strings.Contains(message, "500") {
			t.Errorf("message %q lacks the status code", message)
		}
	}
	// The caller gets the ID under which the log has the details.
	id := g.post(t, path("BeforeClusterCreate", "broken.s"), samples.S()).header.Get("Hookgate-Call-Id")
	if id == "" {
		t.Fatal("no Hookgate-Call-Id in the response")
	}
	g.Expect(t, `(?m)^.*`+regexp.QuoteMeta(id)+`.*7f3a.*$`)
}
