// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hookgate/hookgate/api/v1alpha1"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/kinds/rollout"
	"github.com/hookgate/hookgate/registry"
)

// replicas are gateways with the rollout acme of v6 and v7, which share their records as those of a cluster do.
type replicas struct {
	t        *testing.T
	gateways []*Dispatcher
	engines  []*rollout.Engine
	stops    []func()
	answers  func(member string, request *hooksv1alpha1.GeneratePatchesRequest) (patch, failure string)
	// annotated gives each reconcile other variables, as annotations of the Cluster do that change all the time.
	annotated bool
	// notCompared and onDifference are those of the rollout from the next restart on.
	notCompared  []string
	onDifference v1alpha1.OnDifference

	mu      sync.Mutex
	version int
	records map[string]*v1alpha1.ExtensionRolloutRecord
	states  []v1alpha1.RolloutState
}

func newReplicas(
	t *testing.T, n int, answers func(member string, r *hooksv1alpha1.GeneratePatchesRequest) (patch, failure string),
) *replicas {
	r := &replicas{t: t, answers: answers, records: map[string]*v1alpha1.ExtensionRolloutRecord{}}
	for range n {
		r.gateways, r.engines = append(r.gateways, nil), append(r.engines, nil)
		r.stops = append(r.stops, func() {})
	}
	for i := range n {
		r.restart(i, "")
	}
	return r
}

// Put implements rollout.Store, and lets all replicas see the record.
func (r *replicas) Put(_ context.Context, record *v1alpha1.ExtensionRolloutRecord) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.records[record.Name]
	if before != nil && before.ResourceVersion != record.ResourceVersion || before == nil && record.ResourceVersion != "" {
		return rollout.ErrChanged
	}
	r.version++
	record.ResourceVersion, record.UID = strconv.Itoa(r.version), "1"
	r.records[record.Name] = record.DeepCopy()
	r.states = append(r.states, record.Spec.State)
	for _, e := range r.engines {
		time.AfterFunc(10*time.Millisecond, func() { e.Set(record.DeepCopy()) })
	}
	return nil
}

// restart makes a replica anew, with what the records say, and Clusters that are approved.
func (r *replicas) restart(i int, approved string) {
	r.t.Helper()
	r.stops[i]()
	e := rollout.New(rollout.Config{Store: r, Shared: len(r.gateways) > 1, Logger: slog.New(slog.DiscardHandler)})
	r.mu.Lock()
	r.engines[i] = e
	for _, record := range r.records {
		e.Set(record.DeepCopy())
	}
	r.mu.Unlock()
	e.SetRead()
	spec := v1alpha1.ExtensionRolloutSpec{
		Stable: "v6", Candidate: "v7", CandidateFor: &v1alpha1.RolloutClusters{},
		NotCompared: r.notCompared, OnDifference: r.onDifference,
	}
	if approved != "" {
		spec.Approved = []string{approved}
	}
	of, errs := e.Compile(&v1alpha1.ExtensionRollout{ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Spec: spec})
	if len(errs) > 0 {
		r.t.Fatal(errs)
	}
	lenient := handlerOf("lenient", "GeneratePatches", hook.Ignore)
	patch := []registry.Handler{handlerOf("patch", "GeneratePatches", hook.Fail), lenient}
	reg := filled(r.t, registrationOf("v6", patch...), registrationOf("v7", patch...),
		registrationOf("other", handlerOf("down", "GeneratePatches", hook.Fail), lenient))
	reg.SetRollouts([]registry.Rollout{of})
	e.Use([]registry.Rollout{of})
	r.gateways[i] = newDispatcher(reg, fixedNamespaces{}, callerFunc(r.call))
	ctx, cancel := context.WithCancel(r.t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = e.Run(ctx) }()
	r.stops[i] = func() { cancel(); <-done }
}

func (r *replicas) stop() {
	for _, stop := range r.stops {
		stop()
	}
}

