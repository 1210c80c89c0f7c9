// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"testing"

	jsonpatch "github.com/evanphx/json-patch/v5"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/controllers"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/registry"
)

// lastValidCase is an object of a kind, a patch that makes another valid version of it, one with a mistake that the API
// server takes, and what a replica then has in effect.
type lastValidCase struct {
	object          func() client.Object
	valid, mistaken string
	conditions      func(client.Object) []metav1.Condition
	inEffect        func(*replica) string
	want            string
}

func lastValidCases(t *testing.T) map[string]lastValidCase {
	t.Helper()
	return map[string]lastValidCase{
		"HookRule": {
			func() client.Object { return newRule(t, "last-valid", `"no"`) },
			`{"spec":{"fail":[{"if":"true","message":"\"not today\""}]}}`,
			`{"spec":{"fail":[{"if":"request.nothing","message":"\"never\""}]}}`,
			func(o client.Object) []metav1.Condition { return o.(*v1alpha1.HookRule).Status.Conditions },
			func(r *replica) string {
				reg, ok := r.registry.Snapshot().Registration("last-valid")
				if !ok || reg.InProcess == nil {
					return "none"
				}
				answer, err := reg.InProcess.Answer(t.Context(), &hooksv1alpha1.BeforeClusterCreateRequest{}, policy.Guard{})
				if err != nil {
					return err.Error()
				}
				return answer.(*hooksv1alpha1.BeforeClusterCreateResponse).GetMessage()
			},
			"not today",
		},
		"ExtensionPolicy": {
			func() client.Object { return newPolicy(t, "last-valid", "last-valid-acme", "") },
			`{"spec":{"timeoutSeconds":7}}`,
			`{"spec":{"timeoutSeconds":8,"matchConditions":[{"name":"x","expression":"("}]}}`,
			func(o client.Object) []metav1.Condition { return o.(*v1alpha1.ExtensionPolicy).Status.Conditions },
			func(r *replica) string {
				h := r.registry.Snapshot().Policies("last-valid-acme").Override(registry.Handler{Name: "a"})
				return fmt.Sprint(h.FailurePolicy, " after ", h.Timeout)
			},
			"Ignore after 7s",
		},
		"HandlerChain": {
			func() client.Object { return newChain(t, "last-valid", "BeforeClusterCreate", "a.acme") },
			`{"spec":{"steps":[{"handler":"b.acme"}]}}`,
			`{"spec":{"hook":"BeforeClusterCreates","steps":[{"handler":"c.acme"}]}}`,
			func(o client.Object) []metav1.Condition { return o.(*v1alpha1.HandlerChain).Status.Conditions },
			func(r *replica) string {
				c, ok := r.registry.Snapshot().Chain("last-valid")
				if !ok || len(c.Steps) == 0 {
					return "none"
				}
				return c.Steps[0].Handler
			},
			"b.acme",
		},
	}
}

// What was last valid stays in effect after a restart, and in replicas that come later; and not for a new object. With
// the real API server, so that it takes the records.
func TestLastValidStaysInEffect(t *testing.T) {
	_, c := connect(t)
	if err := appsv1.AddToScheme(c.Scheme()); err != nil {
		t.Fatal(err)
	}
	filter := filterOf(t)
	for kind, tc := range lastValidCases(t) {
		t.Run(kind, func(t *testing.T) {
			begin := func(readOnly bool) *replica {
				t.Helper()
				r := start(t, func(c *controllers.Config) {
					c.OwnNamespace, c.WatchFilter, c.ReadOnly = metav1.NamespaceDefault, filter, readOnly
				})
				r.ready(t)
				return r
			}
			o := tc.object()
			create(t, c, o)
			patch := func(text string) {
				t.Helper()
				if err := c.Patch(t.Context(), o, client.RawPatch(types.MergePatchType, []byte(text))); err != nil {
					t.Fatal(err)
				}
			}
			recorded := func(want string) {
				t.Helper()
				eventually(t, "recorded is "+want, func() (string, bool) {
					var list appsv1.ControllerRevisionList
					err := c.List(t.Context(), &list, client.InNamespace(metav1.NamespaceDefault),
						client.MatchingLabels{"hookgate.dev/last-valid": kind})
					if err != nil {
						t.Fatal(err)
					}
					var found []string
					for _, r := range list.Items {
						if strings.HasPrefix(r.Name, strings.ToLower(kind)+"-"+string(o.GetUID())) {
							found = append(found, strconv.FormatInt(r.Revision, 10))
						}
					}
					return strings.Join(found, " "), strings.Join(found, " ") == want
				})
			}
			mistaken := func(stays bool) {
				t.Helper()
				eventually(t, fmt.Sprintf("it is invalid, and its previous version in effect: %t", stays), func() (string, bool) {
					if err := c.Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
						t.Fatal(err)
					}
					found := tc.conditions(o)
					if len(found) == 0 || found[0].ObservedGeneration != o.GetGeneration() {
						return "no condition", false
					}
					return found[0].Reason + ": " + found[0].Message, found[0].Reason == v1alpha1.InvalidReason &&
						strings.HasSuffix(found[0].Message, "; its previous version stays in effect") == stays
				})
			}
			first := begin(false)
			patch(tc.valid)
			recorded("2")
			patch(tc.mistaken)
			mistaken(true)
			first.stop()

			// A replica that is ready has it in effect.
			for _, readOnly := range []bool{false, true} {
				if got := tc.inEffect(begin(readOnly)); got != tc.want {
					t.Errorf("a replica that starts later, read-only %t, has %s in effect, want %s", readOnly, got, tc.want)
				}
			}
			mistaken(true)
			recorded("2")

			// A new object begins without one; nothing collects garbage here.
			if err := c.Delete(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			o = tc.object()
			text, err := json.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			if text, err = jsonpatch.MergePatch(text, []byte(tc.mistaken)); err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(text, o); err != nil {
				t.Fatal(err)
			}
			create(t, c, o)
			mistaken(false)
			if got := tc.inEffect(begin(true)); got == tc.want {
				t.Errorf("of an object that was deleted, %s is in effect", got)
			}
		})
	}
}
