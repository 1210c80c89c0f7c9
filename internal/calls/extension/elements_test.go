// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"strings"
	"testing"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
)

// An answer to discovery has at most as many elements as any answer, over gRPC and REST, and one with more is not built.
func TestDiscoveryWithTooManyElements(t *testing.T) {
	const want = "discover handlers: answer: has more than 100000 list elements, map entries and unknown members in total"
	ca := newAuthority(t)
	handlers := make([]*hooksv1alpha1.ExtensionHandler, limits.Elements+1)
	for i := range handlers {
		handlers[i] = &hooksv1alpha1.ExtensionHandler{}
	}
	for n, text := range map[int]string{
		limits.Elements:     "discover handlers: answer: has 100000 handlers, which is more than 512: split them over several extensions",
		limits.Elements + 1: want,
	} {
		cc := newAuthor(t, ca, &author{discover: func() (*hooksv1alpha1.DiscoveryResponse, error) {
			return &hooksv1alpha1.DiscoveryResponse{
				Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS, Handlers: handlers[:n],
			}, nil
		}}, nil)
		_, err := newGRPC(t, Config{}).Discover(t.Context(), cc)
		if hook.KindOf(err) != hook.BadResponse || err.Error() != text {
			t.Errorf("gRPC, %d handlers: got %v, want %s", n, err, text)
		}
		body := `{"status":"Success","handlers":[` + strings.Repeat("{},", n-1) + `{}]}`
		_, err = newREST(t, Config{}).Discover(t.Context(), newServer(t, ca, answer(body), nil).cc)
		if hook.KindOf(err) != hook.BadResponse || err.Error() != text {
			t.Errorf("REST, %d handlers: got %v, want %s", n, err, text)
		}
	}
}
