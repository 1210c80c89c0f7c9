// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
)

// The memory of a request is used again after its call. What a conversion leaves behind must not refer to it: neither
// the converted object, nor losses and errors, which are kept, nor the remembered versions of references.
func TestNothingRefersToTheTextLater(t *testing.T) {
	unknownKind := `{"kind":"Cluster","apiVersion":"cluster.x-k8s.io/v1beta2","spec":{"infrastructureRef":` +
		`{"apiGroup":"example.com","kind":"Unknown","name":"a"}}}`
	for name, tc := range map[string]struct{ object, to string }{
		"down":            {string(sampleCluster(t)), V1Beta1},
		"losses":          {`{"kind":"Cluster","apiVersion":"cluster.x-k8s.io/v1beta2","unknown":1,"status":{"conditions":[{"new":1}],"v1beta2":{"x":1}},"spec":{"a":{"b":1}}}`, V1Beta1},
		"metadata":        {`{"kind":"Cluster","apiVersion":"cluster.x-k8s.io/v1beta1","metadata":{"name":"a","annotations":{"` + dataAnnotation + `":"{}"}}}`, V1Beta2},
		"unknown kind":    {unknownKind, V1Beta1},
		"a wrong time":    {`{"kind":"Cluster","apiVersion":"cluster.x-k8s.io/v1beta2","status":{"conditions":[{"lastTransitionTime":"tomorrow"}]}}`, V1Beta1},
		"a wrong member":  {`{"kind":"Cluster","apiVersion":"cluster.x-k8s.io/v1beta1","status":{"failureDomains":{"a key":{"controlPlane":1}}}}`, V1Beta2},
		"a wrong version": {`{"kind":"Cluster","apiVersion":"cluster.x-k8s.io/v1beta1","spec":{"infrastructureRef":{"apiVersion":"a/b/c","kind":"K","name":"n"}}}`, V1Beta2},
	} {
		t.Run(name, func(t *testing.T) {
			text := []byte(tc.object)
			got, err := sampleObjects().Request(&hooksv1alpha1.BeforeClusterCreateRequest{Cluster: &hooksv1alpha1.RawExtension{Raw: text}}, tc.to)
			message, losses, failure := cloned(got.Message), slices.Clone(got.Losses), textOf(err)
			for i := range text {
				text[i] = 'x'
			}
			if !proto.Equal(message, got.Message) {
				t.Errorf("the message changed to %v", got.Message)
			}
			if diff := cmp.Diff(losses, got.Losses); diff != "" {
				t.Errorf("the losses changed:\n%s", diff)
			}
			if now := textOf(err); now != failure {
				t.Errorf("the error changed from %s to %s", failure, now)
			}
		})
	}
}

func cloned(m proto.Message) proto.Message {
	if m == nil {
		return nil
	}
	return proto.Clone(m)
}

// textOf returns a copy of the text of an error, with that of its cause.
func textOf(err error) string {
	var e *hook.Error
	if !errors.As(err, &e) {
		return ""
	}
	texts := []string{e.Error()}
	for cause := errors.Unwrap(err); cause != nil; cause = errors.Unwrap(cause) {
		texts = append(texts, cause.Error())
	}
	return "the texts: " + strings.Join(texts, "; ")
}
