// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/registry"
)

// wait is how long a Cluster stays after a reconcile whose end is seen: longer than the pause, and shorter than what ends
// one by itself.
const wait = limits.RolloutPause * 3 / 2

// memory is a Store that keeps records in memory, as an API server would.
type memory struct {
	mu      sync.Mutex
	records map[string]*v1alpha1.ExtensionRolloutRecord
	history []string
	version int
	err     error
}

func (m *memory) Put(_ context.Context, r *v1alpha1.ExtensionRolloutRecord) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.err != nil {
		return m.err
	}
	if before := m.records[r.Name]; before != nil && before.ResourceVersion != r.ResourceVersion ||
		before == nil && r.ResourceVersion != "" {
		return errors.New("conflict")
	}
	m.version++
	r.ResourceVersion, r.UID = strconv.Itoa(100+m.version), types.UID(r.Name)
	m.records[r.Name] = r.DeepCopy()
	m.history = append(m.history, fmt.Sprintf("%s %s: %s", clusterOf(r), r.Spec.State, r.Spec.Message))
	return nil
}

func (m *memory) fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.err = err
}

func (m *memory) stored() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]string(nil), m.history...)
}

// fixture is an Engine with the ExtensionRollout acme.
type fixture struct {
	*Engine
	t     *testing.T
	store *memory
	of    *Rollout
	stop  func()
}

func start(t *testing.T, spec v1alpha1.ExtensionRolloutSpec, change ...func(*Config)) *fixture {
	t.Helper()
	f := &fixture{t: t, store: &memory{records: map[string]*v1alpha1.ExtensionRolloutRecord{}}}
	c := Config{Store: f.store, Logger: slog.New(slog.DiscardHandler)}
	for _, change := range change {
		change(&c)
	}
	f.Engine = New(c)
	f.SetRead()
	f.use(spec)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); _ = f.Run(ctx) }()
	f.stop = func() { cancel(); <-done }
	t.Cleanup(f.stop)
	return f
}

// use makes spec the one in effect.
func (f *fixture) use(spec v1alpha1.ExtensionRolloutSpec) {
	f.t.Helper()
	if spec.Stable == "" {
		spec.Stable, spec.Candidate = "v6", "v7"
	}
	compiled, errs := f.Compile(&v1alpha1.ExtensionRollout{ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Spec: spec})
	if len(errs) > 0 {
		f.t.Fatal(errs)
	}
	f.of = compiled.Assignment.(*Rollout)
	f.Use([]registry.Rollout{compiled})
}

// call makes a call about a Cluster to a handler, which compares as said if it is compared.
func (f *fixture) call(cluster, handler string, compared registry.Compared) (candidate bool) {
	f.t.Helper()
	if compared.Question == "" {
		compared.Question, compared.Content = "GeneratePatches/"+handler, "1"
	}
	candidate, err := f.of.Candidate(f.t.Context(), "ns", cluster)
	if err != nil {
		f.t.Fatal(err)
	}
	if !candidate {
		f.of.Compare(registry.Comparison{
			Namespace: "ns", Cluster: cluster, Handler: handler, Bytes: 1,
			Ask: func(string) func(context.Context) registry.Compared {
				return func(context.Context) registry.Compared { return compared }
			},
		})
	}
	synctest.Wait()
	return candidate
}

func (f *fixture) wantStored(want ...string) {
	f.t.Helper()
	synctest.Wait()
	if diff := cmp.Diff(want, f.store.stored()); diff != "" {
		f.t.Errorf("stored (-want +got):\n%s", diff)
	}
}

var (
	everyone = &v1alpha1.RolloutClusters{}
	equal    = registry.Compared{}
	equalOne = registry.Compared{Question: "GeneratePatches/1", Content: "1"} // for those that fixture.call does not name
	differs  = registry.Compared{Differences: []registry.Difference{{
		Object: "KubeadmControlPlane", Path: "/spec", Stable: `"v6"`, Candidate: `"v7"`, Machines: "replaces 3 Machines",
	}}}
	unreachable = registry.Compared{Err: errors.New("refused")}
)

