// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"
	"k8s.io/apimachinery/pkg/labels"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/registry"
)

func TestDispatchOfLifecycleHooks(t *testing.T) {
	refused := errors.New("dial tcp 10.0.0.7:443: connect: connection refused")
	unreachable := hook.Errorf(hook.Unreachable, "call extension: connection refused").WithCause(refused)
	ok := func(message string, retry int32) func(context.Context, extension.Call) (proto.Message, error) {
		return says(&hooksv1alpha1.BeforeClusterCreateResponse{Status: success, Message: message, RetryAfterSeconds: retry})
	}
	no := func(message string) func(context.Context, extension.Call) (proto.Message, error) {
		return says(&hooksv1alpha1.BeforeClusterCreateResponse{Status: failure, Message: message, RetryAfterSeconds: 3})
	}
	const hookName = "BeforeClusterCreate"
	two := []registry.Registration{
		registrationOf("b", handlerOf("v", hookName, hook.Fail)),
		registrationOf("a", handlerOf("v", hookName, hook.Fail)),
	}
	lenient := []registry.Registration{registrationOf("a", handlerOf("v", hookName, hook.Ignore)), registrationOf("b", handlerOf("v", hookName, hook.Fail))}

	tests := map[string]struct {
		reason        string
		registrations []registry.Registration
		answers       answers
		handler       string
		want          *hooksv1alpha1.BeforeClusterCreateResponse
		wantKind      hook.Kind
		wantError     string
	}{
		"Nobody": {
			reason: "without handlers there is nothing to wait for",
			want:   &hooksv1alpha1.BeforeClusterCreateResponse{Status: success},
		},
		"All": {
			reason:        "messages are joined in the order of names, and the least hold that is not zero wins",
			registrations: two,
			answers:       answers{"v.b": ok("from b", 7), "v.a": ok("from a", 0)},
			want:          &hooksv1alpha1.BeforeClusterCreateResponse{Status: success, Message: "from a, from b", RetryAfterSeconds: 7},
		},
		"AllByTheNameOfTheHook": {
			reason:        "the aggregate's name in the gateway's discovery selects all handlers",
			registrations: two,
			answers:       answers{"v.b": ok("from b", 7), "v.a": ok("from a", 5)},
			handler:       "beforeclustercreate",
			want:          &hooksv1alpha1.BeforeClusterCreateResponse{Status: success, Message: "from a, from b", RetryAfterSeconds: 5},
		},
		"One": {
			reason:        "a named handler answers alone, and as it is",
			registrations: two,
			answers:       answers{"v.b": no("not yet")},
			handler:       "v.b",
			want:          &hooksv1alpha1.BeforeClusterCreateResponse{Status: failure, Message: "not yet", RetryAfterSeconds: 3},
		},
		"OneByLabelInUpperCase": {
			reason:        "a label is a name too, in any case",
			registrations: two,
			answers:       answers{"v.b": ok("from b", 0)},
			handler:       "V--B",
			want:          &hooksv1alpha1.BeforeClusterCreateResponse{Status: success, Message: "from b"},
		},
		"Failure": {
			reason:        "one Failure fails the answer and names its handler; what others hold for does not matter then",
			registrations: two,
			answers:       answers{"v.b": no("not yet"), "v.a": ok("from a", 5)},
			want:          &hooksv1alpha1.BeforeClusterCreateResponse{Status: failure, Message: `handler "v.b": not yet`},
		},
		"Error": {
			reason:        "one error is the call's error and names its handler",
			registrations: two,
			answers:       answers{"v.b": fails(unreachable), "v.a": ok("from a", 5)},
			wantKind:      hook.Unreachable,
			wantError:     `handler "v.b": call extension: connection refused`,
		},
		"ErrorAndFailure": {
			reason:        "an error weighs more than a Failure; both are named, in the order of names",
			registrations: two,
			answers:       answers{"v.b": fails(unreachable), "v.a": no("not yet")},
			wantKind:      hook.Unreachable,
			wantError:     `handler "v.a": not yet; handler "v.b": call extension: connection refused`,
		},
		"IgnoredError": {
			reason:        "Ignore hides a call that could not be completed",
			registrations: lenient,
			answers:       answers{"v.a": fails(unreachable), "v.b": ok("from b", 4)},
			want:          &hooksv1alpha1.BeforeClusterCreateResponse{Status: success, Message: `ignored: handler "v.a": Unreachable, from b`, RetryAfterSeconds: 4},
		},
		"FailureIsNotIgnored": {
			reason:        "Ignore never hides what an extension answered",
			registrations: lenient,
			answers:       answers{"v.a": no("not yet"), "v.b": ok("from b", 4)},
			want:          &hooksv1alpha1.BeforeClusterCreateResponse{Status: failure, Message: `handler "v.a": not yet`},
		},
		"ConversionIsNotIgnored": {
			reason:        "Ignore hides only what it may",
			registrations: lenient,
			answers:       answers{"v.a": fails(hook.Errorf(hook.Conversion, "convert request: no")), "v.b": ok("", 0)},
			wantKind:      hook.Conversion,
			wantError:     `handler "v.a": convert request: no`,
		},
		"PanicIsNotIgnored": {
			reason:        "a panic is its own call's error, and does not end the process",
			registrations: lenient,
			answers: answers{
				"v.a": func(context.Context, extension.Call) (proto.Message, error) { panic("out of cheese") },
				"v.b": ok("", 0),
			},
			wantKind:  hook.Internal,
			wantError: `handler "v.a": internal error: see the gateway's log`,
		},
		"UnknownHandler": {
			reason:        "the text says which there are",
			registrations: two,
			handler:       "w.a",
			wantKind:      hook.UnknownHandler,
			wantError:     `no handler "w.a": the handlers of BeforeClusterCreate are v.a, v.b`,
		},
		"HandlerOfAnotherHook": {
			reason:        "a handler answers its own hook only",
			registrations: []registry.Registration{registrationOf("a", handlerOf("v", "BeforeClusterDelete", hook.Fail))},
			handler:       "v.a",
			wantKind:      hook.UnknownHandler,
			wantError:     `handler "v.a" serves the hook BeforeClusterDelete, not BeforeClusterCreate`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			r := filled(t, tc.registrations...)
			// Again and again, because order must not depend on chance; each time anew, because circuits open.
			for range 20 {
				d := newDispatcher(r, fixedNamespaces{}, tc.answers)
				got, err := d.dispatch(t.Context(), hookOf(t, hookName), tc.handler, &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: clusterIn("n")})
				if tc.wantError != "" {
					if err == nil || err.Error() != tc.wantError || hook.KindOf(err) != tc.wantKind {
						t.Fatalf("%s: got error %v (%v), want %s (%v)", tc.reason, err, hook.KindOf(err), tc.wantError, tc.wantKind)
					}
					continue
				}
				if err != nil {
					t.Fatalf("%s: %v", tc.reason, err)
				}
				if diff := cmp.Diff(proto.Message(tc.want), got, protocmp.Transform()); diff != "" {
					t.Fatalf("%s: -want +got:\n%s", tc.reason, diff)
				}
			}
		})
	}
}

