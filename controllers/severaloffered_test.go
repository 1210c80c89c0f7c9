// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hookgate/hookgate/api/v1alpha1"
)

// Cluster API takes one handler of an in-place hook in all. The ExtensionConfigs whose handlers are offered beside each
// other say so, whichever came first and without a change of theirs, until a chain stands for them.
func TestSeveralOffered(t *testing.T) {
	const several = "SeveralOffered"
	api := newAPIServer(t)
	r := start(t, api, nil)
	disks := named("disks", "")
	disks.Hook.Hook = "CanUpdateMachine"
	r.extensions.serve(disks, named("create", ""))
	api.register("acme", nil)
	api.awaitDiscovered(t, "acme")
	api.awaitNone(t, "acme", several)

	api.register("other", nil)
	const message = "Cluster API accepts only one handler of CanUpdateMachine, but 2 are offered: disks--acme, disks--other; put them into one HandlerChain"
	api.awaitCondition(t, "acme", several, metav1.ConditionTrue, message)
	api.awaitCondition(t, "other", several, metav1.ConditionTrue, message)
	api.awaitDiscovered(t, "acme")
	eventually(t, "an event warns", func() (string, bool) {
		got := strings.Join(api.events(), "\n")
		return got, strings.Contains(got, "Warning SeveralOffered: "+message)
	})

	api.chain("both", "disks.acme", "disks.other")
	api.change("both", func(c *v1alpha1.HandlerChainSpec) { c.Hook = "CanUpdateMachine" })
	api.awaitNone(t, "acme", several)
	api.awaitNone(t, "other", several)

	api.change("both", func(c *v1alpha1.HandlerChainSpec) { c.Steps = c.Steps[:1] })
	api.awaitNone(t, "acme", several)
	api.awaitCondition(t, "other", several, metav1.ConditionTrue, "Cluster API accepts only one handler of CanUpdateMachine, but 2 are offered: both, disks--other; put them into one HandlerChain")
	api.awaitReady(t, "both", v1alpha1.SeveralOfferedReason, "")
}