// A Cluster moves when each handler that is called for it has been compared, and its record is stored: the next call
// after that is the first of the candidate.
func TestEqualAnswersMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, v1alpha1.ExtensionRolloutSpec{CandidateFor: everyone})
		for i, handler := range []string{"patch", "validate"} {
			if f.call("c1", handler, equal) {
				t.Fatalf("call %d: a handler that has not been compared must not be asked", i)
			}
		}
		f.wantStored()
		if f.call("c1", "patch", equal) {
			t.Fatal("the second round is the one that is compared")
		}
		f.wantStored()
		time.Sleep(wait)
		f.wantStored("ns/c1 Equal: the answers are equal", "ns/c1 Moved: the answers are equal")
		if !f.call("c1", "patch", equal) {
			t.Error("the Cluster has moved")
		}
	})
}

// A Cluster that is not called again for a while has shown all its handlers.
func TestQuietClusterSettles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, v1alpha1.ExtensionRolloutSpec{CandidateFor: everyone})
		f.call("c1", "patch", equal)
		time.Sleep(limits.RolloutSettle / 2)
		f.wantStored()
		time.Sleep(limits.RolloutSettle)
		f.wantStored("ns/c1 Equal: the answers are equal", "ns/c1 Moved: the answers are equal")
	})
}

func TestDifferentAnswersHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, v1alpha1.ExtensionRolloutSpec{CandidateFor: everyone})
		for range 3 {
			f.call("c1", "patch", differs)
			f.call("c1", "validate", equal)
		}
		time.Sleep(2 * limits.RolloutSettle)
		f.wantStored("ns/c1 Different: the answers differ")
		shown := status.Rollout{Name: "acme"}
		f.Fill(&shown)
		want := []status.RolloutDifference{{
			Handler: "patch", Object: "KubeadmControlPlane", Path: "/spec", Stable: `"v6"`, Candidate: `"v7"`,
			Machines: "replaces 3 Machines",
		}}
		if shown.Different != 1 || len(shown.Clusters) != 1 || !cmp.Equal(shown.Clusters[0].Differences, want) {
			t.Errorf("shown: %+v", shown)
		}

		f.use(v1alpha1.ExtensionRolloutSpec{CandidateFor: everyone, Approved: []string{"ns/c1"}})
		f.wantStored("ns/c1 Different: the answers differ", "ns/c1 Moved: the differences are approved")
		f.use(v1alpha1.ExtensionRolloutSpec{})
		if !f.call("c1", "patch", differs) {
			t.Error("neither a smaller selection nor a withdrawn approval moves a Cluster back")
		}
	})
}

func TestOnDifferenceMove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, v1alpha1.ExtensionRolloutSpec{CandidateFor: everyone, OnDifference: v1alpha1.OnDifferenceMove})
		f.call("c1", "patch", differs)
		f.call("c1", "patch", differs)
		time.Sleep(wait)
		f.wantStored("ns/c1 Different: the answers differ", "ns/c1 Moved: onDifference is Move")
	})
}

