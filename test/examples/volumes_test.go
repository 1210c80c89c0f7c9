// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc/credentials"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	machinesv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/machines/v1alpha1"
	"github.com/hookgate/hookgate/test/certificates"
	"github.com/hookgate/hookgate/test/process"
)

// TestVolumes asks the example in examples/volumes about Machines, as the gateway does.
func TestVolumes(t *testing.T) {
	attachments := map[string][]string{"n1": {"vol-2", "vol-1"}}
	var broken atomic.Bool
	storage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if broken.Load() {
			http.Error(w, "broken", http.StatusInternalServerError)
			return
		}
		_ = json.NewEncoder(w).Encode(append([]string{}, attachments[r.URL.Query().Get("node")]...))
	}))
	defer storage.Close()
	address, certs := freeAddress(t), t.TempDir()
	pair := certificates.In(t, certs)
	cmd := exec.Command(filepath.Join(folder, "python", "build", "venv", "bin", "python"), filepath.Join(folder, "volumes", "main.py"), address, certs)
	cmd.Env = append(os.Environ(), "VOLUMES_URL="+storage.URL)
	process.Run(t, "volumes", cmd).Expect(t, `listening on ([^"\n]*)["\n]`)
	client := machinesv1alpha1.NewLifecycleHooksServiceClient(dial(t, address, credentials.NewTLS(pair.ClientTLS())))
	ask := func(status string) *machinesv1alpha1.BeforeMachineTerminateResponse {
		t.Helper()
		answer, err := client.BeforeMachineTerminate(t.Context(), &machinesv1alpha1.BeforeMachineTerminateRequest{
			Machine: &hooksv1alpha1.RawExtension{Raw: fmt.Appendf(nil, `{"kind":"Machine","metadata":{"name":"m","namespace":"a"},"status":%s}`, status)},
		})
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	if a := ask(`{"nodeRef":{"name":"n1"}}`); a.GetRetryAfterSeconds() != 10 || a.GetMessage() != "volumes are attached to n1: vol-1, vol-2" {
		t.Errorf("with volumes: %v", a)
	}
	for _, status := range []string{`{}`, `{"nodeRef":{"name":"n2"}}`} {
		if a := ask(status); a.GetStatus() != hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS || a.GetRetryAfterSeconds() != 0 {
			t.Errorf("%s: %v", status, a)
		}
	}
	broken.Store(true)
	if a := ask(`{"nodeRef":{"name":"n1"}}`); a.GetStatus() != hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_FAILURE {
		t.Errorf("without an answer of the storage API: %v", a)
	}
}
