// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/test/certificates"
)

const (
	lossyCondition = "ConversionLossy"
	lossyText      = "Conversions could not express these members and left them out, by handler and the version that it understands: "
)

// awaitLossy waits until the condition ConversionLossy has message, or is absent if message is empty.
func awaitLossy(t testing.TB, r *replica, name, want string) {
	t.Helper()
	if want != "" {
		want = lossyText + want
	}
	eventually(t, name+": condition "+lossyCondition+" is: "+want, func() (string, bool) {
		config := get(t, r.client, name)
		c := meta.FindStatusCondition(config.Status.Conditions, lossyCondition)
		if c == nil {
			return "no condition", want == ""
		}
		return c.Message, c.Message == want && c.Status == metav1.ConditionTrue && c.Reason == "MembersLost" &&
			c.ObservedGeneration == config.Generation
	})
}

// TestLossesOfCalls: two gateway processes convert requests, and the ExtensionConfig reports the losses of both.
// References that lost their version get the version of the CustomResourceDefinition.
func TestLossesOfCalls(t *testing.T) {
	_, c := connect(t)
	if err := apiextensionsv1.AddToScheme(c.Scheme()); err != nil {
		t.Fatal(err)
	}
	create(t, c, definition("CalledCluster", map[string]string{"cluster.x-k8s.io/v1beta1": "v1alpha4",
		"cluster.x-k8s.io/v1beta2": "v1"}))
	certs := t.TempDir()
	pair := certificates.In(t, certs)
	x := newExtension(t, "a", "b")
	create(t, c, newConfig(t, "called", x))
	for handler, version := range map[string]v1alpha1.ClusterAPIVersion{"a": v1alpha1.ClusterAPIVersionV1Beta1, "b": v1alpha1.ClusterAPIVersionV1Beta2} {
		p := newPolicy(t, "called-"+handler, "called", handler)
		p.Spec.FailurePolicy, p.Spec.ClusterAPIVersion = "", version
		create(t, c, p)
	}
	kubeconfig := writeKubeconfig(t, "https://"+apiServer.ControlPlane.APIServer.Address+":"+apiServer.ControlPlane.APIServer.Port)
	leads := startGateway(t, kubeconfig, certs)
	eventually(t, "the first process leads", func() (string, bool) {
		return leads.log.String(), strings.Contains(leads.log.String(), "this replica leads")
	})
	follows := startGateway(t, kubeconfig, certs)
	awaitAccepted(t, c, "called-a", "Accepted", `In effect for handler "a" of ExtensionConfig "called"`)
	awaitAccepted(t, c, "called-b", "Accepted", `In effect for handler "b" of ExtensionConfig "called"`)

	caller := &http.Client{Transport: &http.Transport{TLSClientConfig: pair.ClientTLS()}, Timeout: patience}
	t.Cleanup(caller.CloseIdleConnections)
	call := func(g *gateway, handler, cluster string) {
		t.Helper()
		body := `{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","kind":"BeforeClusterCreateRequest","cluster":` + cluster + `}`
		eventually(t, "handler "+handler+" answers", func() (string, bool) {
			resp, err := caller.Post("https://"+g.https+"/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclustercreate/"+handler+".called", "application/json", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			answer, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Fatal(err)
			}
			return resp.Status + " " + string(answer), resp.StatusCode == http.StatusOK
		})
	}
	const metadata = `"kind":"Cluster","metadata":{"name":"c","namespace":"default"},"spec":`
	old := func(topology string) string {
		return `{"apiVersion":"cluster.x-k8s.io/v1beta1",` + metadata + `{"topology":{"class":"k","version":"v1.36.3",` + topology + `}}}`
	}
	r := &replica{client: c}
	for _, g := range []*gateway{leads, follows} {
		call(g, "a", `{"apiVersion":"cluster.x-k8s.io/v1beta2",`+metadata+`{"infrastructureRef":{"apiGroup":"infrastructure.cluster.x-k8s.io","kind":"CalledCluster","name":"i"}}}`)
		got, _ := x.seen.Swap("a", "")
		if want := `"apiVersion":"infrastructure.cluster.x-k8s.io/v1"`; !strings.Contains(fmt.Sprint(got), want) ||
			!strings.Contains(fmt.Sprint(got), "cluster.x-k8s.io/v1beta1") {
			t.Errorf("the extension got %s, want a Cluster of v1beta1 that refers to %s", got, want)
		}
	}
	call(follows, "b", old(`"rolloutAfter":"2026-01-01T00:00:00Z"`))
	awaitLossy(t, r, "called", "b (v1beta2) cluster.spec.topology.rolloutAfter")
	call(leads, "b", old(`"controlPlane":{"nodeDrainTimeout":"1500ms"}`))
	awaitLossy(t, r, "called", "b (v1beta2) cluster.spec.topology.controlPlane.nodeDrainTimeout, cluster.spec.topology.rolloutAfter")
}
