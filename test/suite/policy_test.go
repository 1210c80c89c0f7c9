// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"encoding/base64"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/registry"
	"github.com/hookgate/hookgate/test/process"
	"github.com/hookgate/hookgate/test/samples"
)

// The manifests of the page about existing extensions let an extension with 33 handlers and long names be called by the
// names that its classes have, and by those that the gateway offers otherwise.
func TestAnExistingExtensionKeepsItsNames(t *testing.T) {
	process.Program(t, gatewayVariable)
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "existing-extension.md"))
	if err != nil {
		t.Fatal(err)
	}
	a := newAuthority(t)
	s := startStub(t, a)
	var want []string
	for i := range 33 {
		hook, name := "GeneratePatches", fmt.Sprintf("nutanixclusterv%dconfigpatch-gp", i)
		if i%3 == 0 {
			hook, name = "BeforeClusterUpgrade", fmt.Sprintf("nutanix-addons-v%d-bcu", i)
		} else {
			want = append(want, name)
		}
		s.serve(hook, name, handlerOptions{}, success("from "+name))
	}
	manifests := map[string]string{}
	for _, block := range regexp.MustCompile("(?s)\n```yaml\n(.*?)\n```\n").FindAllStringSubmatch(string(page), -1) {
		switch text := block[1] + "\n"; {
		case strings.Contains(text, "kind: ExtensionPolicy"):
			manifests["policy.yaml"] = text
		case strings.HasPrefix(text, "apiVersion: runtime.hookgate.dev/"):
			// The Service is the stub, whose CA is in no Secret.
			before, _, ok := strings.Cut(text, "    service: ")
			if !ok {
				t.Fatalf("the ExtensionConfig of the page names no Service:\n%s", text)
			}
			manifests["extension.yaml"] = before + fmt.Sprintf("    url: %s\n    caBundle: %s\n", s.server.URL,
				base64.StdEncoding.EncodeToString(a.PEM))
		}
	}
	if len(manifests) != 2 {
		t.Fatalf("the page has %d of the policy and the ExtensionConfig", len(manifests))
	}
	g := startGateway(t, a, manifests)
	g.awaitHandler(t, want[0])
	_, handlers := g.discovery(t)
	var got []string
	for _, h := range handlers {
		if h.RequestHook.Hook == "GeneratePatches" {
			got = append(got, h.Name)
		}
		if strings.Contains(h.Name, "--") {
			t.Errorf("%s is offered with another name than the extension's", h.Name)
		}
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("the gateway offers %q, want %q", got, want)
	}
	const config = "cluster-api-runtime-extensions-nutanix"
	for _, name := range want {
		for _, called := range []string{name, registry.Label(name + "." + config), name + "." + config} {
			answer := g.post(t, path("GeneratePatches", called), samples.M())
			if message := decodeMembers(t, answer.body)["message"]; message != "from "+name {
				t.Errorf("a call of %s: %d %.300s", called, answer.code, answer.body)
			}
		}
	}
}

// TestGetPolicies lists the policies of a directory with their verdicts.
func TestGetPolicies(t *testing.T) {
	program := process.Program(t, gatewayVariable)
	policy := "apiVersion: hookgate.dev/v1alpha1\nkind: ExtensionPolicy\nmetadata: {name: NAME}\nspec: {targetRef: {name: s, handler: NAME}, order: 1}\n"
	g, _ := startStubs(t, func(*stub) {})
	g.write(t, "policies.yaml", strings.ReplaceAll(policy, "NAME", readyHandler)+"---\n"+strings.ReplaceAll(policy, "NAME", "gone"))
	want := []string{"gone s/gone False TargetNotFound ", "ready s/ready True Accepted In effect for handler "}
	process.Eventually(t, "each policy has its verdict", func() bool {
		out, err := exec.Command(program, "get", "policies", "--diagnostics", "http://"+g.Diagnostics).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		var rows []string
		for line := range strings.Lines(string(out)) {
			rows = append(rows, strings.Join(strings.Fields(line), " "))
		}
		return len(rows) > 0 && slices.EqualFunc(rows[1:], want, strings.HasPrefix)
	})
}
