// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/controllers"
	"github.com/hookgate/hookgate/internal/contract/convert"
)

const (
	lossy     = "ConversionLossy"
	lossyText = "Conversions could not express these members and left them out, by handler and the version that it understands: "
)

func (s *apiServer) awaitLossy(t testing.TB, name, message string) {
	t.Helper()
	s.awaitCondition(t, name, lossy, metav1.ConditionTrue, lossyText+message)
}

func TestLeaderTellsLosses(t *testing.T) {
	api := newAPIServer(t)
	losses := convert.NewLosses(nil)
	r := start(t, api, func(c *controllers.Config) { c.Losses = losses })
	r.extensions.serve(named("a", "v1beta1"), named("b", "v1beta1"), named("c", ""))
	api.register("acme", nil)
	api.awaitDiscovered(t, "acme")
	api.awaitNone(t, "acme", lossy)
	losses.Record("acme", "c", []string{"cluster.spec.c"}) // which is never converted
	losses.Record("acme", "b", []string{"cluster.spec.b"})
	losses.Record("acme", "a", []string{"cluster.spec.z", "cluster.spec.a"})
	const all = "a (v1beta1) cluster.spec.a, cluster.spec.z; b (v1beta1) cluster.spec.b"
	api.awaitLossy(t, "acme", all)
	eventually(t, "an event warns", func() (string, bool) {
		got := strings.Join(api.events(), "\n")
		return got, strings.Contains(got, "Warning MembersLost: "+lossyText)
	})
	r.stop()

	// A restart knows it from the API server, and writes nothing.
	again := start(t, api, func(c *controllers.Config) {
		c.Losses, c.Resync = convert.NewLosses(nil), 10*time.Millisecond
		serving(c, named("a", "v1beta1"), named("b", "v1beta1"), named("c", ""))
	})
	again.extensions.rounds(t, 1)
	marked := len(api.written())
	again.extensions.rounds(t, 20)
	api.awaitLossy(t, "acme", all)
	if got := api.written()[marked:]; len(got) > 0 && strings.Contains(got[0].body, "b (v1beta1)") {
		t.Errorf("it has written %v", got)
	}
	// A failure and a pause leave it as it is.
	again.extensions.fail("connection refused")
	api.awaitCondition(t, "acme", discovered, metav1.ConditionFalse, "connection refused; its last known handlers are still served: 3")
	api.awaitLossy(t, "acme", all)
	api.register("acme", func(c *runtimev1.ExtensionConfig) { c.Annotations[clusterv1.PausedAnnotation] = "" })
	api.awaitCondition(t, "acme", paused, metav1.ConditionTrue, "annotation cluster.x-k8s.io/paused is set")
	api.awaitLossy(t, "acme", all)
	again.extensions.serve(named("a", "v1beta1"), named("b", "v1beta1"), named("c", ""))
	api.register("acme", func(c *runtimev1.ExtensionConfig) { delete(c.Annotations, clusterv1.PausedAnnotation) })
	api.awaitDiscovered(t, "acme")

	// Of another version, of a handler that is gone, and of another generation it is not kept.
	again.extensions.serve(named("a", "v1beta2"), named("b", "v1beta1"))
	api.awaitLossy(t, "acme", "b (v1beta1) cluster.spec.b")
	again.extensions.serve(named("a", "v1beta2"))
	api.awaitNone(t, "acme", lossy)
}

