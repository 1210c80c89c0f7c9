// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/controllers"
)

// kubectl runs kubectl against the API server of the tests.
type kubectl struct{ program, config string }

func newKubectl(t testing.TB) *kubectl {
	t.Helper()
	if apiServer == nil {
		t.Skipf("%s is not set", assetsVariable)
	}
	program := filepath.Join(os.Getenv(assetsVariable), "kubectl")
	if _, err := os.Stat(program); errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("%s: %v", assetsVariable, err)
	}
	k := &kubectl{program: program, config: filepath.Join(t.TempDir(), "kubeconfig")}
	if err := os.WriteFile(k.config, apiServer.KubeConfig, 0o600); err != nil {
		t.Fatal(err)
	}
	return k
}

func (k *kubectl) run(t testing.TB, arguments ...string) string {
	t.Helper()
	c := exec.CommandContext(t.Context(), k.program, append([]string{"--kubeconfig", k.config}, arguments...)...)
	c.Env = append(os.Environ(), "HOME="+filepath.Dir(k.config)) // kubectl keeps what it discovers there
	var out, problem bytes.Buffer
	c.Stdout, c.Stderr = &out, &problem
	if err := c.Run(); err != nil {
		t.Fatalf("kubectl %s: %v: %s", strings.Join(arguments, " "), err, problem.String())
	}
	return out.String()
}

// ofHookgate returns an ExtensionConfig of the gateway's own group.
func ofHookgate(t testing.TB, name string, x *serverOf) *unstructured.Unstructured {
	t.Helper()
	typed := newConfig(t, name, x)
	c := &unstructured.Unstructured{}
	c.SetGroupVersionKind(schema.GroupVersionKind{Group: controllers.HookgateGroup, Version: "v1beta2", Kind: "ExtensionConfig"})
	c.SetName(typed.Name)
	c.SetLabels(typed.Labels)
	c.Object["spec"] = map[string]any{"clientConfig": map[string]any{
		"url": x.URL, "caBundle": base64.StdEncoding.EncodeToString(x.ca()),
	}}
	return c
}

var port = regexp.MustCompile(`127\.0\.0\.1:\d+`)

// table returns the tables of kubectl with one bar between cells, and a dash for an empty one. Ages and ports vary, and
// are replaced by words.
func table(text string) string {
	var lines []string
	var starts [][]int // of the columns, which kubectl aligns
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, " \n")
		if strings.HasPrefix(line, "NAME ") {
			starts = column.FindAllStringIndex(line, -1)
		}
		if line == "" {
			continue
		}
		cells := make([]string, len(starts))
		for i, at := range starts {
			end := len(line)
			if i+1 < len(starts) {
				end = min(end, starts[i+1][0])
			}
			cells[i] = cmp.Or(strings.TrimSpace(line[min(at[0], end):end]), "-")
		}
		if last := len(cells) - 1; cells[last] != "AGE" {
			cells[last] = "age"
		}
		lines = append(lines, port.ReplaceAllString(strings.Join(cells, "|"), "ADDRESS"))
	}
	return strings.Join(lines, "\n")
}

// column is the head of a column, which may have a space in it.
var column = regexp.MustCompile(`\S+(?: \S+)*`)

