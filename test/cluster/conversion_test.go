// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/hookgate/hookgate/test/process"
)

// TestStoredInOlderVersion stores an ExtensionConfig in the older version, and starts all gateways anew: the API server can
// list it only with the webhook of a gateway, and a gateway serves it before it has listed anything.
func TestStoredInOlderVersion(t *testing.T) {
	all(t)
	const definition, acme = "crd/extensionconfigs.runtime.hookgate.dev", "extensionconfigs.v1beta2.runtime.hookgate.dev/acme"
	store := func(alpha, beta string) {
		kubectl(t, "patch", definition, "--type=json", "-p", `[{"op": "test", "path": "/spec/versions/0/name", "value": "v1alpha1"},
			{"op": "replace", "path": "/spec/versions/0/storage", "value": `+alpha+`},
			{"op": "replace", "path": "/spec/versions/1/storage", "value": `+beta+`}]`)
	}
	store("true", "false")
	n := 0
	process.EventuallySees(t, process.Patience, "it is stored in the older version", func() (string, bool) {
		n++ // the API server changes its mind some time after the definition
		kubectl(t, "label", "--overwrite", acme, fmt.Sprintf("stored=%d", n))
		text := stored(t, "/registry/runtime.hookgate.dev/extensionconfigs/acme")
		return text, strings.Contains(text, `"apiVersion":"runtime.hookgate.dev/v1alpha1"`)
	})
	kubectl(t, "-n", namespace, "scale", "deployment/hookgate", "--replicas=0")
	kubectl(t, "-n", namespace, "wait", "pods", "-l", "app.kubernetes.io/name=hookgate", "--for=delete", "--timeout=120s")
	store("false", "true") // which empties the API server's cache
	begun := time.Now()
	kubectl(t, "-n", namespace, "scale", "deployment/hookgate", "--replicas=2")
	rolledOut(t, namespace, "hookgate")
	awaitCalls(t)
	t.Logf("calls are answered %s after the start", time.Since(begun).Round(time.Second))
	if log := kubectl(t, "-n", namespace, "logs", "-l", "app.kubernetes.io/name=hookgate", "--tail=-1"); !strings.Contains(log, "cannot convert ExtensionConfigs") {
		t.Errorf("nothing had to be converted: %s", log)
	}
	kubectl(t, "label", acme, "stored-")
}

// stored returns what etcd has.
func stored(t *testing.T, key string) string {
	t.Helper()
	request, err := json.Marshal(map[string][]byte{"key": []byte(key)})
	if err != nil {
		t.Fatal(err)
	}
	response, err := http.Post(etcd+"/v3/kv/range", "application/json", strings.NewReader(string(request)))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	var answer struct{ Kvs []struct{ Value []byte } }
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || len(answer.Kvs) != 1 {
		t.Fatalf("%d values of %s: %v", len(answer.Kvs), key, err)
	}
	return string(answer.Kvs[0].Value)
}
