// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	evanphx "github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/test/process"
)

// The templates of a Cluster as Cluster API v1.14 sends them: with the labels and annotations of what is made of them.
const (
	fromCluster = `"labels":{"cluster.x-k8s.io/cluster-name":"c","topology.cluster.x-k8s.io/owned":""},` +
		`"annotations":{"cluster.x-k8s.io/cloned-from-groupkind":"G.x","cluster.x-k8s.io/cloned-from-name":"n"}`
	fromPool = `"labels":{"cluster.x-k8s.io/cluster-name":"c","topology.cluster.x-k8s.io/owned":"",` +
		`"topology.cluster.x-k8s.io/pool-name":"p"}`
)

type templateItem struct{ holder, object string }

var newTemplates = []templateItem{
	{
		`"kind":"Cluster","fieldPath":"spec.infrastructureRef"`,
		`{"apiVersion":"acme.x/v1","kind":"AcmeClusterTemplate","metadata":{"name":"i"},` +
			`"spec":{"template":{"metadata":{` + fromCluster + `},"spec":{"region":"south"}}}}`,
	},
	{
		`"kind":"Cluster","fieldPath":"spec.controlPlaneRef"`,
		`{"apiVersion":"controlplane.cluster.x-k8s.io/v1beta2","kind":"KubeadmControlPlaneTemplate","metadata":{"name":"k"},` +
			`"spec":{"template":{"metadata":{` + fromCluster + `},"spec":{}}}}`,
	},
	{
		`"kind":"MachinePool","fieldPath":"spec.template.spec.infrastructureRef"`,
		`{"apiVersion":"acme.x/v1","kind":"AcmeMachinePoolTemplate","metadata":{"name":"p"},` +
			`"spec":{"template":{"metadata":{` + fromPool + `},"spec":{}}}}`,
	},
}

func templateRequest(hook string) []byte {
	items := make([]string, len(newTemplates))
	for i, of := range newTemplates {
		uid := ""
		if hook == "GeneratePatches" {
			uid = fmt.Sprintf(`"uid":"%d",`, i)
		}
		items[i] = `{` + uid + `"holderReference":{"apiVersion":"cluster.x-k8s.io/v1beta2","namespace":"n","name":"c",` +
			of.holder + `},"object":` + of.object + `,"variables":[]}`
	}
	return []byte(`{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","kind":"` + hook + `Request","variables":[],"items":[` +
		strings.Join(items, ",") + `]}`)
}

// An extension of v1.12 that refuses unknown members fails behind v1.14, also with its version of objects stated, and
// works with its release stated; what it did not see stays.
func TestSkewStrictExtension(t *testing.T) {
	process.Program(t, gatewayVariable)
	a := newAuthority(t)
	e := startOldExtension(t, a)
	manifests := crdManifests(t)
	for _, name := range []string{"none", "version", "release"} {
		manifests[name+".yaml"] = registration{name: name, url: e.url}.manifest(a)
	}
	manifests["p1.yaml"] = understands("version", "", "v1beta1")
	manifests["p2.yaml"] = "apiVersion: hookgate.dev/v1alpha1\nkind: ExtensionPolicy\nmetadata:\n  name: release\n" +
		"spec:\n  targetRef: {name: release}\n  clusterAPIRelease: v1.12\n"
	g := startGateway(t, a, manifests)
	for _, name := range []string{"none", "version", "release"} {
		g.awaitHandler(t, "strict-patches--"+name)
	}
	both := callers(g, g.dial(t))
	for front, call := range both {
		for hook, handler := range map[string]string{"GeneratePatches": "strict-patches.", "ValidateTopology": "strict-topology."} {
			for _, name := range []string{"none", "version"} {
				answer := call(t, hook, handler+name, templateRequest(hook))
				if text := fmt.Sprint(answer["message"]); answer["status"] != "Failure" || !strings.Contains(text, `unknown field "metadata"`) {
					t.Errorf("%s %s%s: %v %s, want the failure of its decoder", front, handler, name, answer["status"], text)
				}
			}
			answer := call(t, hook, handler+"release", templateRequest(hook))
			if answer["status"] != "Success" {
				t.Fatalf("%s %srelease: %v", front, handler, answer)
			}
			if hook == "GeneratePatches" {
				checkTemplates(t, answer)
			}
		}
	}
}

// checkTemplates applies the patches as Cluster API does: the region has changed, and nothing else.
func checkTemplates(t *testing.T, answer members) {
	t.Helper()
	text, err := json.Marshal(answer)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Items []struct {
			UID   string
			Patch []byte
		}
	}
	if err := json.Unmarshal(text, &got); err != nil || len(got.Items) != len(newTemplates) {
		t.Fatalf("%v: %s", err, text)
	}
	for i, item := range got.Items {
		made := []byte(newTemplates[i].object)
		patch, err := evanphx.DecodePatch(item.Patch)
		if err == nil {
			made, err = patch.Apply(made)
		}
		if err != nil || item.UID != strconv.Itoa(i) {
			t.Fatalf("item %d has uid %s and patch %s: %v", i, item.UID, item.Patch, err)
		}
		want := decodeMembers(t, []byte(strings.Replace(newTemplates[i].object, "south", "north", 1)))
		if diff := cmp.Diff(labelled(want), labelled(decodeMembers(t, made))); diff != "" {
			t.Errorf("item %d (-want +got):\n%s", i, diff)
		}
	}
}

// labelled returns the part of a template for which Cluster API takes the metadata of the object, and its region.
func labelled(template members) []any {
	spec, _ := template["spec"].(map[string]any)
	inner, _ := spec["template"].(map[string]any)
	metadata, _ := inner["metadata"].(map[string]any)
	values, _ := inner["spec"].(map[string]any)
	return []any{metadata["labels"], metadata["annotations"], values["region"]}
}
