// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrahooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	infrav1 "github.com/hookgate/hookgate/provider/v1alpha1"
)

// events returns the events of an object, by reason.
func (w *fixture) events(o client.Object) map[string][]eventsv1.Event {
	w.t.Helper()
	list := &eventsv1.EventList{}
	if err := w.client.List(w.t.Context(), list, client.InNamespace(w.namespace)); err != nil {
		w.t.Fatal(err)
	}
	byReason := map[string][]eventsv1.Event{}
	for _, e := range list.Items {
		if e.Regarding.Name == o.GetName() && e.Regarding.Kind == kind(o) {
			byReason[e.Reason] = append(byReason[e.Reason], e)
		}
	}
	return byReason
}

// Events say what people look for: why it failed, that it was made, and that it is deleted. A failure that lasts is one
// event, however often it is tried.
func TestEvents(t *testing.T) {
	w := newFixture(t)
	w.readyCluster("c")
	w.cloud.answers(func(req proto.Message) (proto.Message, error) {
		if _, ok := req.(*infrahooksv1alpha1.ReconcileMachineRequest); ok {
			return &infrahooksv1alpha1.ReconcileMachineResponse{
				Status: success, Phase: infrahooksv1alpha1.Phase_PHASE_FAILED, Reason: infrav1.QuotaExceededReason,
				Message: "ask for more cores", RetryAfterSeconds: 1,
			}, nil
		}
		return nil, nil
	})
	_, m := w.newMachine("c", "m")
	n := w.cloud.count()
	w.until("tried three times", func() bool { return w.cloud.count() >= n+3 })
	w.cloud.answers(nil)
	eventually(w, m, "provisioned", isProvisioned)
	w.delete(m)
	w.gone(m)
	for reason, note := range map[string]string{
		infrav1.QuotaExceededReason: "ask for more cores", "Provisioned": "fake://" + m.Spec.ExternalID,
		"Deleted": "nothing is left outside",
	} {
		w.until("the event "+reason, func() bool { return len(w.events(m)[reason]) > 0 })
		list := w.events(m)[reason]
		if len(list) != 1 || !strings.Contains(list[0].Note, note) || list[0].Series != nil {
			t.Errorf("the events %s are %v", reason, list)
		}
	}
}
