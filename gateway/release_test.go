// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	evanphx "github.com/evanphx/json-patch/v5"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/registry"
)

// newTemplate is that of an infrastructure cluster as Cluster API v1.14 sends it.
const (
	newTemplate = `{"apiVersion":"x/v1","kind":"XClusterTemplate","metadata":{"name":"x"},"spec":{"template":{"metadata":{"labels":` +
		`{"cluster.x-k8s.io/cluster-name":"c","own":"x"}},"spec":{"a":1}}}}`
	ofCluster = `"holderReference":{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","namespace":"n","name":"c","fieldPath":"spec.infrastructureRef"}`
)

func templateBody(hookName, object string) string {
	uid := ""
	if hookName == "GeneratePatches" {
		uid = `"uid":"u",`
	}
	return `{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","kind":"` + hookName + `Request","items":[{` + uid + ofCluster + `,"object":` + object + `,"variables":[]}],"variables":[]}`
}

// strict answers GeneratePatches and ValidateTopology as an extension that refuses what v1.13 did not send, and replaces
// the template as a whole.
func strict(t *testing.T, saw *[]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		*saw = append(*saw, string(body))
		if strings.Contains(string(body), "cluster.x-k8s.io/cluster-name") {
			_, _ = io.WriteString(w, `{"status":"Failure","message":"unknown field"}`)
			return
		}
		patch := base64.StdEncoding.EncodeToString([]byte(`[{"op":"replace","path":"/spec/template","value":{"spec":{"a":2}}}]`))
		items := `,"items":[{"uid":"u","patchType":"JSONPatch","patch":"` + patch + `"}]`
		if strings.HasSuffix(r.URL.Path, "/validate") {
			items = ""
		}
		_, _ = io.WriteString(w, `{"status":"Success"`+items+`}`)
	}
}

// TestHandlersOfAnEarlierRelease has a handler by itself, and twice in a chain, see templates as v1.13 sent them, and
// change the whole ones.
func TestHandlersOfAnEarlierRelease(t *testing.T) {
	for _, release := range []string{"", "v1.13"} {
		f := newFixture(t, nil)
		var saw []string
		patches, validate := handlerOf("patches", "GeneratePatches", hook.Fail), handlerOf("validate", "ValidateTopology", hook.Fail)
		patches.Timeout, validate.Timeout = 10*time.Second, 10*time.Second
		patches.ClusterAPIRelease, validate.ClusterAPIRelease = release, release
		f.registerREST(t, strict(t, &saw), patches, validate)
		steps := []registry.ChainStep{{Handler: "patches.acme"}, {Handler: "patches.acme"}}
		f.registry.SetChains([]registry.Chain{{Name: "both", Hook: hookOf(t, "GeneratePatches").GroupHook(), Steps: steps}})

		for _, path := range []string{"generatepatches/patches--acme", "generatepatches/both", "validatetopology/validate--acme"} {
			saw = nil
			name := "GeneratePatches"
			if strings.HasPrefix(path, "validate") {
				name = "ValidateTopology"
			}
			answer := string(f.post(t, "/hooks.runtime.cluster.x-k8s.io/v1alpha1/"+path, templateBody(name, newTemplate)).body)
			if release == "" {
				if !strings.Contains(answer, "unknown field") {
					t.Errorf("%s: without a release, the handler is sent what it refuses, and the answer is %s", path, answer)
				}
				continue
			}
			if !strings.Contains(answer, `"status":"Success"`) {
				t.Fatalf("%s: %s", path, answer)
			}
			if slices.ContainsFunc(saw, func(b string) bool { return !strings.Contains(b, `"metadata":{"labels":{"own":"x"}}`) }) && path != "generatepatches/both" {
				t.Errorf("%s: the handler saw %s", path, saw)
			}
			if name == "GeneratePatches" {
				want := `{"apiVersion":"x/v1","kind":"XClusterTemplate","metadata":{"name":"x"},"spec":{"template":{"metadata":{"labels":{"cluster.x-k8s.io/cluster-name":"c"}},"spec":{"a":2}}}}`
				if got := patchedBy(t, newTemplate, answer); !evanphx.Equal([]byte(got), []byte(want)) {
					t.Errorf("%s: Cluster API makes %s, want %s", path, got, want)
				}
			}
		}
	}
}

// patchedBy applies the patches of an answer as Cluster API does.
func patchedBy(t *testing.T, object, answer string) string {
	t.Helper()
	var a struct{ Items []struct{ Patch []byte } }
	if err := json.Unmarshal([]byte(answer), &a); err != nil {
		t.Fatal(err)
	}
	made := []byte(object)
	for _, item := range a.Items {
		patch, err := evanphx.DecodePatch(item.Patch)
		if err == nil {
			made, err = patch.Apply(made)
		}
		if err != nil {
			t.Fatalf("%s: %v", item.Patch, err)
		}
	}
	return string(made)
}
