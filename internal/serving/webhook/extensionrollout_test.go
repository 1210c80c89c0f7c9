// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/kinds/rollout"
	"github.com/hookgate/hookgate/registry"
)

// movedTo is how many Clusters of the ExtensionRollout "roll" have moved. Nil is not known yet.
type movedTo map[string]int

func (m movedTo) Readable() bool { return m != nil }

func (m movedTo) Moved(rollout string) map[string]int {
	if rollout == "roll" {
		return m
	}
	return nil
}

// handlerOfRollouts returns the webhooks of a gateway with the ExtensionRollouts roll, of acme and other, and taken.
func handlerOfRollouts(t *testing.T, moved movedTo) http.Handler {
	t.Helper()
	r := beside(t)
	r.SetRollouts([]registry.Rollout{
		{Name: "roll", Stable: "acme", Candidate: "other"}, {Name: "taken", Stable: "mine"},
	})
	h, err := New(Config{Group: group, Logger: slog.New(slog.DiscardHandler), Catalog: catalog.New(), Registry: r, Rollouts: moved})
	if err != nil {
		t.Fatal(err)
	}
	return h
}

func newRollout(name, stable, candidate string) *v1alpha1.ExtensionRollout {
	o := &v1alpha1.ExtensionRollout{}
	o.APIVersion, o.Kind, o.Name = "hookgate.dev/v1alpha1", "ExtensionRollout", name
	o.Spec.Stable, o.Spec.Candidate = stable, candidate
	return o
}

func TestRefusalsOfExtensionRollouts(t *testing.T) {
	roll := newRollout("roll", "acme", "other")
	paused := roll.DeepCopy()
	paused.Spec.Paused = true
	wrong := roll.DeepCopy()
	wrong.Spec.Approved = []string{"a"}
	deleted := newRollout("roll", "acme", "z")
	deleted.DeletionTimestamp = &metav1.Time{}
	*deleted.DeletionTimestamp = metav1.Now()
	refused := func(name, text string) string {
		return `ExtensionRollout.hookgate.dev "` + name + `" is invalid: ` + text
	}
	three := movedTo{"other": 3}
	const missing = `handlers of ExtensionConfig "new" are not known; `
	for reason, tt := range map[string]struct {
		moved       movedTo
		old, object *v1alpha1.ExtensionRollout
		want        string // the beginning of the refusal; empty if it is allowed
		warning     string // a part of the only one
	}{
		"a new one":                      {movedTo{}, nil, newRollout("own", "v1", "new"), "", ""},
		"the name of a member":           {movedTo{}, nil, newRollout("acme", "v1", ""), refused("acme", `[metadata.name: Invalid value: "acme": also belongs to ExtensionRollout "roll": an ExtensionConfig can be in only one`), ""},
		"a member of another":            {movedTo{}, nil, newRollout("own", "acme", "mine"), refused("own", `[spec.stable: Invalid value: "acme": also belongs to ExtensionRollout "roll": an ExtensionConfig can be in only one ExtensionRollout, spec.candidate: Invalid value: "mine": also belongs to ExtensionRollout "taken"`), ""},
		"the name of a chain":            {movedTo{}, nil, newRollout("of", "v1", ""), refused("of", `metadata.name: Invalid value: "of": is the name of HandlerChain "of": choose another name`), ""},
		"a mistake":                      {movedTo{}, nil, wrong, refused("roll", `spec.approved[0]: Invalid value: "a": must be namespace/name`), ""},
		"no change of members":           {nil, roll, paused, "", ""},
		"moved Clusters have the stable": {three, roll, newRollout("roll", "other", ""), "", "spec.stable: other now answers for all Clusters that have not moved"},
		"moved Clusters have nothing":    {three, roll, newRollout("roll", "acme", "new"), refused("roll", `spec.candidate: Forbidden: 3 Clusters have moved to "other", which would be neither stable nor candidate: make it stable (hookgate rollout promote roll), or move the Clusters back first (hookgate rollout undo roll)`), ""},
		"no Cluster has moved":           {movedTo{}, roll, newRollout("roll", "acme", "new"), "", "spec.candidate: the " + missing},
		"nothing is known yet":           {nil, roll, newRollout("roll", "acme", "new"), refused("roll", "spec.candidate: Forbidden: it is not known yet which Clusters have moved"), ""},
		"created anew with moved ones":   {movedTo{"gone": 1}, nil, roll, refused("roll", `spec.candidate: Forbidden: 1 Cluster has moved to "gone"`), ""},
		"one that goes":                  {three, roll, deleted, "", ""},
	} {
		t.Run(reason, func(t *testing.T) {
			var old any
			if tt.old != nil {
				old = tt.old
			}
			got := admitBy(t, handlerOfRollouts(t, tt.moved), OwnPath(rollout.Kind), old, tt.object)
			if got.Allowed != (tt.want == "") || tt.want != "" && !strings.HasPrefix(got.Result.Message, tt.want) {
				t.Errorf("allowed %t, %+v", got.Allowed, got.Result)
			}
			if tt.warning != "" && !slices.ContainsFunc(got.Warnings, func(w string) bool { return strings.Contains(w, tt.warning) }) {
				t.Errorf("warnings %q", got.Warnings)
			}
		})
	}
}