func TestNewGenerationForgetsLosses(t *testing.T) {
	api := newAPIServer(t)
	losses := convert.NewLosses(nil)
	r := start(t, api, func(c *controllers.Config) { c.Losses = losses })
	r.extensions.serve(named("a", "v1beta1"))
	api.register("acme", nil)
	api.awaitDiscovered(t, "acme")
	losses.Record("acme", "a", []string{"cluster.spec.a"})
	api.awaitLossy(t, "acme", "a (v1beta1) cluster.spec.a")
	api.register("acme", func(c *runtimev1.ExtensionConfig) { c.Spec.Settings = map[string]string{"k": "v"} })
	api.awaitNone(t, "acme", lossy)
	if left := losses.Of("acme"); len(left) > 0 {
		t.Errorf("it remembers %v", left)
	}
	losses.Record("acme", "a", []string{"cluster.spec.b"})
	api.awaitLossy(t, "acme", "a (v1beta1) cluster.spec.b")
	api.remove(configs + "acme")
	eventually(
		t,
		"what a deleted one lost is forgotten",
		func() (string, bool) { left := losses.Of("acme"); return fmt.Sprint(left), len(left) == 0 },
	)
}

func TestFollowerAddsLosses(t *testing.T) {
	api := newAPIServer(t)
	first := start(t, api, nil)
	first.extensions.serve(named("a", "v1beta1"), named("b", "v1beta1"))
	api.register("acme", nil)
	api.awaitDiscovered(t, "acme")
	first.stop()
	before := api.get("acme")
	marked := len(api.written())

	known := []*convert.Losses{convert.NewLosses(nil), convert.NewLosses(nil), convert.NewLosses(nil)}
	var replicas []*replica
	for i, losses := range known {
		r := start(t, api, func(c *controllers.Config) {
			following(api)(c)
			c.Losses, c.ReadOnly = losses, i == 2
		})
		r.awaitServed(t, "a.acme https://acme.example.com", "b.acme https://acme.example.com")
		replicas = append(replicas, r)
	}
	expectWrites(t, api, marked)
	known[2].Record("acme", "a", []string{"cluster.spec.unread"}) // by the one that only reads
	known[0].Record("acme", "b", []string{"cluster.spec.b"})
	api.awaitLossy(t, "acme", "b (v1beta1) cluster.spec.b")
	// At the same time: the later one sees what the other has written.
	known[0].Record("acme", "a", []string{"cluster.spec.x"})
	known[1].Record("acme", "a", []string{"cluster.spec.y"})
	api.awaitLossy(t, "acme", "a (v1beta1) cluster.spec.x, cluster.spec.y; b (v1beta1) cluster.spec.b")
	after := api.get("acme")
	if fmt.Sprint(
		before.Status.Handlers,
		before.Status.Conditions,
	) != fmt.Sprint(
		after.Status.Handlers,
		after.Status.Conditions[:len(before.Status.Conditions)],
	) {
		t.Errorf("followers have changed the rest of the status from %v to %v", before.Status, after.Status)
	}
	for _, r := range replicas {
		if calls := r.extensions.calls(); len(calls) > 0 {
			t.Errorf("a follower has asked %v", calls)
		}
	}
}

func TestFollowerTriesAgainWhatIsRefused(t *testing.T) {
	for name, refusal := range map[string]error{
		"conflict": apierrors.NewConflict(schema.GroupResource{Resource: "extensionconfigs"}, "acme", errors.New("modified")),
		"error":    apierrors.NewInternalError(errors.New("etcd is away")),
	} {
		t.Run(name, func(t *testing.T) {
			api := newAPIServer(t)
			first := start(t, api, nil)
			first.extensions.serve(named("a", "v1beta1"))
			api.register("acme", nil)
			api.awaitDiscovered(t, "acme")
			first.stop()
			var once atomic.Bool
			api.before(func(method, path string) error {
				if method == http.MethodPatch && strings.HasPrefix(path, configs) && !once.Swap(true) {
					return refusal
				}
				return nil
			})
			losses := convert.NewLosses(nil)
			r := start(t, api, func(c *controllers.Config) { following(api)(c); c.Losses = losses })
			r.awaitServed(t, "a.acme https://acme.example.com")
			losses.Record("acme", "a", []string{"cluster.spec.a"})
			api.awaitLossy(t, "acme", "a (v1beta1) cluster.spec.a")
			if !once.Load() {
				t.Error("nothing was refused")
			}
		})
	}
}
