// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
)

// extension is a Runtime Extension over HTTPS, of which a word is in its patches.
type extension struct {
	*httptest.Server

	word string
	// covers says that its CanUpdate… handlers cover the commands.
	covers bool
	caFile string

	mu    sync.Mutex
	asked map[string]int // requests, by hook
	last  map[string]map[string]any
}

// hooksOf are the handlers of the extension, by hook. It has lifecycle hooks, too.
var hooksOf = map[string][]string{
	"GeneratePatches": {"commands", "files"}, "DiscoverVariables": {"variables"}, "CanUpdateMachineSet": {"can-update"},
	"CanUpdateMachine": {"can-update-machine"}, "BeforeClusterCreate": {"before"}, "AfterClusterUpgrade": {"after"},
}

func startExtension(t *testing.T, word string) *extension {
	t.Helper()
	x := &extension{word: word, asked: map[string]int{}, last: map[string]map[string]any{}}
	x.Server = httptest.NewTLSServer(x)
	t.Cleanup(x.Close)
	x.caFile = filepath.Join(t.TempDir(), "ca.crt")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: x.Certificate().Raw})
	if err := os.WriteFile(x.caFile, block, 0o600); err != nil {
		t.Fatal(err)
	}
	return x
}

// ServeHTTP implements http.Handler.
func (x *extension) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path := strings.Split(strings.TrimPrefix(r.URL.Path, "/hooks.runtime.cluster.x-k8s.io/v1alpha1/"), "/")
	var body map[string]any
	if err := json.NewDecoder(r.Body).Decode(&body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	kind, _ := body["kind"].(string)
	hook := strings.TrimSuffix(kind, "Request")
	answer := map[string]any{"apiVersion": body["apiVersion"], "kind": hook + "Response", "status": "Success"}
	x.mu.Lock()
	x.asked[hook]++
	x.last[path[len(path)-1]] = body
	x.mu.Unlock()
	switch path[len(path)-1] {
	case "discovery":
		answer["handlers"] = handlers()
	case "variables":
		answer["variables"] = []any{map[string]any{"name": "size", "required": false, "schema": map[string]any{
			"openAPIV3Schema": map[string]any{"type": "integer"},
		}}}
	case "commands":
		answer["items"] = patches(body, "KubeadmConfigTemplate", "/spec/template/spec/preKubeadmCommands", []any{"first", x.word})
	case "files":
		settings, _ := body["settings"].(map[string]any)
		answer["items"] = patches(body, "KubeadmControlPlaneTemplate", "/spec/template/spec/kubeadmConfigSpec/files", []any{
			map[string]any{"path": settings["path"], "content": settings["region"]},
		})
	case "can-update", "can-update-machine":
		if x.covers {
			desired, _ := body["desired"].(map[string]any)
			config, _ := desired["bootstrapConfigTemplate"].(map[string]any)
			patch, _ := json.Marshal(map[string]any{"spec": config["spec"]})
			answer["bootstrapConfigTemplatePatch"] = map[string]any{"patchType": "JSONMergePatch", "patch": patch}
		}
	default:
		http.NotFound(w, r)
		return
	}
	_ = json.NewEncoder(w).Encode(answer)
}

func handlers() (all []any) {
	for hook, names := range hooksOf {
		for _, name := range names {
			all = append(all, map[string]any{"name": name, "requestHook": map[string]any{
				"apiVersion": runtimehooksv1.GroupVersion.String(), "hook": hook,
			}})
		}
	}
	return all
}

// patches adds a value to the objects of a kind.
func patches(body map[string]any, kind, path string, value any) (answers []any) {
	items, _ := body["items"].([]any)
	for _, item := range items {
		item, _ := item.(map[string]any)
		object, _ := item["object"].(map[string]any)
		holder, _ := item["holderReference"].(map[string]any)
		if object["kind"] != kind || holder["kind"] == "MachinePool" {
			continue
		}
		patch, _ := json.Marshal([]any{map[string]any{"op": "add", "path": path, "value": value}})
		answers = append(answers, map[string]any{"uid": item["uid"], "patchType": "JSONPatch", "patch": patch})
	}
	return answers
}

// requests returns what the extension was asked, without discovery.
func (x *extension) requests() string {
	x.mu.Lock()
	defer x.mu.Unlock()
	asked := map[string]int{}
	for hook, n := range x.asked {
		if hook != "Discovery" {
			asked[hook] = n
		}
	}
	return fmt.Sprint(asked)
}