// TestKubectl checks what kubectl shows at a glance: what is up, what is down, what is still served, and why.
func TestKubectl(t *testing.T) {
	k := newKubectl(t)
	r := start(t, func(c *controllers.Config) { c.Group = controllers.HookgateGroup })
	up, down, never := newExtension(t, "a"), newExtension(t, "a", "b"), newExtension(t)
	never.broken = true
	policy := &v1alpha1.ExtensionPolicy{}
	policy.Name, policy.Spec.TargetRef.Name = "kubectl-up", "kubectl-up"
	policy.Spec.TimeoutSeconds = new(int32(5))
	policy.Labels = newConfig(t, "", nil).Labels
	create(t, r.client, policy)
	create(t, r.client, newChain(t, "kubectl-chain", "BeforeClusterCreate", "a.kubectl-up", "b.kubectl-down"))
	for name, x := range map[string]*serverOf{"kubectl-up": up, "kubectl-down": down, "kubectl-never": never} {
		create(t, r.client, ofHookgate(t, name, x))
	}
	r.serves(t, "a.kubectl-down "+down.URL, "a.kubectl-up "+up.URL, "b.kubectl-down "+down.URL)
	down.set(func(s *serverOf) { s.broken = true })
	k.run(t, "patch", "hext", "kubectl-down", "--type", "merge", "-p", `{"spec":{"settings":{"a":"b"}}}`) // discovers again

	shows := func(want string, arguments ...string) {
		t.Helper()
		want = strings.TrimSpace(want)
		eventually(t, "kubectl "+strings.Join(arguments, " ")+" shows\n"+want+"\n", func() (string, bool) {
			got := table(k.run(t, arguments...))
			return got, got == want
		})
	}
	shows(`
NAME|DISCOVERED|REASON|HANDLERS|PROTOCOL|AGE
kubectl-down|False|NotDiscovered|2 last known|REST|age
kubectl-never|False|NotDiscovered|0|REST|age
kubectl-up|True|Discovered|1|REST|age`, "get", "hext", "--selector", selector(t))
	const failed = "discover handlers: answered 500 Internal Server Error"
	shows(`
NAME|DISCOVERED|REASON|HANDLERS|PROTOCOL|URL|SERVICE|AVAILABLE|PAUSED|MESSAGE|AGE
kubectl-down|False|NotDiscovered|2 last known|REST|https://ADDRESS|-|-|False|`+failed+`; its last known handlers are still served: 2|age
kubectl-never|False|NotDiscovered|0|REST|https://ADDRESS|-|-|False|`+failed+neverDiscovered+`|age
kubectl-up|True|Discovered|1|REST|https://ADDRESS|-|-|False|-|age`, "get", "hext", "--selector", selector(t), "-o", "wide")
	shows(`
NAME|EXTENSION|HANDLER|ACCEPTED|REASON|AGE
extensionpolicy.hookgate.dev/kubectl-up|kubectl-up|-|True|Accepted|age
NAME|HOOK|READY|REASON|AGE
handlerchain.hookgate.dev/kubectl-chain|BeforeClusterCreate|True|Ready|age
NAME|DISCOVERED|REASON|HANDLERS|PROTOCOL|AGE
extensionconfig.runtime.hookgate.dev/kubectl-down|False|NotDiscovered|2 last known|REST|age
extensionconfig.runtime.hookgate.dev/kubectl-never|False|NotDiscovered|0|REST|age
extensionconfig.runtime.hookgate.dev/kubectl-up|True|Discovered|1|REST|age`, "get", "hookgate", "--selector", selector(t))

	// Beside Cluster API core, the name of the kind alone is that of the other group.
	if got := table(k.run(t, "get", "extensionconfig", "--selector", selector(t), "--ignore-not-found")); got != "" {
		t.Errorf("extensionconfig finds %s", got)
	}
	// An API server publishes the schemas of new kinds some time after it serves them.
	eventually(t, "kubectl explains a field", func() (string, bool) {
		c := exec.CommandContext(t.Context(), k.program, "--kubeconfig", k.config, "explain", "hext.spec.clientConfig.url")
		c.Env = append(os.Environ(), "HOME="+filepath.Dir(k.config))
		out, err := c.CombinedOutput()
		return string(out), err == nil && strings.Contains(string(out), "DESCRIPTION:") &&
			!strings.Contains(string(out), "<empty>")
	})
}

// TestKubectlCommandsOfDocs checks that the commands of the pages name ExtensionConfigs in a way that does not depend on
// which groups a cluster has, and that kubectl knows the kinds that they name.
func TestKubectlCommandsOfDocs(t *testing.T) {
	k := newKubectl(t)
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	if err != nil || len(pages) == 0 {
		t.Fatalf("%d pages: %v", len(pages), err)
	}
	pages = append(pages, filepath.Join("..", "..", "README.md"))
	commands := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, found := range ofOurs.FindAllStringSubmatch(string(text), -1) {
			commands++
			if kind := found[1]; strings.HasPrefix(kind, "extensionconfig") && !strings.Contains(kind, ".") {
				t.Errorf("%s: %q: the kind without its group is another one beside Cluster API core", filepath.Base(page), found[0])
			} else {
				k.run(t, "get", kind, "--ignore-not-found") // fails if kubectl knows no such kind
			}
		}
	}
	if commands < 5 {
		t.Errorf("%d commands were found: the pages have more", commands)
	}
}

// ofOurs finds the kubectl commands of kinds that the tests' API server has.
var ofOurs = regexp.MustCompile(`kubectl (?:-n \S+ )?(?:get|describe|explain|delete|label|annotate|edit|patch) ((?:ext|hext)[a-z0-9.-]*)`)

func selector(t testing.TB) string {
	t.Helper()
	for name, value := range newConfig(t, "", nil).Labels {
		return name + "=" + value
	}
	return ""
}
