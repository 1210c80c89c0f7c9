// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package caller_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hookgate/hookgate/caller"
	hooks "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
)

// Example is the program of docs/callers.md.
func Example() { //nolint:testableexamples // it needs a gateway
	gateway, err := caller.New(caller.Config{URL: "grpcs://127.0.0.1:9444", CAFile: os.Args[1]})
	if err != nil {
		log.Fatal(err)
	}
	object, err := caller.Object(map[string]any{
		"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
		"metadata": map[string]any{"namespace": "default", "name": "c1"},
	})
	if err != nil {
		log.Fatal(err)
	}
	out, err := gateway.BeforeControlPlaneUpgrade(context.Background(), &hooks.BeforeControlPlaneUpgradeRequest{
		Cluster: object, FromKubernetesVersion: "v1.35.4", ToKubernetesVersion: "v1.36.1",
	})
	if err != nil {
		log.Fatal(err)
	}
	wait, why, held := caller.Hold(out)
	fmt.Println(held, wait, why)
}

// connect makes the client, once for all reconciliations.
func connect() (*caller.Client, error) {
	return caller.New(caller.Config{
		URL:       "grpcs://hookgate.hookgate-system.svc:9090", // or https://hookgate.hookgate-system.svc:443 for JSON
		CAFile:    "/var/run/hookgate/ca.crt",
		TokenFile: "/var/run/secrets/kubernetes.io/serviceaccount/token",
	})
}

// beforeUpgrade returns how long an upgrade must wait, and why. If wait is 0, upgrade; else write why into a condition,
// and return wait as the RequeueAfter of the Result.
func beforeUpgrade(
	ctx context.Context, gateway *caller.Client, cluster *unstructured.Unstructured, from, to string,
) (wait time.Duration, why string, err error) {
	object, err := caller.Object(cluster)
	if err != nil {
		return 0, "", err
	}
	out, err := gateway.BeforeControlPlaneUpgrade(ctx, &hooks.BeforeControlPlaneUpgradeRequest{
		Cluster: object, FromKubernetesVersion: from, ToKubernetesVersion: to,
	})
	if err != nil {
		return 0, "", err
	}
	wait, why, _ = caller.Hold(out)
	return wait, why, nil
}

// TestInAController holds an upgrade as the page does.
func TestInAController(t *testing.T) {
	gateway := newClient(t, caller.Config{URL: overGRPC(t, func(
		_ context.Context, in *hooks.BeforeControlPlaneUpgradeRequest,
	) (*hooks.BeforeControlPlaneUpgradeResponse, error) {
		return &hooks.BeforeControlPlaneUpgradeResponse{
			Status: success, RetryAfterSeconds: 7, Message: "waits for " + in.GetToKubernetesVersion(),
		}, nil
	})})
	cluster := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "metadata": map[string]any{"name": "c1"},
	}}
	wait, why, err := beforeUpgrade(t.Context(), gateway, cluster, "v1.35.4", "v1.36.1")
	if err != nil || wait != 7*time.Second || why != "waits for v1.36.1" {
		t.Errorf("%s, %q, %v", wait, why, err)
	}
	if _, err := connect(); err == nil || !strings.Contains(err.Error(), "read CAFile: ") {
		t.Errorf("without the file of the Pod: %v", err)
	}
}

// TestPage compares the code of the page with Example, connect and beforeUpgrade.
func TestPage(t *testing.T) {
	file, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../docs/callers.md")
	if err != nil {
		t.Fatal(err)
	}
	_, body, _ := strings.Cut(string(file), "\nfunc Example()")
	_, body, _ = strings.Cut(body, "\n")
	body, controller, found := strings.Cut(body, "\n}\n")
	if !found || !strings.Contains(string(page), "\nfunc main() {\n"+body+"\n}\n") {
		t.Errorf("docs/callers.md has no program with\n%s", body)
	}
	controller, _, found = strings.Cut(controller, "\n// TestInAController")
	if !found || !strings.Contains(string(page), "\n```go"+controller+"```\n") {
		t.Errorf("docs/callers.md has no block with\n%s", controller)
	}
}