func TestDispatchOfHooksWithOneHandler(t *testing.T) {
	patches := &hooksv1alpha1.GeneratePatchesResponse{Status: success, Message: "two patches"}
	one := []registry.Registration{registrationOf("a", handlerOf("p", "GeneratePatches", hook.Fail))}
	several := append(slices.Clone(one), registrationOf("b", handlerOf("p", "GeneratePatches", hook.Fail)))
	tests := map[string]struct {
		reason        string
		registrations []registry.Registration
		handler       string
		wantKind      hook.Kind
		wantError     string
	}{
		"Named":   {reason: "a name decides", registrations: several, handler: "p.a"},
		"OnlyOne": {reason: "one that matches needs no name", registrations: one},
		"Several": {
			reason: "answers with results of their own are never merged", registrations: several,
			wantKind: hook.Ambiguous, wantError: "GeneratePatches needs one handler, but 2 match; name one of: p.a, p.b",
		},
		"None": {
			reason: "there is no empty result to make up", wantKind: hook.UnknownHandler, wantError: "no handler of GeneratePatches matches",
		},
		"NameOfTheHook": {
			reason: "only hooks whose answers can be merged have an aggregate", registrations: several, handler: "generatepatches",
			wantKind: hook.UnknownHandler, wantError: `no handler "generatepatches": the handlers of GeneratePatches are p--a, p--b`,
		},
		"RegisteredName": {
			reason: "names have the form of the name in the request", registrations: several, handler: "q.a",
			wantKind: hook.UnknownHandler, wantError: `no handler "q.a": the handlers of GeneratePatches are p.a, p.b`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			d := newDispatcher(filled(t, tc.registrations...), fixedNamespaces{}, answers{"p.a": says(patches)})
			got, err := d.dispatch(t.Context(), hookOf(t, "GeneratePatches"), tc.handler, &hooksv1alpha1.GeneratePatchesRequest{})
			if tc.wantError != "" {
				if err == nil || err.Error() != tc.wantError || hook.KindOf(err) != tc.wantKind {
					t.Fatalf("%s: got error %v (%v), want %s (%v)", tc.reason, err, hook.KindOf(err), tc.wantError, tc.wantKind)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if diff := cmp.Diff(proto.Message(patches), got, protocmp.Transform()); diff != "" {
				t.Fatalf("%s: -want +got:\n%s", tc.reason, diff)
			}
		})
	}
}

func TestDispatchRefuses(t *testing.T) {
	tests := map[string]struct {
		reason  string
		hook    string
		request proto.Message
		want    string
	}{
		"NoCluster":     {"a lifecycle hook is about a Cluster", "BeforeClusterCreate", &hooksv1alpha1.BeforeClusterCreateRequest{}, "cluster: required"},
		"NullCluster":   {"null is no Cluster", "GenerateUpgradePlan", &hooksv1alpha1.GenerateUpgradePlanRequest{Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(" null")}}, "cluster: required"},
		"StringCluster": {"an object is an object", "BeforeClusterDelete", &hooksv1alpha1.BeforeClusterDeleteRequest{Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(`"c"`)}}, "cluster: want a Kubernetes object"},
		"NoMachine":     {"an in-place hook is about a Machine", "UpdateMachine", &hooksv1alpha1.UpdateMachineRequest{}, "desired.machine: required"},
		"NoMachineSet":  {"an in-place hook is about a MachineSet", "CanUpdateMachineSet", &hooksv1alpha1.CanUpdateMachineSetRequest{}, "current.machineSet: required"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := newDispatcher(filled(t), fixedNamespaces{}, answers{}).dispatch(t.Context(), hookOf(t, tc.hook), "", tc.request)
			if err == nil || err.Error() != tc.want || hook.KindOf(err) != hook.InvalidRequest {
				t.Errorf("%s: got %v, want %s", tc.reason, err, tc.want)
			}
		})
	}
	t.Run("NotReady", func(t *testing.T) {
		_, err := newDispatcher(registry.New(), fixedNamespaces{}, answers{}).
			dispatch(t.Context(), hookOf(t, "BeforeClusterCreate"), "", &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: clusterIn("n")})
		if hook.KindOf(err) != hook.NotReady {
			t.Errorf("got %v, want NotReady", err)
		}
	})
}

