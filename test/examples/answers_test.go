// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
)

// exchange is one request and the answer of the extension in every language. Both are canonical JSON without apiVersion
// and kind. Patches are shown as the JSON that they hold, not in base64.
type exchange struct {
	hook, handler string
	request, want string
}

// handlers is the expected list of discovery, in order.
var handlers = []struct{ name, hook string }{
	{"approve-upgrade", "BeforeClusterUpgrade"},
	{"image-repository", "GeneratePatches"},
	{"image-repository-variables", "DiscoverVariables"},
	{"patch-in-place", "CanUpdateMachine"},
}

var exchanges = map[string]exchange{
	"upgrade within a minor version": {
		"BeforeClusterUpgrade", "approve-upgrade", upgrade("v1.36.1", "v1.36.4", ``),
		`{"status":"Success","retryAfterSeconds":0}`,
	},
	"upgrade without approval": {
		"BeforeClusterUpgrade", "approve-upgrade", upgrade("v1.35.4", "v1.36.1", `"other":"v1.36"`),
		`{"status":"Success","retryAfterSeconds":30,"message":"upgrade to v1.36 waits for the annotation example.hookgate.dev/approved-minor: v1.36"}`,
	},
	"upgrade approved to another version": {
		"BeforeClusterUpgrade", "approve-upgrade", upgrade("v1.35.4", "v1.37.0-rc.1+vendor.2", `"example.hookgate.dev/approved-minor":"v1.36"`),
		`{"status":"Success","retryAfterSeconds":30,"message":"upgrade to v1.37 waits for the annotation example.hookgate.dev/approved-minor: v1.37"}`,
	},
	"approved upgrade": {
		"BeforeClusterUpgrade", "approve-upgrade", upgrade("v1.35.4", "v1.36.1", `"example.hookgate.dev/approved-minor":"v1.36"`),
		`{"status":"Success","retryAfterSeconds":0}`,
	},
	"Cluster without annotations": {
		"BeforeClusterUpgrade", "approve-upgrade", `{"cluster":{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster"},"fromKubernetesVersion":"v1.35.4","toKubernetesVersion":"v1.36.1"}`,
		`{"status":"Success","retryAfterSeconds":30,"message":"upgrade to v1.36 waits for the annotation example.hookgate.dev/approved-minor: v1.36"}`,
	},
	"Cluster of an old Cluster API": { // v1.12 leaves apiVersion and kind out
		"BeforeClusterUpgrade", "approve-upgrade",
		`{"cluster":{"metadata":{"name":"c","annotations":{"example.hookgate.dev/approved-minor":"v1.36"}},"spec":{"topology":{"class":"c","version":"v1.35.4"}}},"fromKubernetesVersion":"v1.35.4","toKubernetesVersion":"v1.36.1"}`,
		`{"status":"Success","retryAfterSeconds":0}`,
	},
	"upgrade to no version": {
		"BeforeClusterUpgrade", "approve-upgrade", upgrade("v1.35.4", "banana", ``),
		`{"status":"Failure","retryAfterSeconds":0,"message":"toKubernetesVersion \"banana\" is not a version like v1.36.1"}`,
	},
	"upgrade from half a version": {
		"BeforeClusterUpgrade", "approve-upgrade", upgrade("v1.35", "v1.36.1", ``),
		`{"status":"Failure","retryAfterSeconds":0,"message":"fromKubernetesVersion \"v1.35\" is not a version like v1.36.1"}`,
	},
	"unknown members": {
		"BeforeClusterUpgrade", "approve-upgrade",
		`{"cluster":{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","new":{"a":[1]},"metadata":{"x":null}},"fromKubernetesVersion":"v1.36.1","toKubernetesVersion":"v1.36.2","dryRun":true,"steps":[{"n":9007199254740993}]}`,
		`{"status":"Success","retryAfterSeconds":0}`,
	},

	"patches": {
		"GeneratePatches", "image-repository",
		`{"variables":[{"name":"other","value":7},{"name":"imageRepository","value":"registry.example.com/kubernetes"}],"items":[` +
			strings.Join([]string{
				item("whole", "KubeadmControlPlaneTemplate", `{"template":{"spec":{"kubeadmConfigSpec":{"clusterConfiguration":{"imageRepository":"old","dns":{}}}}}}`, ``),
				item("other kind", "KubeadmConfigTemplate", `{"template":{"spec":{"clusterConfiguration":{}}}}`, ``),
				item("no repository", "KubeadmControlPlaneTemplate", `{"template":{"spec":{"kubeadmConfigSpec":{"clusterConfiguration":{}}}}}`, `{"name":"imageRepository","value":"own.example.com"}`),
				item("no clusterConfiguration", "KubeadmControlPlaneTemplate", `{"template":{"spec":{"kubeadmConfigSpec":{"initConfiguration":{}}}}}`, `{"name":"builtin","value":{"n":9007199254740993}}`),
				item("no kubeadmConfigSpec", "KubeadmControlPlaneTemplate", `{"template":{"spec":{"rollout":{}}}}`, ``),
				item("switched off", "KubeadmControlPlaneTemplate", `{"template":{}}`,
					`{"name":"imageRepository","value":""}`),
				item("no spec", "KubeadmControlPlaneTemplate", `null`,
					`{"name":"imageRepository","value":"ü/\"quoted\"\\"}`),
			}, ",") + `]}`,
		`{"status":"Success","items":[` +
			strings.Join([]string{
				patch("whole", "/spec/template/spec/kubeadmConfigSpec/clusterConfiguration/imageRepository",
					`"registry.example.com/kubernetes"`),
				patch("no repository", "/spec/template/spec/kubeadmConfigSpec/clusterConfiguration/imageRepository",
					`"own.example.com"`),
				patch("no clusterConfiguration", "/spec/template/spec/kubeadmConfigSpec/clusterConfiguration",
					`{"imageRepository":"registry.example.com/kubernetes"}`),
				patch("no kubeadmConfigSpec", "/spec/template/spec/kubeadmConfigSpec",
					`{"clusterConfiguration":{"imageRepository":"registry.example.com/kubernetes"}}`),
				patch("no spec", "/spec", `{"template":{"spec":{"kubeadmConfigSpec":{"clusterConfiguration":{"imageRepository":"ü/\"quoted\"\\"}}}}}`),
			}, ",") + `]}`,
	},
	"patches without the variable": {
		"GeneratePatches", "image-repository", `{"variables":[],"items":[` + item("1", "KubeadmControlPlaneTemplate", `{}`, ``) + `]}`,
		`{"status":"Success"}`,
	},
	"variable that is a number": {
		"GeneratePatches", "image-repository",
		`{"variables":[{"name":"imageRepository","value":7}],"items":[` + item("1", "KubeadmControlPlaneTemplate", `{}`, ``) + `]}`,
		`{"status":"Failure","message":"variable \"imageRepository\" is not a string"}`,
	},
	"several MiB": {
		"GeneratePatches", "image-repository",
		`{"variables":[{"name":"imageRepository","value":"registry.example.com/kubernetes"}],"items":[` +
			item("big", "KubeadmControlPlaneTemplate", `{"padding":"`+strings.Repeat("x", 12<<20)+`"}`, ``) + `]}`,
		`{"status":"Success","items":[` +
			patch("big", "/spec/template", `{"spec":{"kubeadmConfigSpec":{"clusterConfiguration":{"imageRepository":"registry.example.com/kubernetes"}}}}`) + `]}`,
	},

	"variables": {
		"DiscoverVariables", "image-repository-variables", `{}`,
		`{"status":"Success","variables":[{"name":"imageRepository","required":false,"schema":{"openAPIV3Schema":` +
			`{"type":"string","description":"any","minLength":1,"example":"registry.example.com/kubernetes"}}}]}`,
	},

	"update of the patch version": {
		"CanUpdateMachine", "patch-in-place", update("v1.36.1", "v1.36.2"),
		`{"status":"Success","machinePatch":{"patchType":"JSONMergePatch","patch":{"spec":{"version":"v1.36.2"}}}}`,
	},
	"update of a Machine of another version": {
		"CanUpdateMachine", "patch-in-place", strings.ReplaceAll(update("v1.36.1", "v1.36.2"), "cluster.x-k8s.io/v1beta2", "cluster.x-k8s.io/v1beta1"),
		`{"status":"Success","machinePatch":{"patchType":"JSONMergePatch","patch":{"spec":{"version":"v1.36.2"}}}}`,
	},
	"update of the minor version": {
		"CanUpdateMachine", "patch-in-place", update("v1.36.1", "v1.37.1"), `{"status":"Success"}`,
	},
	"update of something else": {
		"CanUpdateMachine", "patch-in-place", update("v1.36.1", "v1.36.1"), `{"status":"Success"}`,
	},
	"update to no version": {
		"CanUpdateMachine", "patch-in-place", update("v1.36.1", "banana"), `{"status":"Success"}`,
	},
}

