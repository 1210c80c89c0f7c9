// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/test/certificates"
)

// clusterMistake is an object of a kind with a mistake that the schema lets through, and a patch that corrects it.
type clusterMistake struct {
	kind, spec, corrected string
	closed                string // a call that it governs: a hook, and perhaps a handler behind a slash
	mistake               string // a part of what the call gets
}

func clusterMistakes() []clusterMistake {
	return []clusterMistake{
		{
			"ExtensionPolicy", `{targetRef: {name: closes, handler: guarded}, matchConditions: [{name: c, expression: "("}]}`,
			`{"matchConditions":[{"name":"c","expression":"true"}]}`, "BeforeClusterDelete/guarded.closes", "spec.matchConditions[0].expression",
		}, {
			"HandlerChain", `{hook: AfterClusterUpgrades, steps: [{handler: step.closes}]}`,
			`{"hook":"AfterClusterUpgrade"}`, "AfterClusterUpgrade/step.closes", "spec.hook",
		}, {
			"HookRule", `{hook: AfterControlPlaneInitialized, fail: [{if: request.nothing, message: '"no"'}]}`,
			`{"fail":[{"if":"false","message":"\"no\""}]}`, "AfterControlPlaneInitialized", "spec.fail[0].if",
		}, {
			"HookJob", `{hook: AfterControlPlaneUpgrade, namespace: default, matchConditions: [{name: c, expression: "("}]` +
				`, jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: main, image: i}]}}}}}`,
			`{"matchConditions":[{"name":"c","expression":"false"}]}`, "AfterControlPlaneUpgrade", "spec.matchConditions[0].expression",
		}, {
			"ExtensionRollout", `{stable: rolled, approved: [nobody]}`, `{"approved":["*"]}`,
			"BeforeClusterCreate/a.rolled", "spec.approved[0]",
		},
	}
}

// A mistake that the schema lets through closes what the object governs in every replica, and nothing else, until it is
// corrected or the object is deleted. There are no webhooks here.
func TestMistakesClose(t *testing.T) {
	config, c := connect(t)
	x, rolled := newExtension(t, "free"), newExtension(t, "a")
	x.handlers = append(x.handlers, handler("guarded", "BeforeClusterDelete"), handler("step", "AfterClusterUpgrade"))
	x.answer = func([]byte) any {
		return map[string]string{"status": string(runtimehooksv1.ResponseStatusSuccess)}
	}
	rolled.answer = x.answer
	create(t, c, newConfig(t, "closes", x))
	create(t, c, newConfig(t, "rolled", rolled))
	made := func(m clusterMistake, name string) *unstructured.Unstructured {
		o := object(t, fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: %s, labels: {cluster.x-k8s.io/watch-filter: %s}}\nspec: %s\n",
			v1alpha1.GroupVersion, m.kind, name, filterOf(t), m.spec))
		create(t, c, o)
		return o
	}
	objects := map[string]*unstructured.Unstructured{}
	for _, m := range clusterMistakes() {
		objects[m.kind] = made(m, "mistake-"+strings.ToLower(m.kind))
	}
	certs := t.TempDir()
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certificates.In(t, certs).CAPEM)
	calls := &http.Client{Timeout: patience, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	t.Cleanup(calls.CloseIdleConnections)
	kubeconfig := kubeconfigOf(t, config)
	run := func() *gateway {
		return startGateway(t, kubeconfig, certs, "--resync", "1s", "--hook-jobs-namespace", "default",
			"--hook-jobs-service-account", "default")
	}
	both := []*gateway{run(), run()}
	ask := func(g *gateway, call string) string {
		t.Helper()
		hook, handler, _ := strings.Cut(call, "/")
		body := strings.ReplaceAll(request, "BeforeClusterCreate", hook)
		answer, err := calls.Post("https://"+g.https+"/hooks.runtime.cluster.x-k8s.io/v1alpha1/"+
			strings.TrimSuffix(strings.ToLower(hook)+"/"+handler, "/"), "application/json", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		if err != nil {
			t.Fatal(err)
		}
		return answer.Status + " " + string(text)
	}
	isClosed := func(said string, m clusterMistake, name string) bool {
		return strings.HasPrefix(said, "503 ") && strings.Contains(said, m.kind+` \"`+name+`\" has a mistake`) &&
			strings.Contains(said, m.mistake)
	}
	for _, g := range both {
		eventually(t, "what no object names is called", func() (string, bool) {
			said := ask(g, "BeforeClusterCreate/free.closes")
			return said, strings.Contains(said, `"Success"`)
		})
	}
	for _, m := range clusterMistakes() {
		t.Run(m.kind, func(t *testing.T) {
			o := objects[m.kind]
			for _, g := range both {
				if said := ask(g, m.closed); !isClosed(said, m, o.GetName()) {
					t.Errorf("%s: got %s, want the mistake of %s %q", m.closed, said, m.kind, o.GetName())
				}
			}
			eventually(t, "its condition says so", func() (string, bool) {
				if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
					t.Fatal(err)
				}
				found, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
				said := fmt.Sprint(found)
				return said, strings.Contains(said, "reason:Invalid") &&
					strings.Contains(said, "the gateway refuses every call that the object may apply to (NotReady)")
			})
			opens := func(what string) {
				t.Helper()
				for _, g := range both {
					eventually(t, what+" opens", func() (string, bool) {
						said := ask(g, m.closed)
						return said, !strings.Contains(said, "has a mistake")
					})
				}
			}
			patch := client.RawPatch(types.MergePatchType, []byte(`{"spec":`+m.corrected+`}`))
			if err := c.Patch(t.Context(), o, patch); err != nil {
				t.Fatal(err)
			}
			opens("to correct it")
			if err := c.Delete(t.Context(), o); err != nil {
				t.Fatal(err)
			}

			// One that comes while the gateways run closes as well, until it is deleted.
			later := made(m, "later-"+strings.ToLower(m.kind))
			for _, g := range both {
				eventually(t, "a new one closes", func() (string, bool) {
					said := ask(g, m.closed)
					return said, isClosed(said, m, later.GetName())
				})
			}
			if err := c.Delete(t.Context(), later); err != nil {
				t.Fatal(err)
			}
			opens("to delete it")
		})
	}
}
