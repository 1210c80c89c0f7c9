// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookgate/hookgate/test/process"
)

// TestRemoval removes the hub as docs/deploy.md says, then installs and removes each other overlay: nothing is left of any.
// It and what follows are the last tests, because it takes away what the others use.
func TestRemoval(t *testing.T) {
	all(t)
	t.Run("release", removeHub)
	for overlay, component := range map[string]string{
		"hub-beside-core": "hub-beside-core", "hub-alone": "hub-alone", "reader-beside-core": "without-webhooks", "directory": "without-webhooks",
	} {
		t.Run(overlay, func(t *testing.T) {
			manifests := kustomize(t, `
resources: [../../deploy/overlays/`+overlay+`]
components: [../../deploy/components/self-certificates/`+component+`]
images: [{name: ghcr.io/hookgate/hookgate, newTag: `+release+`}]
`, nil)
			ofCore := ""
			if overlay == "reader-beside-core" {
				ofCore = "runtime.cluster.x-k8s.io"
				core := filepath.Join(root(t), "deploy", "crd", "runtime.cluster.x-k8s.io_extensionconfigs.yaml")
				kubectl(t, "apply", "--server-side", "-f", core)
				defer kubectl(t, "delete", "-f", core)
			}
			apply(t, manifests)
			rolledOut(t, namespace, "hookgate")
			remove(t, manifests, ofCore)
		})
	}
}

// removeHub removes the hub, and what calls it.
func removeHub(t *testing.T) {
	kubectl(t, "delete", "namespace", "callers", "acme-system", "beside", "--ignore-not-found")
	kubectl(t, "delete", "clusterrolebinding", "callers")
	remove(t, hubManifests, "")
	removed = true
}

var removed bool

// withoutHub is all without the hub, for tests that install something else.
func withoutHub(t *testing.T) {
	t.Helper()
	onlyInAll(t)
	switch {
	case removed:
	case complete:
		removeHub(t)
	default: // a test that runs alone
		applyFile(t, "kinds.yaml")
		before, removed = objects(t), true
	}
}

// remove removes what manifests have installed, and expects the objects from before, and those of a group of core's, if that
// is not empty.
func remove(t *testing.T, manifests []byte, ofCore string) {
	t.Helper()
	begun := time.Now()
	kubectl(t, "-n", namespace, "delete", "deployment", "hookgate", "--cascade=foreground")
	kubectlWith(t, manifests, "delete", "--ignore-not-found", "-f", "-")
	t.Logf("removed in %s", time.Since(begun).Round(time.Second))
	expectLeft(t, func(object string) bool { return ofCore != "" && strings.HasSuffix(object, "."+ofCore) })
}

// expectLeft waits until the cluster has no other objects than before, and those that stay.
func expectLeft(t *testing.T, stays func(object string) bool) {
	t.Helper()
	process.EventuallySees(t, process.Patience, "nothing else is left", func() (string, bool) {
		left, err := tryObjects()
		maps.DeleteFunc(left, func(name string, _ bool) bool { return before[name] || stays(name) })
		return fmt.Sprint(err, strings.Join(slices.Sorted(maps.Keys(left)), ", ")), err == nil && len(left) == 0
	})
}

// objects lists all objects of the cluster, but for those that Kubernetes makes as it runs.
func objects(t *testing.T) map[string]bool {
	t.Helper()
	all, err := tryObjects()
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// tryObjects is objects, and fails while a kind is being deleted.
func tryObjects() (map[string]bool, error) {
	resources, err := tryKubectl(nil, "api-resources", "--verbs=list", "-o", "name")
	if err != nil {
		return nil, err
	}
	var kinds []string
	for kind := range strings.FieldsSeq(resources) {
		switch kind {
		case "events", "events.events.k8s.io", "leases.coordination.k8s.io", "componentstatuses":
		default:
			kinds = append(kinds, kind)
		}
	}
	all := map[string]bool{}
	list, err := tryKubectl(nil, "get", strings.Join(kinds, ","), "-A", "--no-headers", "-o", "custom-columns=K:.kind,S:.metadata.namespace,N:.metadata.name")
	for line := range strings.Lines(list) {
		if object := strings.Join(strings.Fields(line), "/"); !strings.HasPrefix(object, "Pod/kube-system/") { // which DNS replaces
			all[object] = true
		}
	}
	return all, err
}