func upgrade(from, to, annotations string) string {
	return fmt.Sprintf(`{"cluster":{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"name":"c","namespace":"default","annotations":{%s}}},`+
		`"fromKubernetesVersion":%q,"toKubernetesVersion":%q,"controlPlaneUpgrades":[{"version":%q}]}`, annotations, from, to, to)
}

// item returns a template to patch; spec may be null, and is surrounded by unexpected members.
func item(uid, kind, spec, variables string) string {
	return fmt.Sprintf(`{"uid":%q,"holderReference":{"kind":"Cluster","name":"c"},"object":{"apiVersion":"controlplane.cluster.x-k8s.io/v1beta2","kind":%q,"spec":%s},"variables":[%s]}`,
		uid, kind, spec, variables)
}

func patch(uid, pointer, value string) string {
	return fmt.Sprintf(`{"uid":%q,"patchType":"JSONPatch","patch":[{"op":"add","path":%q,"value":%s}]}`, uid, pointer,
		value)
}

func update(current, desired string) string {
	machine := func(version string) string {
		return fmt.Sprintf(`{"machine":{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Machine","spec":{"version":%q,"providerID":"x"}},"infrastructureMachine":{"kind":"DevMachine"}}`, version)
	}
	return `{"current":` + machine(current) + `,"desired":` + machine(desired) + `}`
}