// Who may not move is compared only with compare, and stays.
func TestWhoMayMove(t *testing.T) {
	none, half := int32(0), int32(50)
	canary := &metav1.LabelSelector{MatchLabels: map[string]string{"ring": "canary"}}
	for name, tc := range map[string]struct {
		reason string
		spec   v1alpha1.ExtensionRolloutSpec
		// Of 100 Clusters, every tenth of which is a canary.
		leastMoved, mostMoved, leastEqual int
	}{
		"nobody":   {reason: "nobody was named", spec: v1alpha1.ExtensionRolloutSpec{}},
		"compared": {reason: "compare asks about all", spec: v1alpha1.ExtensionRolloutSpec{Compare: true}, leastEqual: 100},
		"none": {
			reason:     "0 % of them",
			spec:       v1alpha1.ExtensionRolloutSpec{Compare: true, CandidateFor: &v1alpha1.RolloutClusters{Percent: &none}},
			leastEqual: 100,
		},
		"half": {
			reason:     "by a hash",
			spec:       v1alpha1.ExtensionRolloutSpec{CandidateFor: &v1alpha1.RolloutClusters{Percent: &half}},
			leastMoved: 30, mostMoved: 70, leastEqual: 30,
		},
		"canaries": {
			reason:     "by labels of the live Cluster",
			spec:       v1alpha1.ExtensionRolloutSpec{CandidateFor: &v1alpha1.RolloutClusters{ClusterSelector: canary}},
			leastMoved: 10, mostMoved: 10, leastEqual: 10,
		},
		"paused": {
			reason:     "pausing stops moves, not comparisons",
			spec:       v1alpha1.ExtensionRolloutSpec{CandidateFor: everyone, Paused: true},
			leastEqual: 100,
		},
		"annotated": {
			reason:     "the annotation of a Cluster approves",
			spec:       v1alpha1.ExtensionRolloutSpec{Compare: true},
			leastMoved: 0, mostMoved: 0, leastEqual: 100,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := start(t, tc.spec, func(c *Config) { c.Clusters = canaries{} })
				for range 2 {
					for i := range 100 {
						f.call(fmt.Sprintf("c%d", i), "patch", equal)
					}
				}
				time.Sleep(wait)
				synctest.Wait()
				moved, equals := 0, 0
				for _, line := range f.store.stored() {
					if strings.Contains(line, " Moved: ") {
						moved++
					} else {
						equals++
					}
				}
				if moved < tc.leastMoved || moved > tc.mostMoved || equals < tc.leastEqual {
					t.Errorf("%s: %d moved, want %d to %d; %d compared, want %d", tc.reason, moved, tc.leastMoved, tc.mostMoved,
						equals, tc.leastEqual)
				}
			})
		})
	}
}

// canaries are Clusters, every tenth of which has the label of a canary.
type canaries struct{}

func (canaries) ClusterMetadata(_, name string) (labels, annotations map[string]string, known bool) {
	if strings.HasSuffix(name, "7") {
		return map[string]string{"ring": "canary"}, nil, true
	}
	if name == "approved" {
		return nil, map[string]string{v1alpha1.ApproveRolloutAnnotation: "v7"}, true
	}
	return nil, nil, true
}

func TestAnnotationApproves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, v1alpha1.ExtensionRolloutSpec{}, func(c *Config) { c.Clusters = canaries{} })
		for range 2 {
			f.call("approved", "patch", differs)
			f.call("other", "patch", differs)
		}
		time.Sleep(wait)
		f.wantStored("ns/approved Different: the answers differ", "ns/approved Moved: the differences are approved")
	})
}

// A candidate that does not answer moves nobody, even if it did before.
func TestFailingCandidateMovesNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, v1alpha1.ExtensionRolloutSpec{CandidateFor: everyone, Approved: []string{All}})
		f.call("c1", "patch", equal)
		for range 3 {
			f.call("c1", "patch", unreachable)
		}
		time.Sleep(2 * limits.RolloutSettle)
		f.wantStored()
		shown := status.Rollout{Name: "acme"}
		if f.Fill(&shown); shown.Failing != 1 {
			t.Errorf("shown: %+v", shown)
		}
		f.call("c1", "patch", equal)
		f.wantStored("ns/c1 Equal: the answers are equal", "ns/c1 Moved: the answers are equal")
	})
}

// Nothing moves while its record cannot be stored, and all does once it can.
func TestStoreFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, v1alpha1.ExtensionRolloutSpec{CandidateFor: everyone})
		f.store.fail(errors.New("the API server is away"))
		for range 3 {
			if f.call("c1", "patch", equal) {
				t.Fatal("its record is not stored")
			}
		}
		f.store.fail(nil)
		time.Sleep(2 * time.Minute)
		f.wantStored("ns/c1 Equal: the answers are equal", "ns/c1 Moved: the answers are equal")
	})
}

// Another gateway has stored that a Cluster has moved. This one, which has not seen that, must not replace the record.
func TestRecordOfAnotherGateway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, v1alpha1.ExtensionRolloutSpec{Compare: true})
		other := New(f.config)
		theirs := *f.of
		theirs.state = other.stateOf("acme")
		of := types.NamespacedName{Namespace: "ns", Name: "c1"}
		moved := theirs.record(of, v1alpha1.RolloutStateMoved, "by another", nil, 0)
		if err := other.put(t.Context(), moved); err != nil {
			t.Fatal(err)
		}
		f.call("c1", "patch", differs)
		f.call("c1", "patch", differs)
		time.Sleep(5 * time.Minute) // tried again and again
		f.wantStored("ns/c1 Moved: by another")
		f.Set(moved)
		if !f.call("c1", "patch", differs) {
			t.Error("the Cluster has moved")
		}
		// What the watch brings late is older than what is known.
		old := moved.DeepCopy()
		old.ResourceVersion, old.Spec.State = "100", v1alpha1.RolloutStateEqual
		if f.Set(old); !f.call("c1", "patch", differs) {
			t.Error("an old record moved the Cluster back")
		}
		if f.Remove(moved); f.call("c1", "patch", differs) {
			t.Error("without a record, the Cluster is back")
		}
	})
}

