// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	utilyaml "k8s.io/apimachinery/pkg/util/yaml"

	"github.com/hookgate/hookgate/test/rights"
)

// notForTheAPIServer maps the beginnings of the pages' blocks that are not objects to their readers.
var notForTheAPIServer = map[string]string{
	"# clusterctl.yaml\n":     "clusterctl; test/clusterctl gives it this",
	"# Chart.yaml, in part\n": "Helm; test/extra/helm renders a chart with this dependency",
	"# metadata.yaml\n":       "clusterctl; test/clusterctl gives it this",
	"# callers.yaml\n":        "the gateway; a test of this package starts it with this",
	"apiVersion: hookgate.dev/v1alpha1\nkind: HandlerChainTest\n": "hookgate chain test; command tests it",
	"apiVersion: hookgate.dev/v1alpha1\nkind: HookRuleTest\n":     "hookgate rule test; command tests it",
	"lint:\n":                        "buf; the example of hooks of one's own has it",
	"# rack.yaml\n":                  "hookgate check; it describes infrastructure to try",
	"# Part of a ClusterClass\n":     "Cluster API core, which has the kind",
	"# A MachineHealthCheck\n":       "Cluster API core, which has the kind; test/e2e has one like it",
	"# kustomization.yaml\n":         "kustomize; other tests render it, here and in test/clusterctl",
	"# " + guideForRelease:           "kustomize; TestReleaseKustomization renders it",
	"# " + guideWithoutCertManager:   "kustomize; TestSelfCertificates renders it",
	"components:\n- github.com/hook": "kustomize; the other tests of this package add it to the one above",
}

// TestManifestsOfTheDocs applies every manifest of the pages, and the examples of rules and Jobs, to a real API server
// with the kinds of deploy/.
func TestManifestsOfTheDocs(t *testing.T) {
	if os.Getenv(assetsVariable) == "" {
		t.Skipf("%s does not name a directory with kube-apiserver, etcd and kubectl", assetsVariable)
	}
	root := filepath.Join("..", "..")
	pages, err := filepath.Glob(filepath.Join(root, "docs", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	pages = append(pages, filepath.Join(root, "README.md"))
	s := newServer(t)
	var definitions []string
	for _, pattern := range []string{"*_*.yaml", filepath.Join("infrastructure", "*_*.yaml"), filepath.Join("machines", "*_*.yaml")} {
		found, err := filepath.Glob(filepath.Join(root, "deploy", "crd", pattern))
		if err != nil || len(found) == 0 {
			t.Fatalf("%d CRDs of %s: %v", len(found), pattern, err)
		}
		definitions = append(definitions, found...)
	}
	for _, path := range definitions {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		s.apply(t, text)
	}
	s.apply(t, []byte("apiVersion: v1\nkind: Namespace\nmetadata: {name: hookgate-system}\n"))
	applied := 0
	apply := func(file, text string) {
		for reader := utilyaml.NewYAMLReader(bufio.NewReader(strings.NewReader(text))); ; {
			document, err := reader.Read()
			if errors.Is(err, io.EOF) {
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			if refused := kubectlApply(s.admin, document, "--dry-run=server"); refused != "" {
				t.Errorf("%s: %s\n%s", file, refused, document)
			}
			applied++
		}
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range block.FindAllStringSubmatch(string(text), -1) {
			if !isForAnother(match[1]) {
				apply(page, match[1])
			}
		}
	}
	for _, pattern := range []string{filepath.Join("rules", "*", "rule.yaml"), filepath.Join("jobs", "*.yaml"), filepath.Join("rollouts", "*.yaml")} {
		examples, err := filepath.Glob(filepath.Join(root, "examples", pattern))
		if err != nil || len(examples) == 0 {
			t.Fatalf("%d examples of %s: %v", len(examples), pattern, err)
		}
		for _, file := range examples {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			apply(file, string(text))
		}
	}
	if applied < 5 {
		t.Errorf("%d manifests were found: the pages have more", applied)
	}
}

func isForAnother(text string) bool {
	for prefix := range notForTheAPIServer {
		if strings.HasPrefix(text, prefix) {
			return true
		}
	}
	return false
}

var tableRow = regexp.MustCompile("(?m)^\\| (`[a-z/]+`(?:, `[a-z/]+`)*)( of (?:`([a-z0-9.-]+)`|the group))?[^|]*" +
	"\\| ([a-z, ]*?) *\\| ?([a-z, ]*?) *\\|$")

// TestTableOfRights compares the table of the page with the granted permissions.
func TestTableOfRights(t *testing.T) {
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "cluster.md"))
	if err != nil {
		t.Fatal(err)
	}
	for name, h := range hubs {
		var want []string
		for _, m := range tableRow.FindAllStringSubmatch(string(page), -1) {
			group, verbs := m[3], m[4]
			if strings.HasSuffix(m[2], "the group") {
				group = h.group
			}
			if h.readOnly {
				verbs = m[5]
			}
			for resource := range strings.SplitSeq(strings.ReplaceAll(m[1], "`", ""), ", ") {
				for verb := range strings.SplitSeq(verbs, ", ") {
					if verb != "" {
						want = append(want, rights.Of(group, resource, verb))
					}
				}
			}
		}
		slices.Sort(want)
		var got []string
		for _, granted := range rightsOf(t, hub(t, name)) {
			got = append(got, granted...)
		}
		slices.Sort(got)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-page +granted):\n%s", name, diff)
		}
	}
}

// TestFoldersOfDeployAreOnThePage checks that the page mentions every overlay and component.
func TestFoldersOfDeployAreOnThePage(t *testing.T) {
	page, err := os.ReadFile(guide)
	if err != nil {
		t.Fatal(err)
	}
	for _, kind := range []string{"overlays", "components"} {
		folders, err := filepath.Glob(filepath.Join("..", "..", "deploy", kind, "*", "kustomization.yaml"))
		if err != nil || len(folders) == 0 {
			t.Fatalf("%s: %d folders, %v", kind, len(folders), err)
		}
		for _, f := range folders {
			if link := "](../deploy/" + kind + "/" + filepath.Base(filepath.Dir(f)) + ")"; !bytes.Contains(page, []byte(link)) && filepath.Base(filepath.Dir(f)) != "cluster" {
				t.Errorf("the page has no link %s", link)
			}
		}
	}
}