// members returns an answer for comparison: decoded, including its patches, and without irrelevant members.
func members(answer []byte) (map[string]any, error) {
	var out map[string]any
	if err := json.Unmarshal(answer, &out); err != nil {
		return nil, fmt.Errorf("decode answer %.300s: %w", answer, err)
	}
	delete(out, "apiVersion")
	delete(out, "kind")
	return out, unfold(out)
}

// unfold replaces the base64 of every patch below value by its JSON, and the description of a schema, which each
// example phrases differently, by one word.
func unfold(value any) error {
	switch v := value.(type) {
	case []any:
		for _, element := range v {
			if err := unfold(element); err != nil {
				return err
			}
		}
	case map[string]any:
		if text, ok := v["patch"].(string); ok {
			document, err := base64.StdEncoding.DecodeString(text)
			if err != nil {
				return fmt.Errorf("decode patch: %w", err)
			}
			var patch any
			if err := json.Unmarshal(document, &patch); err != nil {
				return fmt.Errorf("decode patch %s: %w", document, err)
			}
			v["patch"] = patch
			return nil
		}
		if text, ok := v["description"].(string); ok && text != "" {
			v["description"] = "any"
		}
		for _, element := range v {
			if err := unfold(element); err != nil {
				return err
			}
		}
	}
	return nil
}
