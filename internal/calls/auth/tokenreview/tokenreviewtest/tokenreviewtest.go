// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tokenreviewtest has an API server that answers reviews, for tests.
package tokenreviewtest

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// APIServer answers TokenReviews and SubjectAccessReviews over JSON. It is safe for concurrent use. Change its fields
// only before it serves, or by Set.
type APIServer struct {
	mu sync.Mutex
	// Users has the user of each token, and Audience the audience of all tokens.
	Users    map[string]string
	Audience string
	// Allowed has the paths that each user may post to, and Denied those that an authorizer forbids besides.
	Allowed, Denied map[string][]string
	// Status answers every review with this status code, if it is not 0.
	Status int
	// TokenReviews and AccessReviews count what was asked.
	TokenReviews, AccessReviews int
}

// Set changes the server, or reads its counts.
func (s *APIServer) Set(change func(*APIServer)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change(s)
}

// ServeHTTP answers one review.
func (s *APIServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var answer any
	var err error
	switch {
	case strings.HasSuffix(r.URL.Path, "/tokenreviews"):
		s.TokenReviews++
		review := &authenticationv1.TokenReview{}
		err = json.NewDecoder(r.Body).Decode(review)
		s.reviewToken(review)
		answer = review
	case strings.HasSuffix(r.URL.Path, "/subjectaccessreviews"):
		s.AccessReviews++
		review := &authorizationv1.SubjectAccessReview{}
		err = json.NewDecoder(r.Body).Decode(review)
		spec := &review.Spec
		if at := spec.NonResourceAttributes; at != nil && at.Verb == "post" && isWhole(spec) {
			review.Status.Allowed = slices.Contains(s.Allowed[spec.User], at.Path)
			review.Status.Denied = slices.Contains(s.Denied[spec.User], at.Path)
		}
		answer = review
	}
	w.Header().Set("Content-Type", "application/json")
	switch {
	case answer == nil || err != nil:
		w.WriteHeader(http.StatusBadRequest)
		return
	case s.Status != 0:
		w.WriteHeader(s.Status)
		answer = &metav1.Status{
			TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
			Code:   int32(s.Status),
			Reason: map[int]metav1.StatusReason{http.StatusForbidden: metav1.StatusReasonForbidden}[s.Status],
		}
	default:
		w.WriteHeader(http.StatusCreated)
	}
	_ = json.NewEncoder(w).Encode(answer) // the gateway may have left
}

func (s *APIServer) reviewToken(review *authenticationv1.TokenReview) {
	user, known := s.Users[review.Spec.Token]
	if !known {
		review.Status.Error = "[invalid bearer token]"
		return
	}
	if asked := review.Spec.Audiences; len(asked) > 0 && !slices.Contains(asked, s.Audience) {
		return
	} else if len(asked) > 0 {
		review.Status.Audiences = []string{s.Audience}
	}
	review.Status.Authenticated = true
	review.Status.User = authenticationv1.UserInfo{
		Username: user, UID: "1", Groups: []string{"system:authenticated"},
		Extra: map[string]authenticationv1.ExtraValue{"pod": {"p"}},
	}
}

// isWhole reports whether a review is about all that reviewToken says of a user: an authorizer may decide by any of it.
func isWhole(spec *authorizationv1.SubjectAccessReviewSpec) bool {
	return spec.UID == "1" && slices.Equal(spec.Groups, []string{"system:authenticated"}) &&
		slices.Equal(spec.Extra["pod"], authorizationv1.ExtraValue{"p"})
}
