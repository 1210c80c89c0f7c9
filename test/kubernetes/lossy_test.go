// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/controllers"
	"github.com/hookgate/hookgate/internal/convert"
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

// TestLosses: losses of conversions become a condition, which survives a restart and is removed with its reason.
func TestLosses(t *testing.T) {
	losses := convert.NewLosses(nil)
	quick := func(losses *convert.Losses) func(*controllers.Config) {
		return func(c *controllers.Config) { c.Losses, c.Resync = losses, 50*time.Millisecond }
	}
	r := start(t, func(c *controllers.Config) { c.Losses = losses }) // looks by itself once an hour
	x := newStating(t, "v1beta1", "v1beta1", "")
	x.register(t, r, "losses")
	awaitCondition(t, r.client, "losses", discoveredCondition, metav1.ConditionTrue, "")
	awaitLossy(t, r, "losses", "")

	losses.Record("losses", "b", []string{"cluster.spec.b"})
	losses.Record("losses", "c", []string{"cluster.spec.c"}) // for which no policy states what it understands
	awaitLossy(t, r, "losses", "b (v1beta1) cluster.spec.b")
	awaitEventOf(t, r, corev1.EventTypeWarning, "losses", "MembersLost", "b (v1beta1) cluster.spec.b")
	losses.Record("losses", "a", []string{"cluster.spec.z", "cluster.spec.a"})
	const all = "a (v1beta1) cluster.spec.a, cluster.spec.z; b (v1beta1) cluster.spec.b"
	awaitLossy(t, r, "losses", all)
	x.state("v1beta1", "v1beta1") // which the condition does not mind
	update(t, r.client, "losses", func(c *runtimev1.ExtensionConfig) {
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, "look", "again")
	})
	eventually(t, "handler c is gone", func() (string, bool) {
		n := len(get(t, r.client, "losses").Status.Handlers)
		return strconv.Itoa(n), n == 2
	})
	awaitLossy(t, r, "losses", all)
	r.stop()

	fresh := convert.NewLosses(nil)
	again := start(t, quick(fresh))
	again.ready(t)
	rounds := func(n int64) {
		asked := x.discovery.Load()
		eventually(t, fmt.Sprintf("%d more rounds", n),
			func() (string, bool) {
				more := x.discovery.Load() - asked
				return strconv.FormatInt(more, 10), more >= n
			})
	}
	rounds(10)
	if written := again.writes.all(); len(written) > 0 {
		t.Errorf("after a restart, it wrote %v", written)
	}
	awaitLossy(t, again, "losses", all)
	fresh.Record("losses", "b", []string{"cluster.spec.a"})
	awaitLossy(t, again, "losses", "a (v1beta1) cluster.spec.a, cluster.spec.z; b (v1beta1) cluster.spec.a, cluster.spec.b")
	before := get(t, again.client, "losses").ResourceVersion
	fresh.Record("losses", "a", []string{"cluster.spec.z"}) // which the condition has
	rounds(10)
	if now := get(t, again.client, "losses").ResourceVersion; now != before {
		t.Errorf("for what the condition says, resourceVersion went from %s to %s", before, now)
	}

	// A change of the policy does not change what the extension states.
	own := newPolicy(t, "losses-b", "losses", "b")
	own.Spec.FailurePolicy, own.Spec.ClusterAPIVersion = "", v1alpha1.ClusterAPIVersionV1Beta2
	create(t, again.client, own)
	awaitLossy(t, again, "losses", "a (v1beta1) cluster.spec.a, cluster.spec.z")
	fresh.Record("losses", "b", []string{"cluster.spec.new"})
	awaitLossy(t, again, "losses", "a (v1beta1) cluster.spec.a, cluster.spec.z; b (v1beta2) cluster.spec.new")
	x.state("v1beta2", "v1beta1")
	awaitLossy(t, again, "losses", "b (v1beta2) cluster.spec.new")
	update(t, again.client, "losses", func(c *runtimev1.ExtensionConfig) { c.Spec.Settings = map[string]string{"k": "v"} })
	awaitLossy(t, again, "losses", "")
	eventually(t, "of another generation, it remembers nothing", func() (string, bool) {
		left := fresh.Of("losses")
		return fmt.Sprint(left), len(left) == 0
	})

	fresh.Record("losses", "b", []string{"cluster.spec.last"})
	awaitLossy(t, again, "losses", "b (v1beta2) cluster.spec.last")
	update(t, again.client, "losses", func(c *runtimev1.ExtensionConfig) {
		metav1.SetMetaDataAnnotation(&c.ObjectMeta, clusterv1.PausedAnnotation, "")
	})
	awaitCondition(t, again.client, "losses", pausedCondition, metav1.ConditionTrue, "")
	fresh.Record("losses", "a", []string{"cluster.spec.first"}) // it is called all the same
	awaitLossy(t, again, "losses", "a (v1beta2) cluster.spec.first; b (v1beta2) cluster.spec.last")
	if err := again.client.Delete(t.Context(), get(t, again.client, "losses")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "what was lost is forgotten", func() (string, bool) { left := fresh.Of("losses"); return fmt.Sprint(left), len(left) == 0 })
}

