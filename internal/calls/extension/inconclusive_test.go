// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"net/http"
	"testing"
)

// An answer that finds fault with one request says nothing about the next one.
func TestAnswersThatFindFaultWithTheRequest(t *testing.T) {
	ca := newAuthority(t)
	for code, want := range map[int]bool{
		200: false, 204: false, 302: false, 400: true, 404: true, 413: true, 429: false, 499: true, 500: false, 503: false,
	} {
		s := newServer(t, ca, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }, nil)
		result, err := newREST(t, Config{}).Call(t.Context(), newCall(s.cc))
		if err == nil || result.Inconclusive != want {
			t.Errorf("%d: got %v, inconclusive %t, want %t", code, err, result.Inconclusive, want)
		}
	}
}
