// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"github.com/hookgate/hookgate/internal/cli/preflight"
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
	approved := Verdict{
		Component: preflight.ClusterAPI, Release: "v1.14", Registrations: []string{"runtime.hookgate.dev/acme@7", "hookgate.dev/p@8"},
	}
	refused := func(why string) Verdict { return Verdict{Component: preflight.ClusterAPI, Refused: why} }
	long := strings.Repeat("handler.extension, ", 1000)
	for name, tt := range map[string]struct {
		server         deployments
		verdict        Verdict
		patched, error string
	}{
		"Approved": {deployments{names: []string{core}, list: 200, patch: 200}, approved,
			`"hookgate.dev/approved-cluster-api":"v1.14","hookgate.dev/approved-registrations":"runtime.hookgate.dev/acme@7,hookgate.dev/p@8","hookgate.dev/approved-until":"2`, ""},
		"Gateway": {deployments{names: []string{core}, list: 200, patch: 200}, Verdict{Component: preflight.Gateway, Release: "v0.1.0"},
			`"hookgate.dev/approved-hookgate":"v0.1.0"`, ""},
		"TooMany": {deployments{}, Verdict{Component: preflight.ClusterAPI, Registrations: slices.Repeat([]string{"runtime.hookgate.dev/acme@7"}, 10_000)},
			"", "the names of 10000 registrations take up 279999 bytes in total, but an approval has room for only 204800 bytes: annotate the Deployment with hookgate.dev/approved-cluster-api=any instead"},
		"Refused": {deployments{names: []string{core}, list: 200, patch: 200}, refused("it breaks acme"),
			`{"metadata":{"annotations":{"hookgate.dev/approved-cluster-api":null,"hookgate.dev/approved-registrations":null,"hookgate.dev/approved-until":null,"hookgate.dev/refused-cluster-api":"it breaks acme"}}}`, ""},
		"Long":           {deployments{names: []string{core}, list: 200, patch: 200}, refused(long), `"hookgate.dev/refused-cluster-api":"handler.ext`, ""},
		"None":           {deployments{list: 200}, approved, "", "want one Deployment with the label cluster.x-k8s.io/provider=cluster-api; there are 0"},
		"Two":            {deployments{names: []string{core, "other/core"}, list: 200}, approved, "", "there are 2"},
		"ListForbidden":  {deployments{list: 403}, approved, "", "grant the verb list on deployments of the API group apps"},
		"PatchForbidden": {deployments{names: []string{core}, list: 200, patch: 403}, approved, "", "grant the verb patch on Deployment " + core},
	} {
		t.Run(name, func(t *testing.T) {
			d := tt.server
			s := httptest.NewServer(&d)
			defer s.Close()
			c, err := NewCluster(&rest.Config{Host: s.URL}, "")
			if err != nil {
				t.Fatal(err)
			}
			deployment, err := c.Record(t.Context(), tt.verdict)
			if tt.error != "" {
				if err == nil || !strings.Contains(err.Error(), tt.error) {
					t.Errorf("got %v, want %s", err, tt.error)
				}
				return
			}
			if err != nil || deployment != core || d.query != "cluster.x-k8s.io/provider="+map[string]string{preflight.ClusterAPI: "cluster-api", preflight.Gateway: "runtime-extension-hookgate"}[tt.verdict.Component] {
				t.Errorf("got %s, %v; asked for %s", deployment, err, d.query)
			}
			if !strings.Contains(d.patched, tt.patched) || len(d.patched) > 2000 || !strings.HasSuffix(d.path, "/namespaces/capi-system/deployments/capi-controller-manager") {
				t.Errorf("%s: got %s\nwant %s", d.path, d.patched, tt.patched)
			}
		})
	}
}
