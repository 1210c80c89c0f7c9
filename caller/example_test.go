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

// TestPage compares the program of the page with Example.
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
	body, _, found := strings.Cut(body, "\n}\n")
	if !found || !strings.Contains(string(page), "\nfunc main() {\n"+body+"\n}\n") {
		t.Errorf("docs/callers.md has no program with\n%s", body)
	}
}