func TestAbort(t *testing.T) {
	five := int32(5)
	synctest.Test(t, func(t *testing.T) {
		f := start(t, v1alpha1.ExtensionRolloutSpec{
			CandidateFor: everyone, Abort: &v1alpha1.RolloutAbort{ErrorPercent: &five},
		})
		for i := range limits.RolloutLeastCalls - 1 {
			f.call(fmt.Sprintf("c%d", i), "patch", equal)
		}
		f.call("bad", "patch", unreachable) // 5 % of 20 calls
		f.wantStored()
		f.call("bad", "patch", unreachable)
		f.wantStored("/ Aborted: more than 5 % of the last calls to v7 have failed")
		if got := f.Aborted("acme"); got != "more than 5 % of the last calls to v7 have failed" {
			t.Errorf("aborted: %q", got)
		}
		f.call("c1", "patch", equal)
		time.Sleep(wait)
		f.wantStored("/ Aborted: more than 5 % of the last calls to v7 have failed", "ns/c1 Equal: the answers are equal")
		f.Remove(f.store.records[AbortedName("acme")]) // resumed
		if got := f.Aborted("acme"); got != "" {
			t.Errorf("resumed, and aborted: %q", got)
		}
		f.call("c2", "patch", equal)
		time.Sleep(wait)
		if got := f.store.stored(); !slices.Contains(got, "ns/c2 Moved: the answers are equal") {
			t.Errorf("stored: %q", got)
		}
	})
}

// The record that an earlier candidate was aborted is replaced by that of the one after it.
func TestAbortOfTheNextCandidate(t *testing.T) {
	five := int32(5)
	spec := v1alpha1.ExtensionRolloutSpec{
		Stable: "v6", Candidate: "v7", CandidateFor: everyone, Abort: &v1alpha1.RolloutAbort{ErrorPercent: &five},
	}
	synctest.Test(t, func(t *testing.T) {
		f := start(t, spec)
		for _, candidate := range []string{"v7", "v8"} {
			spec.Candidate = candidate
			f.use(spec)
			if got := f.Aborted("acme"); got != "" {
				t.Errorf("%s is aborted before it was asked: %q", candidate, got)
			}
			for range limits.RolloutLeastCalls {
				f.call("bad", "patch", unreachable)
			}
			want := "more than 5 % of the last calls to " + candidate + " have failed"
			if got := f.Aborted("acme"); got != want {
				t.Errorf("%s: aborted %q, want %q", candidate, got, want)
			}
		}
		old := f.store.records[AbortedName("acme")].DeepCopy()
		old.Spec.Candidate, old.ResourceVersion = "v7", "1"
		if f.Set(old); f.Aborted("acme") == "" { // from a watch that is behind
			t.Error("an old record has resumed the rollout")
		}
	})
}

