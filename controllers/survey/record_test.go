// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// deployments is an API server with Deployments of Cluster API core, which answers patches with a status.
type deployments struct {
	names   []string // namespace/name
	list    int      // the status of the list
	patch   int
	query   string
	path    string
	patched string
}

func (d *deployments) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	code := d.list
	var answer any = map[string]any{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403}
	if r.Method == http.MethodPatch {
		body, _ := io.ReadAll(r.Body)
		code, d.path, d.patched = d.patch, r.URL.Path, string(body)
	} else {
		d.query = r.URL.Query().Get("labelSelector")
	}
	if code == http.StatusOK {
		items := []any{}
		for _, name := range d.names {
			namespace, name, _ := strings.Cut(name, "/")
			items = append(items, map[string]any{"metadata": map[string]any{"namespace": namespace, "name": name}})
		}
		answer = map[string]any{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "items": items}
		if r.Method == http.MethodPatch {
			answer = map[string]any{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1"}
		}
	}
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(answer)
}

func TestRecord(t *testing.T) {
	const core = "capi-system/capi-controller-manager"
	long := strings.Repeat("handler.extension, ", 1000)
	for name, tt := range map[string]struct {
		server         deployments
		refused        string
		patched, error string
	}{
		"Approved": {deployments{names: []string{core}, list: 200, patch: 200}, "",
			`{"metadata":{"annotations":{"hookgate.dev/approved-cluster-api":"v1.14","hookgate.dev/refused-cluster-api":null}}}`, ""},
		"Refused": {deployments{names: []string{core}, list: 200, patch: 200}, "it breaks acme",
			`{"metadata":{"annotations":{"hookgate.dev/approved-cluster-api":null,"hookgate.dev/refused-cluster-api":"it breaks acme"}}}`, ""},
		"Long":           {deployments{names: []string{core}, list: 200, patch: 200}, long, `"hookgate.dev/refused-cluster-api":"handler.ext`, ""},
		"None":           {deployments{list: 200}, "", "", "want one Deployment with the label cluster.x-k8s.io/provider=cluster-api, which runs Cluster API core; there are 0"},
		"Two":            {deployments{names: []string{core, "other/core"}, list: 200}, "", "", "there are 2"},
		"ListForbidden":  {deployments{list: 403}, "", "", "grant the verb list on deployments of the API group apps"},
		"PatchForbidden": {deployments{names: []string{core}, list: 200, patch: 403}, "", "", "grant the verb patch on Deployment " + core},
	} {
		t.Run(name, func(t *testing.T) {
			d := tt.server
			s := httptest.NewServer(&d)
			defer s.Close()
			c, err := NewCluster(&rest.Config{Host: s.URL}, "")
			if err != nil {
				t.Fatal(err)
			}
			deployment, err := c.Record(t.Context(), "v1.14", tt.refused)
			if tt.error != "" {
				if err == nil || !strings.Contains(err.Error(), tt.error) {
					t.Errorf("got %v, want %s", err, tt.error)
				}
				return
			}
			if err != nil || deployment != core || d.query != "cluster.x-k8s.io/provider=cluster-api" {
				t.Errorf("got %s, %v; asked for %s", deployment, err, d.query)
			}
			if !strings.Contains(d.patched, tt.patched) || len(d.patched) > 2000 || !strings.HasSuffix(d.path, "/namespaces/capi-system/deployments/capi-controller-manager") {
				t.Errorf("%s: got %s\nwant %s", d.path, d.patched, tt.patched)
			}
		})
	}
}