func (r *replicas) call(_ context.Context, c extension.Call) (proto.Message, error) {
	if c.Handler.Registration.Name == "other" || c.Handler.Handler.Name == "lenient" {
		return nil, hook.Errorf(hook.Unreachable, "refused")
	}
	request, _ := c.Request.(*hooksv1alpha1.GeneratePatchesRequest)
	answer := &hooksv1alpha1.GeneratePatchesResponse{Status: success}
	patch, failure := r.answers(c.Handler.Registration.Name, request)
	if failure != "" {
		return &hooksv1alpha1.GeneratePatchesResponse{Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_FAILURE, Message: failure}, nil
	}
	for _, item := range request.GetItems() {
		answer.Items = append(answer.Items, &hooksv1alpha1.GeneratePatchesResponseItem{
			Uid: item.GetUid(), PatchType: hooksv1alpha1.PatchType_PATCH_TYPE_JSON_PATCH,
			Patch: fmt.Appendf(nil, `[{"op":"add","path":"/spec/template/spec/version","value":%q}]`, patch),
		})
	}
	return answer, nil
}

// reconcile asks for the patches of a ClusterClass as Cluster API does, one after the other until one fails: each is a
// replica, and the setting of the patch, or "other" for one of another extension.
func (r *replicas) reconcile(n int, patches ...string) {
	r.t.Helper()
	for _, patch := range patches {
		replica, setting, _ := strings.Cut(patch, ":")
		request := templateOf("c1")
		request.Settings = map[string]string{"patch": setting}
		request.Items[0].Uid = strconv.Itoa(n) // another one for each reconcile
		if r.annotated {
			request.Variables = append(request.Variables, &hooksv1alpha1.Variable{
				Name: "annotation", Value: &hooksv1alpha1.JSON{Raw: []byte(strconv.Itoa(n))},
			})
		}
		handler := "patch.acme"
		switch setting {
		case "other":
			handler = "down.other"
		case "ignored":
			handler = "lenient.other"
		case "lenient":
			handler = "lenient.acme"
		}
		if setting == "empty" {
			request.Items = nil
		}
		answer, err := r.gateways[replica[0]-'0'].dispatch(r.t.Context(), hookOf(r.t, "GeneratePatches"), handler, request)
		synctest.Wait()
		patches, _ := answer.(*hooksv1alpha1.GeneratePatchesResponse)
		if err != nil || patches.GetStatus() != success {
			return
		}
	}
}

// state returns what the record of the Cluster says.
func (r *replicas) state() v1alpha1.RolloutState {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, record := range r.records {
		return record.Spec.State
	}
	return ""
}

// differing answers alike but for the patches with these settings.
func differing(settings ...string) func(string, *hooksv1alpha1.GeneratePatchesRequest) (patch, failure string) {
	return func(member string, r *hooksv1alpha1.GeneratePatchesRequest) (patch, failure string) {
		for _, s := range settings {
			if r.GetSettings()["patch"] == s {
				return member, ""
			}
		}
		return "same", ""
	}
}

