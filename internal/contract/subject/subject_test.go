// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package subject

import (
	"slices"
	"strconv"
	"testing"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
)

// TestNamespaces has a request with many namespaces, each several times.
func TestNamespaces(t *testing.T) {
	var want []string
	item := func(namespace string) *hooksv1alpha1.GeneratePatchesRequestItem {
		return &hooksv1alpha1.GeneratePatchesRequestItem{
			HolderReference: &hooksv1alpha1.HolderReference{Namespace: namespace},
		}
	}
	request := &hooksv1alpha1.GeneratePatchesRequest{}
	for i := range limits.Elements / 4 {
		want = append(want, strconv.Itoa(i))
		request.Items = append(request.Items, item(want[i]), item(want[i]), item(want[i/2]))
	}
	if got, _ := Namespaces(request, nil); !slices.Equal(got, want) {
		t.Errorf("got %d namespaces, want %d, each once and in order", len(got), len(want))
	}
	if got, _ := Namespaces(&hooksv1alpha1.GeneratePatchesRequest{}, want); !slices.Equal(got, want) {
		t.Errorf("got %d namespaces of a partial message, want %d", len(got), len(want))
	}
}
