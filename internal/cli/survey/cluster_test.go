// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package survey

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/catalog"
)

// TestRegistered checks what the status of an ExtensionConfig says about whether its handlers are known.
func TestRegistered(t *testing.T) {
	handler := func(name string) runtimev1.ExtensionHandler {
		return runtimev1.ExtensionHandler{Name: name, RequestHook: runtimev1.GroupVersionHook{
			APIVersion: "hooks.runtime.cluster.x-k8s.io/v1alpha1", Hook: "BeforeClusterCreate",
		}}
	}
	discovered := func(status metav1.ConditionStatus) []metav1.Condition {
		return []metav1.Condition{{
			Type: runtimev1.ExtensionConfigDiscoveredCondition, Status: status, Message: "connection refused",
		}}
	}
	const unknown = "the handlers of the extension are not known: "
	for name, tc := range map[string]struct {
		status   runtimev1.ExtensionConfigStatus
		handlers int
		want     string // the beginning of Undiscovered
	}{
		"New": {runtimev1.ExtensionConfigStatus{}, 0, unknown + "it has not been discovered"},
		"Failed": {
			runtimev1.ExtensionConfigStatus{Conditions: discovered(metav1.ConditionFalse)}, 0,
			unknown + "it has not been discovered: connection refused",
		},
		"NoHandlers": {runtimev1.ExtensionConfigStatus{Conditions: discovered(metav1.ConditionTrue)}, 0, ""},
		"Handlers":   {runtimev1.ExtensionConfigStatus{Handlers: []runtimev1.ExtensionHandler{handler("a.acme")}}, 1, ""},
		"LastKnown": {
			runtimev1.ExtensionConfigStatus{
				Handlers: []runtimev1.ExtensionHandler{handler("a.acme")}, Conditions: discovered(metav1.ConditionFalse),
			}, 1, "",
		},
		"Wrong": {
			runtimev1.ExtensionConfigStatus{
				Handlers: []runtimev1.ExtensionHandler{handler("a.other")}, Conditions: discovered(metav1.ConditionTrue),
			}, 0, unknown + "status.handlers[0].name: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			config := &runtimev1.ExtensionConfig{ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Status: tc.status}
			x := registered(config, catalog.New())
			if len(x.Handlers) != tc.handlers || !strings.HasPrefix(x.Undiscovered, tc.want) || (tc.want == "") != (x.Undiscovered == "") {
				t.Errorf("got %d handlers, %q, want %d, %q", len(x.Handlers), x.Undiscovered, tc.handlers, tc.want)
			}
			if (x.Discover == "") != (tc.want == "") {
				t.Errorf("got the advice %q", x.Discover)
			}
		})
	}
}
