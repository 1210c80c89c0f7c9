// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/conformance"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/test/certificates"
)

// ask sends an example request, or the text itself, and decodes the answer as a gateway does.
func ask[Response proto.Message](t *testing.T, hook, handler, request string) Response {
	t.Helper()
	server := httptest.NewServer(newHandler())
	defer server.Close()
	body := []byte(request)
	if strings.HasSuffix(request, ".yaml") {
		data, err := os.ReadFile("../requests/" + request)
		if err != nil {
			t.Fatal(err)
		}
		if body, err = yaml.YAMLToJSON(data); err != nil {
			t.Fatal(err)
		}
	}
	cat := catalog.New()
	h, ok := cat.ByName(hook)
	if !ok {
		t.Fatalf("no hook %s", hook)
	}
	response, err := http.Post(server.URL+h.Path(handler), "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(response.Body)
	if closeErr := response.Body.Close(); err != nil || closeErr != nil {
		t.Fatal(err, closeErr)
	}
	if response.StatusCode != http.StatusOK {
		t.Fatalf("status %s: %s", response.Status, data)
	}
	message := h.Response.New().Interface()
	if err := codec.New(cat).Decode(data, message); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return message.(Response)
}

func TestDiscovery(t *testing.T) {
	answer := ask[*hooksv1alpha1.DiscoveryResponse](t, "Discovery", "", "{}")
	if answer.GetStatus() != hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS {
		t.Fatalf("got %v", answer)
	}
	cat := catalog.New()
	server := httptest.NewServer(newHandler())
	defer server.Close()
	for _, handler := range answer.GetHandlers() {
		h, ok := cat.ByName(handler.GetRequestHook().GetHook())
		if !ok || h.APIVersion() != handler.GetRequestHook().GetApiVersion() {
			t.Errorf("handler %s is for %v, which is not a hook", handler.GetName(), handler.GetRequestHook())
			continue
		}
		response, err := http.Post(server.URL+h.Path(handler.GetName()), "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("handler %s was discovered but answers %s", handler.GetName(), response.Status)
		}
	}
}

func TestBeforeClusterCreate(t *testing.T) {
	waits := ask[*hooksv1alpha1.BeforeClusterCreateResponse](t, "BeforeClusterCreate", "approval", "before-cluster-create.yaml")
	if waits.GetRetryAfterSeconds() != 30 || waits.GetMessage() != "Cluster team-payments/payments-eu-west-1 waits for the annotation example.com/approved-by" {
		t.Errorf("without the annotation: %v", waits)
	}
	goes := ask[*hooksv1alpha1.BeforeClusterCreateResponse](t, "BeforeClusterCreate", "approval", "before-cluster-create-approved.yaml")
	if goes.GetRetryAfterSeconds() != 0 || !strings.Contains(goes.GetMessage(), "is approved by zoe@example.com") {
		t.Errorf("with the annotation: %v", goes)
	}
	broken := ask[*hooksv1alpha1.BeforeClusterCreateResponse](t, "BeforeClusterCreate", "approval", "{")
	if broken.GetStatus() != hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_FAILURE {
		t.Errorf("to half a request: %v", broken)
	}
}

func TestGeneratePatches(t *testing.T) {
	answer := ask[*hooksv1alpha1.GeneratePatchesResponse](t, "GeneratePatches", "node-image", "generate-patches.yaml")
	if len(answer.GetItems()) != 2 {
		t.Fatalf("got %d patches, want one for each DockerMachineTemplate: %v", len(answer.GetItems()), answer)
	}
	const want = `[{"op":"add","path":"/spec/template/spec/customImage","value":"registry.example.com/node:v1.34.0"}]`
	if got := string(answer.GetItems()[0].GetPatch()); got != want {
		t.Errorf("got patch %s, want %s", got, want)
	}
	wrong := ask[*hooksv1alpha1.GeneratePatchesResponse](t, "GeneratePatches", "node-image", `{"variables":[{"name":"nodeImage","value":7}],"items":[]}`)
	if wrong.GetStatus() != hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_FAILURE || !strings.Contains(wrong.GetMessage(), "variable nodeImage") {
		t.Errorf("to a variable that is a number: %v", wrong)
	}
}

func TestDiscoverVariables(t *testing.T) {
	answer := ask[*hooksv1alpha1.DiscoverVariablesResponse](t, "DiscoverVariables", "node-image-variables", "discover-variables.yaml")
	if len(answer.GetVariables()) != 1 || answer.GetVariables()[0].GetName() != "nodeImage" {
		t.Errorf("got %v", answer)
	}
}

// underRace is set by the race detector's build, in which 20 MiB of JSON take longer on a busy machine than the timeout
// of the handlers.
var underRace bool

// patient changes the timeouts that h announces to the longest: a busy machine may need more than 5 s for the large
// requests of a check.
func patient(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/discovery") {
			h.ServeHTTP(w, r)
			return
		}
		answer := httptest.NewRecorder()
		h.ServeHTTP(answer, r)
		w.WriteHeader(answer.Code)
		_, _ = io.WriteString(w, strings.ReplaceAll(answer.Body.String(), `"timeoutSeconds":5`, `"timeoutSeconds":30`))
	})
}

// TestConformance holds the extension against the rules of the Runtime SDK.
func TestConformance(t *testing.T) {
	server := httptest.NewUnstartedServer(patient(newHandler()))
	server.Config.ErrorLog = log.New(io.Discard, "", 0) // one check is of TLS that the server refuses
	server.StartTLS()
	defer server.Close()
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	var options conformance.Options
	if underRace {
		t.Log("load.limit is left out: run the test without the race detector for it")
		options.Skip = []string{"load.limit"}
	}
	conformance.Test(t, conformance.Target{URL: server.URL, CA: ca}, options)
}

// TestRun serves with certificates and stops when its context ends.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	certificates.In(t, dir)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := run(ctx, "127.0.0.1:0", dir); err != nil {
		t.Errorf("stopped at once: %v", err)
	}
	if err := run(t.Context(), "127.0.0.1:0", t.TempDir()); err == nil || !strings.Contains(err.Error(), "tls.crt") {
		t.Errorf("without certificates: got %v, want an error that names tls.crt", err)
	}
}
