// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"google.golang.org/grpc/status"

	"github.com/hookgate/hookgate/registry"
	"github.com/hookgate/hookgate/test/process"
	"github.com/hookgate/hookgate/test/samples"
)

// policyManifest returns an ExtensionPolicy for a handler of the ExtensionConfig acme; settings are lines of its spec.
func policyManifest(handler string, settings ...string) string {
	return fmt.Sprintf("apiVersion: hookgate.dev/v1alpha1\nkind: ExtensionPolicy\nmetadata:\n  name: %s\nspec:\n  targetRef: {name: acme, handler: %s}\n  %s\n",
		handler, handler, strings.Join(settings, "\n  "))
}

// Policies change how handlers are called while the gateway runs, with the same effect on both fronts.
func TestExtensionPolicies(t *testing.T) {
	const hook = "BeforeClusterCreate"
	process.Program(t, gatewayVariable)
	a := newAuthority(t)
	s := startStub(t, a)
	var mu sync.Mutex
	var order []string
	for _, name := range []string{"a", "b", "c"} {
		s.serve(hook, name, handlerOptions{}, func(w http.ResponseWriter, r *http.Request) {
			mu.Lock()
			order = append(order, name)
			mu.Unlock()
			success("from "+name)(w, r)
		})
	}
	s.serve(hook, "slow", handlerOptions{timeout: 20}, hang)
	g := startGateway(t, a, map[string]string{
		"acme.yaml": registration{name: "acme", url: s.server.URL}.manifest(a),
		"slow.yaml": policyManifest("slow", "timeoutSeconds: 1", "failurePolicy: Ignore"),
	})
	g.awaitHandler(t, "ready--acme")
	conn := g.dial(t)

	logged := func(text string) func() bool {
		return func() bool {
			output := g.Output()
			return strings.Contains(output, text)
		}
	}

	// expect waits until both fronts answer with message, and returns the handlers that the REST call reached.
	expect := func(reason, message string) (called []string) {
		t.Helper()
		code := http.StatusOK
		if strings.Contains(message, "ExtensionPolicy") {
			code = http.StatusInternalServerError
		}
		process.Eventually(t, reason, func() bool {
			mu.Lock()
			order = nil
			mu.Unlock()
			got := g.post(t, path(hook, ""), samples.S())
			mu.Lock()
			called = slices.Clone(order)
			mu.Unlock()
			overREST, _ := decodeMembers(t, got.body)["message"].(string)

			response, err := callGRPC(soon(t), t, conn, hook, "", samples.S())
			overGRPC := status.Convert(err).Message()
			if answer, ok := response.(interface{ GetMessage() string }); ok && err == nil {
				overGRPC = answer.GetMessage()
			}
			return got.code == code && overREST == message && overGRPC == message &&
				(err == nil) == (code == http.StatusOK)
		})
		return called
	}

	expect("the slow handler is given up after a second, and ignored",
		`from a, from b, from c, ignored: handler "slow.acme": Timeout`)

	g.write(t, "slow.yaml", policyManifest("slow", "matchConditions: [{name: never, expression: 'false'}]")) // no call has to wait for it

	g.write(t, "policies.yaml", policyManifest("c", "order: 1")+"---\n"+policyManifest("b", "order: 2")+"---\n"+
		policyManifest("a", "matchConditions: [{name: north, expression: \"request.?settings.?region.orValue('') == 'north'\"}]"))
	called := expect("a handler whose condition is false is left out", "from b, from c")
	if !slices.Equal(called, []string{"c", "b"}) {
		t.Errorf("handlers with an order are called in that order, got %v", called)
	}

	broken := policyManifest("a", "matchConditions: [{name: north, expression: \"request.cluster.nobody == 'north'\"}]")
	g.write(t, "policies.yaml", broken)
	expect("a condition that fails is an error", `handler "a.acme": ExtensionPolicy "a": match condition "north": the expression fails for this request: no such key: nobody`)

	g.write(t, "policies.yaml", strings.Replace(broken, "targetRef", "failurePolicy: Ignore\n  targetRef", 1))
	const ignored = `ignored: handler "a.acme": Policy, from b, from c`
	expect("or is ignored", ignored)
	if metrics := g.metrics(t); !strings.Contains(metrics, `handler="a.acme",hook="BeforeClusterCreate",kind="Policy"`) {
		t.Error("what is ignored is counted")
	}

	g.write(t, "policies.yaml", strings.Replace(broken, "nobody ==", "nobody +", 1)+"---\nnonsense: [")
	process.Eventually(t, "a mistake is logged by file and line",
		logged(`policies.yaml:7: ExtensionPolicy \"a\": spec.matchConditions[0].expression`))
	process.Eventually(t, "and so is the other", logged("policies.yaml:9: not YAML"))
	expect("and changes nothing", ignored)

	g.write(t, "policies.yaml", "# nothing\n")
	expect("without policies all is as before", "from a, from b, from c")
}

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

// TestGetPolicies lists policies of a directory that are accepted, invalid, without a target and in conflict.
func TestGetPolicies(t *testing.T) {
	program := process.Program(t, gatewayVariable)
	a := newAuthority(t)
	s := startStub(t, a)
	s.serve("BeforeClusterCreate", "a", handlerOptions{}, success("a"))
	s.serve("BeforeClusterCreate", "b", handlerOptions{}, success("b"))
	second := strings.Replace(policyManifest("a", "order: 2"), "name: a\n", "name: second\n", 1)
	g := startGateway(t, a, map[string]string{
		"acme.yaml": registration{name: "acme", url: s.server.URL}.manifest(a),
		"policies.yaml": policyManifest("a", "order: 1") + "---\n" + second + "---\n" + policyManifest("gone", "order: 3") + "---\n" +
			policyManifest("b", "matchConditions: [{name: c, expression: \"request.cluster.metadata.nmespace == 'x'\"}]"),
		"broken.yaml": policyManifest("broken", "matchConditions: [{name: c, expression: \"request.cluster +\"}]"),
	})
	g.awaitHandler(t, "ready--acme")
	want := []string{
		"a acme/a True Accepted In effect for handler \"a\" of ExtensionConfig \"acme\"",
		"b acme/b False Invalid In effect for handler \"b\" of ExtensionConfig \"acme\", and its calls fail: spec.matchConditions[0].expression",
		"broken acme/broken False Invalid spec.matchConditions[0].expression",
		"gone acme/gone False TargetNotFound ExtensionConfig \"acme\" has no handler \"gone\"",
		"second acme/a False Conflicted ExtensionPolicy \"a\" is for handler \"a\" of ExtensionConfig \"acme\", too",
	}
	var rows []string
	process.Eventually(t, "each policy has its verdict", func() bool {
		out, err := exec.Command(program, "get", "policies", "--diagnostics", "http://"+g.Diagnostics).CombinedOutput()
		if err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		rows = nil
		for line := range strings.Lines(string(out)) {
			rows = append(rows, strings.Join(strings.Fields(line), " "))
		}
		rows = rows[1:]
		return slices.EqualFunc(rows, want, strings.HasPrefix)
	})
	if !strings.Contains(rows[1], "undefined field 'nmespace'") || !strings.HasSuffix(rows[2], "; it is not used") {
		t.Errorf("the messages say what is wrong: %q", rows)
	}
}