// A Cluster moves when all that its reconciles ask has equal answers, and not before, whichever replica is asked.
func TestRolloutMovesByAllQuestions(t *testing.T) {
	none := func(string, *hooksv1alpha1.GeneratePatchesRequest) (string, string) { return "", "no Secret" }
	random := 0
	for name, tc := range map[string]struct {
		reason   string
		replicas int
		patches  []string
		answers  func(member string, r *hooksv1alpha1.GeneratePatchesRequest) (patch, failure string)
		restarts bool // each replica, between reconciles
		approved string
		want     v1alpha1.RolloutState
	}{
		"equal":              {"nothing differs", 1, []string{"0:a", "0:b"}, differing(), false, "", v1alpha1.RolloutStateMoved},
		"settings":           {"one handler in two patches", 1, []string{"0:a", "0:b"}, differing("a"), false, "", v1alpha1.RolloutStateDifferent},
		"settings, reversed": {"the last one differs", 1, []string{"0:a", "0:b"}, differing("b"), false, "", v1alpha1.RolloutStateDifferent},
		"empty":              {"a request without items asks nothing", 1, []string{"0:empty"}, differing("empty"), false, "", ""},
		"empty, too":         {"it says nothing about the others", 1, []string{"0:a", "0:empty"}, differing("a"), false, "", v1alpha1.RolloutStateDifferent},
		"Failures":           {"two equal ones are no evidence", 1, []string{"0:a", "0:b"}, none, false, "", v1alpha1.RolloutStateDifferent},
		"Failures, approved": {"it is the way", 1, []string{"0:a", "0:b"}, none, false, "ns/c1", v1alpha1.RolloutStateMoved},
		"another extension":  {"its patch fails, before one that differs", 1, []string{"0:a", "0:other", "0:b"}, differing("b"), false, "", ""},
		"ignored":            {"a failure of another extension says nothing", 1, []string{"0:a", "0:ignored"}, differing(), false, "", v1alpha1.RolloutStateMoved},
		"ignored member":     {"stable has not answered", 1, []string{"0:a", "0:lenient"}, differing(), false, "", ""},
		"random": {
			"the candidate answers otherwise each time", 1, []string{"0:a"},
			func(member string, _ *hooksv1alpha1.GeneratePatchesRequest) (patch, failure string) {
				if random++; member == "v7" && random%3 == 0 {
					return "other", ""
				}
				return "same", ""
			}, false, "", v1alpha1.RolloutStateDifferent,
		},
		"two replicas":          {"each sees one patch", 2, []string{"0:a", "1:b"}, differing("b"), false, "", v1alpha1.RolloutStateDifferent},
		"two replicas, equal":   {"each sees one patch", 2, []string{"0:a", "1:b"}, differing(), false, "", v1alpha1.RolloutStateMoved},
		"two replicas restart":  {"each sees one patch", 2, []string{"0:a", "1:b"}, differing("b"), true, "", v1alpha1.RolloutStateDifferent},
		"restart":               {"the record says what differs", 1, []string{"0:a", "0:b"}, differing("a"), true, "", v1alpha1.RolloutStateDifferent},
		"restart with Failures": {"they prove nothing", 1, []string{"0:a"}, none, true, "", v1alpha1.RolloutStateDifferent},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newReplicas(t, tc.replicas, tc.answers)
				defer r.stop()
				for i := range 12 {
					r.reconcile(i, tc.patches...)
					time.Sleep(time.Minute)
					if tc.restarts || tc.approved != "" && i == 0 {
						r.restart(i%tc.replicas, tc.approved)
					}
				}
				synctest.Wait()
				if got := r.state(); got != tc.want {
					t.Errorf("%s: the Cluster is %q, want %q; stored: %v", tc.reason, got, tc.want, r.states)
				}
			})
		})
	}
}

// A Cluster whose annotations change all the time is reconciled without pause, each time with other variables. It moves
// when its answers have become equal, and not before.
func TestRolloutOfAClusterThatNeverRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		differs := "b"
		r := newReplicas(t, 1, func(member string, r *hooksv1alpha1.GeneratePatchesRequest) (string, string) {
			return differing(differs)(member, r)
		})
		defer r.stop()
		r.annotated = true
		n := 0
		reconcile := func(want v1alpha1.RolloutState) {
			t.Helper()
			for range 60 {
				n++
				r.reconcile(n, "0:a", "0:b")
				time.Sleep(time.Second)
			}
			synctest.Wait()
			if got := r.state(); got != want {
				t.Errorf("the Cluster is %q, want %q; stored: %v", got, want, r.states)
			}
		}
		reconcile(v1alpha1.RolloutStateDifferent)
		r.restart(0, "")
		reconcile(v1alpha1.RolloutStateDifferent)
		r.restart(0, "")
		differs = ""
		reconcile(v1alpha1.RolloutStateMoved)
	})
}

