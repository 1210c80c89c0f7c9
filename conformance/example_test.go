// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance_test

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/hookgate/hookgate/conformance"
)

// extension answers like a server with one handler, which says neither yes nor why not.
func extension(w http.ResponseWriter, r *http.Request) {
	const hooks = "/hooks.runtime.cluster.x-k8s.io/v1alpha1/"
	switch r.URL.Path {
	case hooks + "discovery":
		_, _ = io.WriteString(w, `{"status": "Success", "handlers": [{"name": "approve", "requestHook":
			{"apiVersion": "hooks.runtime.cluster.x-k8s.io/v1alpha1", "hook": "BeforeClusterCreate"}}]}`)
	case hooks + "beforeclustercreate/approve":
		_, _ = io.WriteString(w, `{"status": "Failure"}`)
	default:
		http.NotFound(w, r)
	}
}

func ExampleRun() {
	server := httptest.NewTLSServer(http.HandlerFunc(extension))
	defer server.Close()
	target := conformance.Target{
		URL: server.URL,
		CA:  pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}),
	}
	report, err := conformance.Run(context.Background(), target, conformance.Options{Only: []string{"discovery", "answers"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, result := range report.Results {
		for _, finding := range result.Findings {
			fmt.Printf("%s (%s), handler %s: %s\n", result.ID, result.Level, finding.Handler, finding.Problem)
		}
	}
	fmt.Println("conforms:", report.Conforms(false))
	// Output:
	// answers.success (SHOULD), handler approve: the status is Failure; if that is correct, give a request of your own for this hook
	// answers.message (SHOULD), handler approve: the message is empty
	// conforms: true
}

func ExampleTest() { //nolint:testableexamples // it shows a test, which runs only in go test
	_ = func(t *testing.T) { // TestConformance in a package of tests
		conformance.Test(t, conformance.Target{URL: "grpc://127.0.0.1:9090"}, conformance.Options{Skip: []string{"protocol.health"}})
	}
}