// TestLossesOfAFollower: calls reach any replica, so a follower adds its losses to the condition, and writes nothing
// else; a read-only replica does not.
func TestLossesOfAFollower(t *testing.T) {
	known := map[string]*convert.Losses{"leader": convert.NewLosses(nil), "follower": convert.NewLosses(nil),
		"second": convert.NewLosses(nil), "reader": convert.NewLosses(nil)}
	replicas := map[string]*replica{}
	x := newStating(t, "v1beta1", "v1beta1")
	for _, name := range []string{"leader", "follower", "second", "reader"} {
		r := start(t, func(c *controllers.Config) {
			c.Losses, c.LeaderElection, c.ReadOnly = known[name], election(t), name == "reader"
		})
		replicas[name] = r
		r.ready(t)
		if name == "leader" {
			x.register(t, r, "follower-losses")
			awaitCondition(t, r.client, "follower-losses", discoveredCondition, metav1.ConditionTrue, "")
		}
		awaitUnderstood(t, name, r, "a=v1beta1 b=v1beta1")
	}
	leader := replicas["leader"]
	known["reader"].Record("follower-losses", "a", []string{"cluster.spec.unread"})
	known["follower"].Record("follower-losses", "a", []string{"cluster.spec.a"})
	awaitLossy(t, leader, "follower-losses", "a (v1beta1) cluster.spec.a")

	// All write at the same time: the later ones see what the others have written.
	known["follower"].Record("follower-losses", "a", []string{"cluster.spec.b"})
	known["second"].Record("follower-losses", "a", []string{"cluster.spec.c"})
	known["leader"].Record("follower-losses", "b", []string{"cluster.spec.d"})
	awaitLossy(t, leader, "follower-losses", "a (v1beta1) cluster.spec.a, cluster.spec.b, cluster.spec.c; b (v1beta1) cluster.spec.d")
	if c := awaitCondition(t, leader.client, "follower-losses", discoveredCondition, metav1.ConditionTrue, ""); len(c.Status.Handlers) != 2 {
		t.Errorf("handlers are %v", c.Status.Handlers)
	}
	for _, name := range []string{"follower", "second"} {
		for _, w := range replicas[name].writes.all() {
			const path = "PATCH /apis/runtime.cluster.x-k8s.io/v1beta2/extensionconfigs/follower-losses"
			if w != path && w != path+"/status" {
				t.Errorf("%s wrote %s", name, w)
			}
		}
	}
	if written := replicas["reader"].writes.all(); len(written) > 0 {
		t.Errorf("the one that only reads wrote %v", written)
	}

	// The next leader has seen no loss itself.
	leader.stop()
	eventually(t, "another leads", func() (string, bool) {
		for _, name := range []string{"follower", "second"} {
			if strings.Contains(replicas[name].log.String(), "this replica leads") {
				return "", true
			}
		}
		return "no replica leads", false
	})
	x.state("v1beta1", "v1beta1", "v1beta1")
	update(t, leader.client, "follower-losses", func(c *runtimev1.ExtensionConfig) { metav1.SetMetaDataAnnotation(&c.ObjectMeta, "look", "again") })
	eventually(t, "the new leader has discovered", func() (string, bool) {
		n := len(get(t, leader.client, "follower-losses").Status.Handlers)
		return strconv.Itoa(n), n == 3
	})
	awaitLossy(t, leader, "follower-losses", "a (v1beta1) cluster.spec.a, cluster.spec.b, cluster.spec.c; b (v1beta1) cluster.spec.d")
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