// What differed holds until it is compared anew or not asked any more: no Failure, and no restart, makes it be forgotten.
func TestRolloutHoldsWhatDiffered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		differs, fails := "b", ""
		r := newReplicas(t, 1, func(member string, r *hooksv1alpha1.GeneratePatchesRequest) (string, string) {
			if fails != "" && r.GetSettings()["patch"] == fails {
				return "", "no Secret"
			}
			return differing(differs)(member, r)
		})
		defer r.stop()
		n := 0
		reconcile := func(times int, want v1alpha1.RolloutState, why string, patches ...string) {
			t.Helper()
			for range times {
				n++
				r.reconcile(n, patches...)
				time.Sleep(time.Minute)
			}
			synctest.Wait()
			if got := r.state(); got != want {
				t.Fatalf("%s: the Cluster is %q, want %q; stored: %v", why, got, want, r.states)
			}
		}
		reconcile(2, v1alpha1.RolloutStateDifferent, "the second patch differs", "0:a", "0:b")
		fails = "a"
		reconcile(8, v1alpha1.RolloutStateDifferent, "the first one fails, so that it is not asked", "0:a", "0:b")
		r.restart(0, "")
		reconcile(8, v1alpha1.RolloutStateDifferent, "after a restart, too", "0:a", "0:b")
		fails = ""
		reconcile(3, v1alpha1.RolloutStateDifferent, "the cause is gone, and the second patch still differs", "0:a", "0:b")
		r.restart(0, "")
		reconcile(2, v1alpha1.RolloutStateDifferent, "one restart, and it is not asked at once", "0:a")
		reconcile(3, v1alpha1.RolloutStateDifferent, "it still differs", "0:a", "0:b")
		differs = ""
		reconcile(6, v1alpha1.RolloutStateMoved, "it is equal", "0:a", "0:b")
	})
	synctest.Test(t, func(t *testing.T) {
		r := newReplicas(t, 1, differing("b"))
		defer r.stop()
		for i := range 12 {
			patches := []string{"0:a", "0:b"}
			if i > 2 {
				patches = patches[:1]
			}
			r.reconcile(i, patches...)
			time.Sleep(limits.RolloutSettle)
		}
		if got := r.state(); got != v1alpha1.RolloutStateMoved {
			t.Errorf("a patch that is gone: the Cluster is %q", got)
		}
	})
}

// A handler that is left out of comparison has one version asked, not two: nothing is proven, and a Cluster that asks it
// moves when it is approved, whatever onDifference says.
func TestRolloutLeavesHandlersOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var writes []string // to Secrets
		r := newReplicas(t, 2, func(member string, _ *hooksv1alpha1.GeneratePatchesRequest) (string, string) {
			writes = append(writes, member)
			return "same", ""
		})
		defer r.stop()
		r.onDifference = v1alpha1.OnDifferenceMove
		n := 0
		reconcile := func(times int, want v1alpha1.RolloutState, why string) {
			t.Helper()
			for range times {
				n++
				r.reconcile(n, "0:a", "1:a")
				time.Sleep(time.Minute)
			}
			synctest.Wait()
			if got := r.state(); got != want {
				t.Fatalf("%s: the Cluster is %q, want %q; stored: %v", why, got, want, r.states)
			}
		}
		r.notCompared = []string{"patch"}
		r.restart(0, "")
		r.restart(1, "")
		reconcile(12, v1alpha1.RolloutStateDifferent, "nothing is compared")
		if slices.Contains(writes, "v7") {
			t.Errorf("the candidate was asked: %q", writes)
		}
		r.restart(0, "ns/c1")
		r.restart(1, "ns/c1")
		writes = nil
		reconcile(3, v1alpha1.RolloutStateMoved, "it is approved")
		if last := writes[len(writes)-1]; last != "v7" {
			t.Errorf("%s answers for a Cluster that has moved", last)
		}
		for _, record := range r.records {
			if record.Spec.Message != "the differences are approved" {
				t.Errorf("the record says %q", record.Spec.Message)
			}
		}
	})
}