// Policies that want nothing give the answers that no policies give.
func TestDispatchWithoutPoliciesIsUnchanged(t *testing.T) {
	const hookName = "BeforeClusterCreate"
	registrations := []registry.Registration{
		registrationOf("b", handlerOf("v", hookName, hook.Fail), handlerOf("w", hookName, hook.Ignore)), registrationOf("a", handlerOf("v", hookName, hook.Fail)),
	}
	possible := []func(context.Context, extension.Call) (proto.Message, error){
		says(&hooksv1alpha1.BeforeClusterCreateResponse{Status: success, Message: "yes"}),
		says(&hooksv1alpha1.BeforeClusterCreateResponse{Status: success, RetryAfterSeconds: 4}),
		says(&hooksv1alpha1.BeforeClusterCreateResponse{Status: failure, Message: "no"}),
		fails(hook.Errorf(hook.Unreachable, "call extension: connection refused")),
		fails(hook.Errorf(hook.Conversion, "convert request: no")),
	}
	req := &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: labelled(`{"tier":"gold"}`)}
	always := conditions(t, `true`)
	for i := range len(possible) * len(possible) * len(possible) {
		answers := answers{"v.a": possible[i%5], "v.b": possible[i/5%5], "w.b": possible[i/25]}
		for _, handler := range []string{"", "v.b", "w--b"} {
			without, with := filled(t, registrations...), filled(t, registrations...)
			with.SetPolicies("a", registry.Policies{All: &policy.Policy{Name: "p"}})
			with.SetPolicies("b", registry.Policies{All: &policy.Policy{Name: "p", Conditions: always, ObjectSelector: labels.Everything()}})
			with.SetPolicies("elsewhere", registry.Policies{All: &policy.Policy{Name: "p", Order: new(int32(1))}})
			want, wantErr := newDispatcher(without, fixedNamespaces{}, answers).dispatch(t.Context(), hookOf(t, hookName), handler, req)
			got, err := newDispatcher(with, fixedNamespaces{}, answers).dispatch(t.Context(), hookOf(t, hookName), handler, req)
			if fmt.Sprint(err) != fmt.Sprint(wantErr) || hook.KindOf(err) != hook.KindOf(wantErr) {
				t.Fatalf("answers %d, handler %q: got %v, want %v", i, handler, err, wantErr)
			}
			if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
				t.Fatalf("answers %d, handler %q: -want +got:\n%s", i, handler, diff)
			}
		}
	}
}
