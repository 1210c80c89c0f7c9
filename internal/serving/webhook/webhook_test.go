// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/internal/kinds/extensionpolicy"
	"github.com/hookgate/hookgate/internal/kinds/handlerchain"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
)

func TestPanicsAreAnswered(t *testing.T) {
	log := &bytes.Buffer{}
	h := recovered(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("spilled") }), slog.New(slog.NewTextHandler(log, nil)))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodPost, "/convert", nil))
	if w.Code != http.StatusInternalServerError || strings.Contains(w.Body.String(), "spilled") {
		t.Errorf("answered %d %s", w.Code, w.Body)
	}
	if !strings.Contains(log.String(), "panic=spilled") || !strings.Contains(log.String(), "path=/convert") {
		t.Errorf("logged %s", log)
	}
}

func TestGarbageIsNoReasonToEnd(t *testing.T) {
	h := handler(t)
	for _, path := range []string{ConvertPath, MutatePath(group), ValidatePath(group), OwnPath(extensionpolicy.Kind), OwnPath(handlerchain.Kind), OwnPath(hookrule.Kind)} {
		for _, body := range []string{"", "{", "[]", "null", "{}", `{"request":{}}`, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","operation":"CREATE","object":1}}`} {
			r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code >= http.StatusInternalServerError || strings.Contains(w.Body.String(), `"allowed":true`) {
				t.Errorf("%s %q: %d %s", path, body, w.Code, w.Body)
			}
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, ConvertPath, nil))
	if w.Code != http.StatusMethodNotAllowed {
		t.Errorf("GET: %d", w.Code)
	}
}