func TestCandidateIsNotKnown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, v1alpha1.ExtensionRolloutSpec{CandidateFor: everyone})
		for range 2 {
			f.call("c1", "patch", equal)
		}
		time.Sleep(wait)
		synctest.Wait()
		for name, tc := range map[string]struct {
			reason            string
			stable, candidate string
			want              bool
			err               string
		}{
			"promoted": {reason: "it is on stable now", stable: "v7", candidate: ""},
			"next":     {reason: "it has not moved to v8", stable: "v7", candidate: "v8"},
			"replaced": {
				reason: "neither is what the Cluster has", stable: "v6", candidate: "v8",
				err: `Cluster "ns/c1" has moved to ExtensionConfig "v7", which is neither stable nor candidate of ` +
					`ExtensionRollout "acme" any more: make it one of the two again, or move the Cluster back by deleting its ` +
					`ExtensionRolloutRecord`,
			},
		} {
			compiled, errs := f.Compile(&v1alpha1.ExtensionRollout{
				ObjectMeta: metav1.ObjectMeta{Name: "acme"},
				Spec:       v1alpha1.ExtensionRolloutSpec{Stable: tc.stable, Candidate: tc.candidate},
			})
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			got, err := compiled.Assignment.Candidate(t.Context(), "ns", "c1")
			if got != tc.want || (err == nil) != (tc.err == "") || err != nil && err.Error() != tc.err {
				t.Errorf("%s: %s: got %v, %v", name, tc.reason, got, err)
			}
		}
		unread := New(f.config)
		r, _ := unread.Compile(&v1alpha1.ExtensionRollout{
			ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Spec: v1alpha1.ExtensionRolloutSpec{Stable: "v6"},
		})
		if _, err := r.Assignment.Candidate(t.Context(), "ns", "c1"); hook.KindOf(err) != hook.NotReady {
			t.Errorf("before the records were read: %v", err)
		}
	})
}

// A new Cluster moves before its first answer, or not at all.
func TestNewClusters(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, v1alpha1.ExtensionRolloutSpec{}, func(c *Config) {
			c.IsNew = func(_ context.Context, _, name string) (bool, error) { return name == "new", nil }
		})
		f.use(v1alpha1.ExtensionRolloutSpec{Stable: "v6", Candidate: "v7", NewClusters: v1alpha1.NewClustersCandidate})
		if f.call("old", "patch", equal) || !f.call("new", "patch", equal) {
			t.Error("only new Clusters are on the candidate")
		}
		f.store.fail(errors.New("away"))
		f.config.IsNew = func(context.Context, string, string) (bool, error) { return true, nil }
		if _, err := f.of.Candidate(t.Context(), "ns", "next"); hook.KindOf(err) != hook.NotReady {
			t.Errorf("a new Cluster without a record: %v", err)
		}
		f.wantStored("ns/new Moved: the Cluster was new")
	})
}

// Nothing is decided while a comparison is under way, and a call that is not compared may have asked something else.
func TestAllCallsAreCompared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, v1alpha1.ExtensionRolloutSpec{CandidateFor: everyone})
		f.call("c1", "patch", equal)
		block := make(chan struct{})
		for range 2 {
			f.of.Compare(registry.Comparison{
				Namespace: "ns", Cluster: "c1", Handler: "patch", Bytes: 1,
				Ask: func(string) func(context.Context) registry.Compared {
					return func(context.Context) registry.Compared { <-block; return equalOne }
				},
			})
		}
		time.Sleep(limits.Timeout - time.Second)
		f.wantStored()
		close(block)
		time.Sleep(2 * limits.RolloutSettle)
		f.wantStored("ns/c1 Equal: the answers are equal", "ns/c1 Moved: the answers are equal")

		for _, dropped := range []registry.Comparison{
			{Bytes: 2 * limits.RolloutQueueBytes}, // for which there is no room
			{Keep: func(int64) (func(), bool) { return nil, false }},
			{Ask: func(string) func(context.Context) registry.Compared {
				return func(context.Context) registry.Compared { return registry.Compared{Dropped: true} }
			}},
			{Ask: func(string) func(context.Context) registry.Compared {
				return func(context.Context) registry.Compared { return unreachable } // before it was read
			}},
		} {
			f.call("c2", "patch", equal)
			dropped.Namespace, dropped.Cluster, dropped.Handler = "ns", "c2", "patch"
			f.of.Compare(dropped)
			time.Sleep(2 * limits.RolloutSettle)
			f.wantStored("ns/c1 Equal: the answers are equal", "ns/c1 Moved: the answers are equal")
		}
	})
}

