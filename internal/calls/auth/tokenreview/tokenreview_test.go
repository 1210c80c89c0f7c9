// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tokenreview_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/auth/tokenreview"
	"github.com/hookgate/hookgate/internal/calls/auth/tokenreview/tokenreviewtest"
)

// inMemory answers requests without a network, so that time in a bubble can pass.
type inMemory struct {
	http.Handler
	wait <-chan struct{} // nil for none
}

func (t inMemory) RoundTrip(r *http.Request) (*http.Response, error) {
	if t.wait != nil {
		select {
		case <-t.wait:
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	w := httptest.NewRecorder()
	t.ServeHTTP(w, r)
	return w.Result(), nil
}

func newServer() *tokenreviewtest.APIServer {
	discovery := hookOf("Discovery").Path("")
	return &tokenreviewtest.APIServer{
		Users:    map[string]string{"manager": "system:serviceaccount:a:manager", "stranger": "system:serviceaccount:a:stranger", "barred": "barred"},
		Audience: "hookgate", Allowed: map[string][]string{"system:serviceaccount:a:manager": {discovery}, "barred": {discovery}},
		Denied: map[string][]string{"barred": {discovery}},
	}
}

func newReviewer(t *testing.T, transport http.RoundTripper, audiences ...string) *tokenreview.Reviewer {
	t.Helper()
	config := &rest.Config{Host: "https://api.example", ContentConfig: rest.ContentConfig{ContentType: "application/json"}}
	r, err := tokenreview.New(config, &http.Client{Transport: transport}, audiences)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func hookOf(name string) *catalog.Hook {
	h, _ := catalog.New().ByName(name)
	return h
}

func TestReview(t *testing.T) {
	const (
		notAccepted = "the API server does not accept the token: it may have expired, or be for another audience"
		noAnswer    = "the token could not be checked, because the API server did not answer: try again"
		mayNotCheck = "the gateway may not check tokens: allow its service account to create tokenreviews and subjectaccessreviews"
	)
	forbidden := func(user, hookName string) string {
		return fmt.Sprintf("user %q may not call this hook: bind a ClusterRole that has the verb post on the nonResourceURL %s", user, hookOf(hookName).Path(""))
	}
	for name, tt := range map[string]struct {
		token     string
		hook      string // none if empty
		audiences []string
		status    int
		kind      hook.Kind // Internal for none
		want      string
	}{
		"Allowed":       {token: "manager", hook: "Discovery"},
		"OtherHook":     {token: "manager", hook: "GeneratePatches", kind: hook.Forbidden, want: forbidden("system:serviceaccount:a:manager", "GeneratePatches")},
		"NoHook":        {token: "stranger"},
		"Stranger":      {token: "stranger", hook: "Discovery", kind: hook.Forbidden, want: forbidden("system:serviceaccount:a:stranger", "Discovery")},
		"Barred":        {token: "barred", hook: "Discovery", kind: hook.Forbidden, want: forbidden("barred", "Discovery")},
		"Unknown":       {token: "x", hook: "Discovery", kind: hook.Unauthenticated, want: notAccepted},
		"Audience":      {token: "manager", hook: "Discovery", audiences: []string{"other", "hookgate"}},
		"OtherAudience": {token: "manager", hook: "Discovery", audiences: []string{"other"}, kind: hook.Unauthenticated, want: notAccepted},
		"Down":          {token: "manager", hook: "Discovery", status: http.StatusInternalServerError, kind: hook.NotReady, want: noAnswer},
		"Forbidden":     {token: "manager", hook: "Discovery", status: http.StatusForbidden, kind: hook.NotReady, want: mayNotCheck},
	} {
		t.Run(name, func(t *testing.T) {
			server := newServer()
			server.Status = tt.status
			var h *catalog.Hook
			if tt.hook != "" {
				h = hookOf(tt.hook)
			}
			user, err := newReviewer(t, inMemory{Handler: server}, tt.audiences...).Review(t.Context(), tt.token, h)
			if err == nil && user != server.Users[tt.token] {
				t.Errorf("got the user %q", user)
			}
			if (err != nil) != (tt.kind != hook.Internal) || err != nil && (hook.KindOf(err) != tt.kind || err.Error() != tt.want) {
				t.Errorf("got %v, %v, want %v, %s", hook.KindOf(err), err, tt.kind, tt.want)
			}
		})
	}
}

// TestAnswersAreKeptBriefly tests that the same question is asked once in the lifetime of an answer, be it yes or no,
// that a revoked token counts until then and no longer, and that an outage is no answer.
func TestAnswersAreKeptBriefly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := newServer()
		r := newReviewer(t, inMemory{Handler: server})
		ask := func(token string) error {
			_, err := r.Review(t.Context(), token, hookOf("Discovery"))
			return err
		}
		asked := func() (tokens, access int) {
			server.Set(func(s *tokenreviewtest.APIServer) { tokens, access = s.TokenReviews, s.AccessReviews })
			return tokens, access
		}
		for range 3 {
			if err := ask("manager"); err != nil {
				t.Fatal(err)
			}
			if hook.KindOf(ask("stranger")) != hook.Forbidden || hook.KindOf(ask("x")) != hook.Unauthenticated {
				t.Fatal("a stranger was admitted")
			}
		}
		if tokens, access := asked(); tokens != 3 || access != 2 {
			t.Errorf("%d TokenReviews and %d SubjectAccessReviews, want 3 and 2", tokens, access)
		}
		server.Set(func(s *tokenreviewtest.APIServer) { s.Users = nil })
		time.Sleep(limits.ReviewLifetime)
		if err := ask("manager"); err != nil {
			t.Errorf("at the end of the answer's lifetime: %v", err)
		}
		time.Sleep(time.Nanosecond)
		if hook.KindOf(ask("manager")) != hook.Unauthenticated {
			t.Error("a revoked token counts after the lifetime of the answer")
		}
		time.Sleep(limits.ReviewLifetime + 1)
		server.Set(func(s *tokenreviewtest.APIServer) { s.Status = http.StatusServiceUnavailable })
		if hook.KindOf(ask("manager")) != hook.NotReady {
			t.Error("an outage is taken for an answer")
		}
		server.Set(func(s *tokenreviewtest.APIServer) { s.Status, s.Users = 0, newServer().Users })
		if err := ask("manager"); err != nil {
			t.Errorf("after the outage: %v", err)
		}
	})
}