// A rollout may have the name of an ExtensionConfig that it is for, and of no other.
func TestNamesOfExtensionRollouts(t *testing.T) {
	h := handlerBeside(t, beside(t))
	if got := admitBy(t, h, OwnPath(rollout.Kind), nil, newRollout("acme", "acme", "new")); !got.Allowed {
		t.Errorf("the adoption of an ExtensionConfig is refused: %+v", got.Result)
	}
	const want = `is the name of ExtensionConfig "acme", which would get no more calls: set spec.stable to that ExtensionConfig`
	if got := admitBy(t, h, OwnPath(rollout.Kind), nil, newRollout("acme", "v1", "v2")); got.Allowed || !strings.Contains(got.Result.Message, want) {
		t.Errorf("allowed %t, %+v", got.Allowed, got.Result)
	}
	h = handlerOfRollouts(t, movedTo{})
	config := configWith(func(c *runtimev1.ExtensionConfig) { c.Name = "taken" })
	if got := admitBy(t, h, ValidatePath(group), nil, config); got.Allowed || !strings.Contains(got.Result.Message, `is the name of ExtensionRollout "taken": choose another name`) {
		t.Errorf("an ExtensionConfig with the name of a rollout: allowed %t, %+v", got.Allowed, got.Result)
	}
	config.Name = "mine"
	if got := admitBy(t, h, ValidatePath(group), nil, config); !got.Allowed {
		t.Errorf("a member is refused: %+v", got.Result)
	}
}

// Neither a rollout from which Clusters have moved nor its members can be deleted.
func TestDeletionsAroundExtensionRollouts(t *testing.T) {
	for reason, tt := range map[string]struct {
		moved  movedTo
		path   string
		object any
		want   string
	}{
		"no Cluster has moved":          {movedTo{}, OwnPath(rollout.Kind), newRollout("roll", "acme", "other"), ""},
		"all have the stable":           {movedTo{"acme": 2}, OwnPath(rollout.Kind), newRollout("roll", "acme", "other"), ""},
		"one has moved":                 {movedTo{"other": 1}, OwnPath(rollout.Kind), newRollout("roll", "acme", "other"), `1 Cluster has moved to "other"; without the ExtensionRollout, the gateway would call both`},
		"nothing is known yet":          {nil, OwnPath(rollout.Kind), newRollout("roll", "acme", "other"), "have not been read: try again"},
		"a member":                      {movedTo{}, ValidatePath(group), configWith(func(*runtimev1.ExtensionConfig) {}), `ExtensionRollout "roll" uses this ExtensionConfig`},
		"an ExtensionConfig beside all": {movedTo{}, ValidatePath(group), configWith(func(c *runtimev1.ExtensionConfig) { c.Name = "free" }), ""},
	} {
		t.Run(reason, func(t *testing.T) {
			review := admissionv1.AdmissionReview{TypeMeta: metav1.TypeMeta{APIVersion: "admission.k8s.io/v1", Kind: "AdmissionReview"}}
			review.Request = &admissionv1.AdmissionRequest{UID: "u", Operation: admissionv1.Delete, OldObject: runtime.RawExtension{Raw: encode(t, tt.object)}}
			got := answerTo(t, handlerOfRollouts(t, tt.moved), tt.path, review)
			if got.Allowed != (tt.want == "") || tt.want != "" && !strings.Contains(got.Result.Message, tt.want) {
				t.Errorf("allowed %t, %+v", got.Allowed, got.Result)
			}
		})
	}
}
