// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hookgate/hookgate/controllers"
)

// A blocked update has an event with the object's UID, cut to what an event has room for. Of an object that does not
// exist there is none, and a replica that writes nothing writes no event.
func TestEventsOfBlockedUpdates(t *testing.T) {
	api := newAPIServer(t)
	owner := corev1.ObjectReference{
		APIVersion: "controlplane.cluster.x-k8s.io/v1beta2", Kind: "KubeadmControlPlane", Namespace: "team", Name: "cp",
	}
	o := &metav1.PartialObjectMetadata{TypeMeta: metav1.TypeMeta{APIVersion: owner.APIVersion, Kind: owner.Kind}}
	o.Namespace, o.Name, o.UID = owner.Namespace, owner.Name, "uid-of-cp"
	api.put("/apis/controlplane.cluster.x-k8s.io/v1beta2/namespaces/team/kubeadmcontrolplanes/cp", o)
	readOnly := start(t, api, func(c *controllers.Config) { c.ReadOnly = true })
	readOnly.source.Blocked(owner, "chain", "of a replica that writes nothing")
	r := start(t, api, nil)
	missing := owner
	missing.Name = "none"
	r.source.Blocked(missing, "chain", "of nothing")
	r.awaitLog(t, "no event is written, because its object cannot be read")
	r.source.Blocked(owner, "chain", "no step covers /machine/spec/version "+strings.Repeat("x", 2000))
	eventually(t, "an event", func() (string, bool) {
		events := api.events()
		return fmt.Sprint(events), slices.ContainsFunc(events, func(e string) bool {
			return strings.HasPrefix(e, "Warning InPlaceUpdateBlocked: no step covers /machine/spec/version x") && len(e) < 1100
		})
	})
	if events := api.events(); len(events) != 1 {
		t.Errorf("events are %q", events)
	}
	if about := api.regarding(); !slices.Equal(about, []string{"KubeadmControlPlane team/cp uid-of-cp HandlerChain chain"}) {
		t.Errorf("they are about %q", about)
	}
}

// A rule with action: Audit has an event, which names the Cluster.
func TestEventsOfAudits(t *testing.T) {
	api := newAPIServer(t)
	api.rule("r", `"no"`)
	r := start(t, api, nil)
	r.source.Audited("r", "team", "c", "hold: not today")
	eventually(t, "an event", func() (string, bool) {
		events := api.events()
		return fmt.Sprint(events), slices.Equal(events, []string{"Normal Audit: hold: not today"})
	})
	if about := api.regarding(); !slices.Equal(about, []string{"HookRule /r 1 Cluster c"}) {
		t.Errorf("it is about %q", about)
	}
}

// An answer that has changed is an event of its ExtensionConfig, which names the Cluster.
func TestEventsOfChangedAnswers(t *testing.T) {
	api := newAPIServer(t)
	api.register("acme", nil)
	r := start(t, api, nil)
	r.source.Changed("acme", "team", "c", "p.acme: an equal request has another answer than before: /status")
	eventually(t, "an event", func() (string, bool) {
		events := api.events()
		return fmt.Sprint(events), slices.Contains(events, "Warning AnswerChanged: p.acme: an equal request has another answer than before: /status")
	})
	if about := api.regarding(); len(about) != 1 || !strings.HasPrefix(about[0], "ExtensionConfig /acme ") || !strings.HasSuffix(about[0], " Cluster c") {
		t.Errorf("it is about %q", about)
	}
}