// TestQuestionsAtOnce tests that callers share the answer to the same question alone, be it of a caller who has left: not
// that about another hook, nor that about another token.
func TestQuestionsAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan struct{})
		server := newServer()
		r := newReviewer(t, inMemory{Handler: server, wait: answers})
		impatient, leave := context.WithCancel(t.Context())
		var asking sync.WaitGroup
		ask := func(ctx context.Context, token, hookName string, want hook.Kind) {
			asking.Go(func() {
				_, err := r.Review(ctx, token, hookOf(hookName))
				if want == hook.Internal && err != nil || want != hook.Internal && hook.KindOf(err) != want {
					t.Errorf("%s of %s: got %v, want %s, or none for Internal", hookName, token, err, want)
				}
			})
			synctest.Wait()
		}
		ask(impatient, "manager", "Discovery", hook.NotReady)
		ask(t.Context(), "manager", "Discovery", hook.Internal)
		ask(t.Context(), "manager", "GeneratePatches", hook.Forbidden)
		ask(t.Context(), "stranger", "Discovery", hook.Forbidden)
		leave()
		for range 2 { // who has the two tokens, and then what they may
			synctest.Wait()
			answers <- struct{}{}
		}
		synctest.Wait()
		close(answers)
		asking.Wait()
		if server.TokenReviews != 2 || server.AccessReviews != 3 {
			t.Errorf("%d TokenReviews and %d SubjectAccessReviews, want 2 and 3", server.TokenReviews, server.AccessReviews)
		}
	})
}

// TestQuestionsAreBounded tests that callers with ever new tokens wait for a hanging API server up to a number and a
// time, and that one caller who leaves takes no answer from others.
func TestQuestionsAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		answers := make(chan struct{})
		r := newReviewer(t, inMemory{Handler: newServer(), wait: answers})
		impatient, leave := context.WithCancel(t.Context())
		results := make(chan error, limits.ReviewsWaiting+1)
		var asking sync.WaitGroup
		for i := range limits.ReviewsWaiting {
			ctx, token := t.Context(), "manager"
			switch {
			case i == 0:
				ctx = impatient
			case i > 1:
				token = fmt.Sprint("token-", i)
			}
			asking.Go(func() {
				_, err := r.Review(ctx, token, nil)
				results <- err
			})
		}
		synctest.Wait()
		if _, err := r.Review(t.Context(), "one more", nil); hook.KindOf(err) != hook.Overloaded {
			t.Errorf("one question more: %v, want Overloaded", err)
		}
		leave()
		if err := <-results; hook.KindOf(err) != hook.NotReady {
			t.Errorf("the caller who left: %v", err)
		}
		start := time.Now()
		asking.Wait()
		if took := time.Since(start); took > limits.ReviewTimeout {
			t.Errorf("questions took %s, want at most %s", took, limits.ReviewTimeout)
		}
		close(results)
		for err := range results {
			if hook.KindOf(err) != hook.NotReady || !strings.Contains(err.Error(), "did not answer") {
				t.Errorf("a question without an answer: %v", err)
			}
		}
		close(answers)
		if _, err := r.Review(t.Context(), "manager", nil); err != nil {
			t.Errorf("after the hang: %v", err)
		}
	})
}