// What a record has is bounded: those of 2,000 Clusters take at most 20 MiB.
func TestRecordsAreBounded(t *testing.T) {
	const most = 20 << 20 / 2000
	long := strings.Repeat("x", 1<<20)
	all := registry.Compared{Omitted: 1 << 30}
	for range 1000 {
		all.Differences = append(all.Differences, registry.Difference{
			Object: long, Path: long, Stable: long, Candidate: long, Machines: long,
		})
	}
	synctest.Test(t, func(t *testing.T) {
		f := start(t, v1alpha1.ExtensionRolloutSpec{Compare: true})
		f.call(strings.Repeat("c", 63), strings.Repeat("h", 63), all)
		for _, record := range f.store.records {
			text, err := json.Marshal(record)
			if err != nil || len(text) > most || len(record.Spec.Differences) == 0 || *record.Spec.OmittedDifferences < 1<<30 {
				t.Errorf("%d bytes, %d differences, %v; want at most %d bytes", len(text), len(record.Spec.Differences), err, most)
			}
			t.Logf("%d bytes", len(text))
		}
	})
}

// Calls that find no room are not compared, and decide nothing.
func TestQueueIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		results := map[string]int{}
		var mu sync.Mutex
		f := start(t, v1alpha1.ExtensionRolloutSpec{CandidateFor: everyone}, func(c *Config) {
			c.Compared = func(_, result string) { mu.Lock(); defer mu.Unlock(); results[result]++ }
		})
		block := make(chan struct{})
		for i := range limits.RolloutQueueCalls + limits.RolloutComparisons + 10 {
			f.of.Compare(registry.Comparison{
				Namespace: "ns", Cluster: fmt.Sprintf("c%d", i), Handler: "patch", Bytes: 1,
				Ask: func(string) func(context.Context) registry.Compared {
					return func(context.Context) registry.Compared { <-block; return equalOne }
				},
			})
			if i < limits.RolloutComparisons {
				synctest.Wait()
			}
		}
		f.of.Compare(registry.Comparison{
			Namespace: "ns", Cluster: "large", Handler: "patch", Bytes: limits.RolloutQueueBytes,
			Ask: func(string) func(context.Context) registry.Compared { panic("kept what there is no room for") },
		})
		close(block)
		synctest.Wait()
		mu.Lock()
		defer mu.Unlock()
		if results[ResultDropped] != 11 || results[ResultEqual] != limits.RolloutQueueCalls+limits.RolloutComparisons {
			t.Errorf("results: %v", results)
		}
	})
}

func TestCompileRefuses(t *testing.T) {
	wrong := int32(101)
	e := New(Config{Logger: slog.New(slog.DiscardHandler)})
	for name, tc := range map[string]struct {
		spec v1alpha1.ExtensionRolloutSpec
		want string
	}{
		"stable":  {v1alpha1.ExtensionRolloutSpec{}, "spec.stable: Required value: must be the name of an ExtensionConfig"},
		"same":    {v1alpha1.ExtensionRolloutSpec{Stable: "a", Candidate: "a"}, `spec.candidate: Invalid value: "a": must be another ExtensionConfig than stable`},
		"percent": {v1alpha1.ExtensionRolloutSpec{Stable: "a", CandidateFor: &v1alpha1.RolloutClusters{Percent: &wrong}}, "spec.candidateFor.percent: Invalid value: 101: must be 0 to 100"},
		"handler": {v1alpha1.ExtensionRolloutSpec{Stable: "a", NotCompared: []string{"patch.a"}}, `spec.notCompared[0]: Invalid value: "patch.a": "patch.a" must consist of lower case letters, digits and '-', and begin and end with a letter or digit; give the name from Discovery, without the name of the ExtensionConfig`},
		"cluster": {v1alpha1.ExtensionRolloutSpec{Stable: "a", Approved: []string{"c1"}}, `spec.approved[0]: Invalid value: "c1": must be namespace/name of a Cluster, "*" for all, or "/" for calls about no Cluster`},
		"new":     {v1alpha1.ExtensionRolloutSpec{Stable: "a", NewClusters: v1alpha1.NewClustersCandidate}, "spec.newClusters: Forbidden: only a gateway in a cluster sees whether a Cluster is new"},
	} {
		_, errs := e.Compile(&v1alpha1.ExtensionRollout{ObjectMeta: metav1.ObjectMeta{Name: "acme"}, Spec: tc.spec})
		if len(errs) != 1 || errs[0].Error() != tc.want {
			t.Errorf("%s: got %v, want %s", name, errs, tc.want)
		}
	}
}
