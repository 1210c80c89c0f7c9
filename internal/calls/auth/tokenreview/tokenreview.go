// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tokenreview asks the API server of a cluster who has a token, by a TokenReview, and whether that user may
// call a hook, by a SubjectAccessReview for the verb post on the path of the hook. RBAC thus decides for each hook.
//
// Answers are kept for a few seconds only, so that revoked tokens and roles stop to count soon. If the API server does
// not answer, no caller with a token is admitted.
package tokenreview

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"slices"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/cache"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/rest"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/auth"
)

var _ auth.Reviewer = (*Reviewer)(nil)

// Reviewer asks the API server. It is safe for concurrent use.
type Reviewer struct {
	tokens    authenticationclient.TokenReviewInterface
	access    authorizationclient.SubjectAccessReviewInterface
	audiences []string

	answers *cache.LRUExpireCache // of question to *answer
	asking  singleflight.Group    // the same question is asked once
	waiting *semaphore.Weighted   // bounds the questions that are asked at the same time
}

// question is a token, by its digest, and the path that its owner wants to post to; empty for none in particular.
type question struct {
	token [sha256.Size]byte
	path  string
}

// answer is who asks, and an error if that user may not.
type answer struct {
	user authenticationv1.UserInfo
	err  *hook.Error
}

// New returns a Reviewer that asks the API server of config. With audiences, a token must be for one of them; without,
// for the API server itself. It does no I/O.
func New(config *rest.Config, client *http.Client, audiences []string) (*Reviewer, error) {
	config = rest.CopyConfig(config)
	// Callers must not use up the requests with which the gateway follows its registrations.
	config.QPS, config.Burst = limits.ReviewsPerSecond, limits.ReviewsPerSecond
	tokens, err := authenticationclient.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	access, err := authorizationclient.NewForConfigAndClient(config, client)
	if err != nil {
		return nil, err
	}
	return &Reviewer{
		tokens: tokens.TokenReviews(), access: access.SubjectAccessReviews(), audiences: audiences,
		answers: cache.NewLRUExpireCache(limits.ReviewsKept), waiting: semaphore.NewWeighted(limits.ReviewsWaiting),
	}, nil
}

// Review returns the user who has the token, if that user may call h; a nil h asks for the user alone.
func (r *Reviewer) Review(ctx context.Context, token string, h *catalog.Hook) (string, error) {
	q := question{token: sha256.Sum256([]byte(token))}
	who, err := r.ask(ctx, q, func(ctx context.Context) (*answer, error) { return r.authenticate(ctx, token) })
	if err != nil || who.err != nil {
		return "", orNil(err, who)
	}
	if h == nil {
		return who.user.Username, nil
	}
	q.path = h.Path("")
	may, err := r.ask(ctx, q, func(ctx context.Context) (*answer, error) { return r.authorize(ctx, who.user, q.path) })
	return who.user.Username, orNil(err, may)
}

// orNil returns err, or else the error of the answer, without making a nil *hook.Error a non-nil error.
func orNil(err error, a *answer) error {
	switch {
	case err != nil:
		return err
	case a.err != nil:
		return a.err
	}
	return nil
}

// ask returns the answer to a question: the one that is kept, or a new one of the API server.
func (r *Reviewer) ask(
	ctx context.Context, q question, review func(context.Context) (*answer, error),
) (*answer, error) {
	if kept, ok := r.answers.Get(q); ok {
		if a, ok := kept.(*answer); ok {
			return a, nil
		}
	}
	if !r.waiting.TryAcquire(1) {
		return nil, hook.Errorf(hook.Overloaded, "too many tokens are being checked: try again").
			WithRetryAfter(time.Second)
	}
	defer r.waiting.Release(1)
	// The question of one caller is answered for all that have it, so that it does not end with the first of them.
	asked := r.asking.DoChan(string(q.token[:])+q.path, func() (any, error) {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), limits.ReviewTimeout)
		defer cancel()
		a, err := review(ctx)
		if err != nil {
			return nil, unavailable(err)
		}
		r.answers.Add(q, a, limits.ReviewLifetime)
		return a, nil
	})
	select {
	case result := <-asked:
		if result.Err != nil {
			return nil, result.Err
		}
		a, ok := result.Val.(*answer)
		if !ok {
			return nil, unavailable(fmt.Errorf("unexpected answer %T", result.Val))
		}
		return a, nil
	case <-ctx.Done():
		return nil, unavailable(context.Cause(ctx))
	}
}

// unavailable returns the error of a question that the API server has not answered.
func unavailable(cause error) error {
	text := "the token could not be checked, because the API server did not answer: try again"
	if apierrors.IsForbidden(cause) || apierrors.IsUnauthorized(cause) {
		text = "the gateway may not check tokens: allow its service account to create tokenreviews and " +
			"subjectaccessreviews"
	}
	return hook.Errorf(hook.NotReady, "%s", text).WithCause(cause)
}

// authenticate asks who has the token.
func (r *Reviewer) authenticate(ctx context.Context, token string) (*answer, error) {
	review, err := r.tokens.Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: r.audiences},
	}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	status := &review.Status
	refused := hook.Errorf(hook.Unauthenticated,
		"the API server does not accept the token: it may have expired, or be for another audience")
	switch {
	case !status.Authenticated:
		if status.Error != "" {
			refused.Cause = fmt.Errorf("TokenReview: %s", status.Error)
		}
		return &answer{err: refused}, nil
	case len(r.audiences) > 0 && !slices.ContainsFunc(status.Audiences, r.isOurs):
		// An API server that does not know audiences returns none: the token may be for anything.
		return &answer{err: refused}, nil
	}
	return &answer{user: status.User}, nil
}

func (r *Reviewer) isOurs(audience string) bool { return slices.Contains(r.audiences, audience) }

// authorize asks whether the user may post to the path.
func (r *Reviewer) authorize(ctx context.Context, user authenticationv1.UserInfo, path string) (*answer, error) {
	spec := authorizationv1.SubjectAccessReviewSpec{
		User: user.Username, UID: user.UID, Groups: user.Groups, Extra: map[string]authorizationv1.ExtraValue{},
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: path, Verb: "post"},
	}
	for key, values := range user.Extra {
		spec.Extra[key] = authorizationv1.ExtraValue(values)
	}
	review, err := r.access.Create(ctx, &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	if !review.Status.Allowed || review.Status.Denied {
		return &answer{user: user, err: hook.Errorf(hook.Forbidden,
			"user %q may not call this hook: bind a ClusterRole that has the verb post on the nonResourceURL %s",
			auth.DisplayName(user.Username), path)}, nil
	}
	return &answer{user: user}, nil
}
