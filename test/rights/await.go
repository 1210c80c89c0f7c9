// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rights

import (
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/hookgate/hookgate/test/process"
)

// Await waits until an API server allows a service account each rule of the roles that are bound to it; RoleBindings are
// in the namespace of the account. An API server decides by the roles that it has seen, which is a little behind what it
// has stored.
func Await(t testing.TB, config *rest.Config, roles []Role, bindings []Binding, namespace, account string) {
	t.Helper()
	clients, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string][]rbacv1.PolicyRule{}
	for _, r := range roles {
		rules[r.Kind+" "+r.Name] = r.Rules
	}
	for _, b := range bindings {
		for _, rule := range rules[b.Role.Kind+" "+b.Role.Name] {
			review := &authorizationv1.SubjectAccessReview{Spec: reviewOf(&rule)}
			review.Spec.User = "system:serviceaccount:" + namespace + ":" + account
			if a := review.Spec.ResourceAttributes; a != nil && b.Kind == "RoleBinding" {
				a.Namespace = namespace
			}
			process.Eventually(t, b.Kind+" "+b.Name+" is in effect", func() bool {
				answer, err := clients.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review,
					metav1.CreateOptions{})
				if err != nil {
					t.Fatal(err)
				}
				return answer.Status.Allowed
			})
		}
	}
}

// reviewOf asks about the first request that a rule allows.
func reviewOf(rule *rbacv1.PolicyRule) authorizationv1.SubjectAccessReviewSpec {
	verb := rule.Verbs[0]
	if len(rule.NonResourceURLs) > 0 {
		return authorizationv1.SubjectAccessReviewSpec{NonResourceAttributes: &authorizationv1.NonResourceAttributes{
			Path: strings.ReplaceAll(rule.NonResourceURLs[0], "*", "x"), Verb: verb,
		}}
	}
	resource, subresource, _ := strings.Cut(rule.Resources[0], "/")
	a := &authorizationv1.ResourceAttributes{
		Group: rule.APIGroups[0], Resource: resource, Subresource: subresource, Verb: verb,
	}
	if len(rule.ResourceNames) > 0 {
		a.Name = rule.ResourceNames[0]
	}
	return authorizationv1.SubjectAccessReviewSpec{ResourceAttributes: a}
}
