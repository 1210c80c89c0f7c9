// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"crypto/tls"
	"net/http"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/internal/network/via"
)

// TestGatewayIDIsRecognized checks that a gateway takes requests that have passed the id that it was given, as that of a
// replica, for its own.
func TestGatewayIDIsRecognized(t *testing.T) {
	configs, certs := commandtest.Serving(t)
	g := commandtest.ServeProgram(t, configs, certs, "--gateway-id", "hub.eu-1")
	g.WaitReady(t)
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	for id, want := range map[string]int{"hub.eu-1": http.StatusLoopDetected, "hub.eu-2": http.StatusOK} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost,
			"https://"+g.HTTPS+"/hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set(via.Header, string(via.Way("").Next(id, "")))
		response, err := client.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != want {
			t.Errorf("a request by way of %s: %s, want %d", id, response.Status, want)
		}
	}
}
