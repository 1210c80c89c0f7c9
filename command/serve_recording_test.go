// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/hookgate/hookgate/internal/calls/recording"
)

// Nobody records the calls of a gateway whose diagnostics are for everyone.
func TestInsecureDiagnosticsRecordNothing(t *testing.T) {
	o := diagnosticsOptions{address: "0.0.0.0:8443", insecure: true}
	h, err := o.recordings(nil, func(h http.Handler) (http.Handler, error) { return h, nil })
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, recording.Path, nil))
	if w.Code != http.StatusForbidden {
		t.Errorf("got %d", w.Code)
	}
}
