// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	infrahooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/infrastructure/internal/gatewaytest"
	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
)

// The rules of the package comment, with an API server and an extension in memory. test/provider has them with a real
// API server, watches and a cloud.

// wantAsked fails the test unless exactly these hooks have been called.
func (m *memory) wantAsked(reason string, hooks ...string) {
	m.t.Helper()
	if !slices.Equal(m.asked, hooks) {
		m.t.Errorf("%s: %v was called, want %v", reason, m.asked, hooks)
	}
}

// subjectOf returns what a request is about.
func subjectOf(req proto.Message) *infrahooksv1alpha1.Subject {
	return req.(interface {
		GetSubject() *infrahooksv1alpha1.Subject
	}).GetSubject()
}

// setField sets a field of an answer.
func setField(out proto.Message, field protoreflect.Name, value protoreflect.Value) {
	m := out.ProtoReflect()
	m.Set(m.Descriptor().Fields().ByName(field), value)
}

func TestNothingIsCalledBeforeItIsStored(t *testing.T) {
	forSubjects(t, func(t *testing.T, m *memory) {
		m.fails = func(string) error { return errCut }
		if _, err := m.reconcile(0); err == nil {
			t.Error("a write that failed is no error")
		}
		m.wantAsked("the externalID could not be stored")
		m.fails = nil
		m.answer = func(req, _ proto.Message) *gatewaytest.Answer {
			o := m.stored()
			if id := *m.externalID(o); id == "" || id != subjectOf(req).GetExternalId() || !hasFinalizer(o, m.finalizer) ||
				o.GetAnnotations()[blockMoveAnnotation] == "" {
				t.Errorf("the request has the externalID %q; stored are %q, %v, %v", subjectOf(req).GetExternalId(), id,
					o.GetFinalizers(), o.GetAnnotations())
			}
			return nil
		}
		m.must(0)
		m.wantAsked("it is stored", m.makes)
		if _, held := m.stored().GetAnnotations()[blockMoveAnnotation]; held || !wasProvisioned(m.stored()) {
			t.Error("what has been made is not recorded, or cannot be moved")
		}
	})
}

// inconclusive are the ways in which a call says nothing about what exists.
var inconclusive = map[string]func(out proto.Message) *gatewaytest.Answer{
	"lost": func(proto.Message) *gatewaytest.Answer {
		return &gatewaytest.Answer{NoAnswer: hook.Errorf(hook.Unreachable, "connection reset")}
	},
	"error of the gateway": func(proto.Message) *gatewaytest.Answer {
		return &gatewaytest.Answer{GRPC: status.New(codes.Unavailable, "try again")}
	},
	"Failure": func(out proto.Message) *gatewaytest.Answer {
		setField(out, "status", protoreflect.ValueOfEnum(refused.Number()))
		return nil
	},
	"no status": func(out proto.Message) *gatewaytest.Answer {
		setField(out, "status", protoreflect.ValueOfEnum(0))
		return nil
	},
	"neither phase nor state": func(out proto.Message) *gatewaytest.Answer {
		for _, name := range []protoreflect.Name{"phase", "state"} {
			if out.ProtoReflect().Descriptor().Fields().ByName(name) != nil {
				setField(out, name, protoreflect.ValueOfEnum(0))
			}
		}
		return nil
	},
}

// An answer that is lost or inconclusive changes the condition Synced alone, be it that something is asked for or
// deleted, and the call is repeated later.
func TestLostAnswers(t *testing.T) {
	for name, lose := range inconclusive {
		for _, deleted := range []bool{false, true} {
			forSubjects(t, func(t *testing.T, m *memory) {
				m.made()
				m.answer = func(_, out proto.Message) *gatewaytest.Answer {
					if d, ok := out.(interface {
						GetState() infrahooksv1alpha1.DeletionState
					}); ok && d.GetState() == gone {
						setField(out, "state", protoreflect.ValueOfEnum(deleting.Number()))
					}
					return nil
				}
				hook := m.makes
				if deleted {
					hook = m.deletes
					m.remove(m.stored())
					m.must(time.Hour)
					m.asked = nil
				}
				before := m.stored()
				m.answer = func(_, out proto.Message) *gatewaytest.Answer { return lose(out) }
				m.must(time.Hour)
				m.must(time.Millisecond) // not due yet
				m.wantAsked(name, hook)
				after := m.stored()
				synced := meta.FindStatusCondition(after.GetConditions(), infrav1.SyncedCondition)
				if synced.Status != metav1.ConditionFalse {
					t.Errorf("%s: Synced is %+v", name, synced)
				}
				for _, o := range []object{before, after} {
					o.SetResourceVersion("")
					o.SetConditions(slices.DeleteFunc(slices.Clone(o.GetConditions()),
						func(c metav1.Condition) bool { return c.Type == infrav1.SyncedCondition }))
				}
				if diff := cmp.Diff(before, after); diff != "" {
					t.Errorf("%s: something else has changed (-before +after):\n%s", name, diff)
				}
				m.answer = nil
				m.must(2 * time.Minute)
				m.wantAsked(name+", again", hook, hook)
				if deleted != (m.stored() == nil) {
					t.Errorf("%s: after an answer there is %v", name, m.stored())
				}
			})
		}
	}
}

// An answer that could not be recorded is asked for again at once, under the same externalID, and is recorded then.
func TestFailedWrites(t *testing.T) {
	forSubjects(t, func(t *testing.T, m *memory) {
		for _, part := range []string{"", "/status"} {
			m := newMemory(t, m.subject)
			ids := map[string]bool{}
			m.answer = func(req, _ proto.Message) *gatewaytest.Answer {
				ids[subjectOf(req).GetExternalId()] = true
				return nil
			}
			m.fails = func(write string) error {
				if len(m.asked) == 1 && write == "patch "+m.kind+part {
					return errCut
				}
				return nil
			}
			if _, err := m.reconcile(0); err == nil {
				t.Errorf("%q: a write that failed is no error", part)
			}
			if wasProvisioned(m.stored()) {
				t.Errorf("%q: the status claims what was not recorded", part)
			}
			m.must(0)
			m.wantAsked("a write failed", m.makes, m.makes)
			if !wasProvisioned(m.stored()) || len(ids) != 1 {
				t.Errorf("%q: it was made as %v, and is %v", part, ids, m.stored().GetConditions())
			}
		}
	})
}

// What was decided from an older state of the object is refused, in its spec and in its status, and decided again.
func TestStaleWritesAreConflicts(t *testing.T) {
	forSubjects(t, func(t *testing.T, m *memory) {
		for _, made := range []bool{false, true} {
			m := newMemory(t, m.subject)
			if made {
				m.made()
			}
			m.answer = func(_, out proto.Message) *gatewaytest.Answer {
				if made {
					setField(out, "phase", protoreflect.ValueOfEnum(infrahooksv1alpha1.Phase_PHASE_PROVISIONING.Number()))
				}
				if len(m.asked) == 1 {
					m.change(func(o object) {
						o.SetLabels(map[string]string{clusterv1.ClusterNameLabel: "x", "written": "meanwhile"})
					})
				}
				return nil
			}
			if _, err := m.reconcile(time.Hour); !apierrors.IsConflict(err) {
				t.Errorf("made before: %t: got %v, want a conflict", made, err)
			}
			m.must(0)
			m.wantAsked("after a conflict", m.makes, m.makes)
			if o := m.stored(); o.GetLabels()["written"] == "" || saysReady(o) == made {
				t.Errorf("made before: %t: the labels are %v, and Ready is %s", made, o.GetLabels(), m.condition(infrav1.ReadyCondition))
			}
		}
	})
}

// Only the answer Gone removes a finalizer, and one that could not be removed is removed after the next.
func TestOnlyGoneReleases(t *testing.T) {
	forSubjects(t, func(t *testing.T, m *memory) {
		m.made()
		m.remove(m.stored())
		m.answer = func(_, out proto.Message) *gatewaytest.Answer {
			setField(out, "state", protoreflect.ValueOfEnum(deleting.Number()))
			return nil
		}
		m.must(0)
		m.must(time.Millisecond) // not due yet
		m.wantAsked("it is being deleted", m.deletes)
		ready := meta.FindStatusCondition(m.stored().GetConditions(), infrav1.ReadyCondition)
		if ready.Reason != infrav1.DeletingReason {
			t.Errorf("Ready is %+v", ready)
		}
		m.answer, m.fails = nil, func(string) error { return errCut }
		if _, err := m.reconcile(time.Minute); err == nil || m.stored() == nil {
			t.Errorf("a finalizer that could not be removed: %v", err)
		}
		m.fails = nil
		m.must(0)
		m.wantAsked("the answer was lost", m.deletes, m.deletes, m.deletes)
		if m.stored() != nil {
			t.Error("what is gone outside is kept")
		}
		m.must(0) // nothing is left to look at
		close(m.events)
		for _, want := range []string{"Normal Provisioned ", "Normal Deleting ", "Normal Deleted nothing is left in the backend"} {
			if e := <-m.events; !strings.HasPrefix(e, want) {
				t.Errorf("the event is %q, want %q", e, want)
			}
		}
	})
}

// What is deleted although nothing must be called, and what must neither be called nor released.
func TestDeletionWithoutACall(t *testing.T) {
	annotate := func(key, value string) func(*memory) {
		return func(m *memory) {
			m.change(func(o object) {
				annotations := maps.Clone(o.GetAnnotations())
				if annotations == nil {
					annotations = map[string]string{}
				}
				annotations[key] = value
				o.SetAnnotations(annotations)
			})
		}
	}
	class := func(change func(*infrav1.InfrastructureClass)) func(*memory) {
		return func(m *memory) { alter(m, change) }
	}
	for name, c := range map[string]struct {
		change func(m *memory)
		called bool
		stays  bool
		says   string // of a condition before the deletion, if the object is not called about either
	}{
		"abandoned":                          {change: func(m *memory) { annotate(infrav1.AbandonAnnotation, *m.externalID(m.stored()))(m) }},
		"abandoned under another externalID": {change: annotate(infrav1.AbandonAnnotation, "y"), called: true},
		"never made":                         {change: func(m *memory) { m.change(func(o object) { *m.externalID(o) = "" }) }},
		"paused":                             {change: annotate(clusterv1.PausedAnnotation, ""), stays: true, says: infrav1.PausedReason},
		"managed":                            {change: annotate(clusterv1.ManagedByAnnotation, ""), stays: true},
		"moved":                              {change: annotate(deleteForMoveAnnotation, ""), stays: true},
		"a copy": {change: func(m *memory) {
			first := m.stored()
			first.SetName("first")
			first.SetResourceVersion("")
			first.SetFinalizers(nil)
			first.SetCreationTimestamp(metav1.NewTime(m.now.Add(-time.Hour)))
			if err := m.server.Create(m.t.Context(), first); err != nil {
				m.t.Fatal(err)
			}
			m.change(func(o object) { o.SetCreationTimestamp(metav1.NewTime(m.now)) })
		}, says: infrav1.DuplicateExternalIDReason},
		"without a Cluster": {change: func(m *memory) {
			m.remove(&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "x"}})
		}, called: true},
		"without a handler": {change: class(func(c *infrav1.InfrastructureClass) {
			c.Status.Handlers = infrav1.Handlers{}
		}), stays: true, says: infrav1.MissingHandlerReason},
		"with parameters that are invalid now": {change: class(func(c *infrav1.InfrastructureClass) {
			c.Status.Schemas = needsZone
		}), called: true},
		"without a class": {change: func(m *memory) {
			class := &infrav1.InfrastructureClass{ObjectMeta: metav1.ObjectMeta{Name: "x"}}
			m.remove(class) // which has a finalizer
			if err := m.server.Patch(m.t.Context(), class, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))); err != nil {
				m.t.Fatal(err)
			}
		}, stays: true, says: infrav1.ClassNotFoundReason},
	} {
		forSubjects(t, func(t *testing.T, m *memory) {
			m.made()
			c.change(m)
			if c.says != "" {
				m.must(time.Hour)
				if !slices.ContainsFunc(m.stored().GetConditions(), func(got metav1.Condition) bool { return got.Reason == c.says }) {
					t.Errorf("%s: no condition says %s: %v", name, c.says, m.stored().GetConditions())
				}
			}
			m.remove(m.stored())
			m.must(time.Hour)
			want := []string{}
			if c.called {
				want = append(want, m.deletes)
			}
			m.wantAsked(name, want...)
			if stays := m.stored() != nil; stays != c.stays {
				t.Errorf("%s: it stays: %t, want %t", name, stays, c.stays)
			}
			counted := testutil.ToFloat64(m.base.metrics.abandoned.WithLabelValues(m.kind))
			if want := name == "abandoned"; (counted == 1) != want {
				t.Errorf("%s: %v are counted as abandoned", name, counted)
			}
		})
	}
}

// What has been made is deleted by what was recorded, whatever is missing around it: the Cluster and its HookgateCluster,
// the owner, and the bootstrap data.
func TestDeletionNeedsNothingAround(t *testing.T) {
	forSubjects(t, func(t *testing.T, m *memory) {
		m.create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "own", Namespace: "team"}, Data: map[string][]byte{"token": []byte("own")}})
		alter(m, func(c *infrav1.HookgateCluster) { c.Spec.CredentialsRef = &infrav1.SecretReference{Name: "own"} })
		m.made()
		clusterID := "cluster"
		named := metav1.ObjectMeta{Namespace: "team", Name: "x"}
		around := []client.Object{
			&clusterv1.Cluster{ObjectMeta: named}, &clusterv1.Machine{ObjectMeta: named}, &clusterv1.MachinePool{ObjectMeta: named},
			&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "team", Name: "bootstrap"}},
		}
		if m.kind != infrav1.HookgateClusterKind {
			around = append(around, &infrav1.HookgateCluster{ObjectMeta: named})
		} else if clusterID = *m.externalID(m.stored()); !strings.HasPrefix(m.condition(infrav1.CredentialsMovableCondition), "True") {
			t.Errorf("clusterctl move does not take the credentials along: %v", m.stored().GetConditions())
		}
		for _, o := range around {
			if err := client.IgnoreNotFound(m.server.Delete(t.Context(), o)); err != nil {
				t.Fatal(err)
			}
		}
		m.remove(m.stored())
		m.answer = func(req, _ proto.Message) *gatewaytest.Answer {
			if s := subjectOf(req); s.GetClusterExternalId() != clusterID || s.GetCredentials()["token"] != "own" || s.GetCluster() != nil {
				t.Errorf("the request is about %v", s)
			}
			return nil
		}
		m.must(time.Hour)
		if m.wantAsked("nothing is around it", m.deletes); m.stored() != nil {
			t.Error("it is kept")
		}
	})
}

// No credential that an extension repeats gets into an object or an event.
func TestCredentialsAreScrubbed(t *testing.T) {
	const said = "login with " + token + " refused"
	message := protoreflect.ValueOfString(said)
	for name, say := range map[string]func(out proto.Message) *gatewaytest.Answer{
		"message": func(out proto.Message) *gatewaytest.Answer {
			setField(out, "message", message)
			return nil
		},
		"Failure": func(out proto.Message) *gatewaytest.Answer {
			setField(out, "message", message)
			setField(out, "status", protoreflect.ValueOfEnum(refused.Number()))
			return nil
		},
		"gateway": func(proto.Message) *gatewaytest.Answer {
			return &gatewaytest.Answer{GRPC: status.New(codes.Internal, said)}
		},
		"unreachable": func(proto.Message) *gatewaytest.Answer {
			return &gatewaytest.Answer{NoAnswer: hook.Errorf(hook.Unreachable, "%s", said)}
		},
		"condition": func(out proto.Message) *gatewaytest.Answer {
			list := []*infrahooksv1alpha1.Condition{{Type: "Login", Status: "False", Reason: "Refused", Message: said}}
			switch a := out.(type) {
			case *infrahooksv1alpha1.ReconcileClusterResponse:
				a.Conditions = list
			case *infrahooksv1alpha1.ReconcileMachineResponse:
				a.Conditions = list
			case *infrahooksv1alpha1.ReconcileMachinePoolResponse:
				a.Conditions = list
			}
			return nil
		},
	} {
		forSubjects(t, func(t *testing.T, m *memory) {
			m.answer = func(req, out proto.Message) *gatewaytest.Answer {
				if subjectOf(req).GetCredentials()["token"] != token {
					t.Errorf("%s: the request has the credentials %v", name, subjectOf(req).GetCredentials())
				}
				if p, ok := out.(interface {
					GetPhase() infrahooksv1alpha1.Phase
				}); ok && p.GetPhase() == ready {
					setField(out, "phase", protoreflect.ValueOfEnum(infrahooksv1alpha1.Phase_PHASE_PROVISIONING.Number()))
				} else {
					setField(out, "state", protoreflect.ValueOfEnum(deleting.Number()))
				}
				return say(out)
			}
			m.must(0)
			made, err := json.Marshal(m.stored())
			if err != nil {
				t.Fatal(err)
			}
			m.remove(m.stored())
			m.must(time.Hour)
			deleted, err := json.Marshal(m.stored())
			if err != nil {
				t.Fatal(err)
			}
			m.wantAsked(name, m.makes, m.deletes)
			close(m.events)
			texts := []string{string(made), string(deleted)}
			for e := range m.events {
				texts = append(texts, e)
			}
			if all := strings.Join(texts, "\n"); strings.Contains(all, token) || name != "condition" && !strings.Contains(all, "refused") {
				t.Errorf("%s: an object or event has a credential, or says nothing:\n%s", name, all)
			}
		})
	}
}

// What has not changed is asked for again in time, and not written.
func TestUnchangedIsNotWritten(t *testing.T) {
	forSubjects(t, func(t *testing.T, m *memory) {
		m.made()
		m.must(time.Minute / 2)
		m.wantAsked("half a minute later")
		m.must(time.Hour)
		m.wantAsked("an hour later", m.makes)
		if len(m.writes) > 0 {
			t.Errorf("it has written %v", m.writes)
		}
	})
}

// A class is kept before its extension is asked, and what the extension has announced stays when it does not answer.
func TestClassIsKeptAndStaysKnown(t *testing.T) {
	m := newMemory(t, subjects[0])
	c := &classes{base: m.base, pace: newScheduler(m.base.now)}
	stored := func() *infrav1.InfrastructureClass {
		class := &infrav1.InfrastructureClass{}
		if err := m.server.Get(t.Context(), client.ObjectKey{Name: "x"}, class); err != nil {
			t.Fatal(err)
		}
		return class
	}
	look := func() {
		t.Helper()
		m.now = m.now.Add(time.Hour)
		if _, err := c.Reconcile(t.Context(), requestOf(stored())); err != nil {
			t.Fatal(err)
		}
	}
	class := stored()
	class.Finalizers = nil
	if err := m.server.Update(t.Context(), class); err != nil {
		t.Fatal(err)
	}
	m.answer = func(_, out proto.Message) *gatewaytest.Answer {
		if !hasFinalizer(stored(), infrav1.ClassFinalizer) {
			t.Error("the extension is asked before the class is kept")
		}
		a := out.(*infrahooksv1alpha1.DiscoverInfrastructureResponse)
		a.Status, a.ProviderIdPrefix = succeeded, "new://"
		for _, name := range []string{"ReconcileCluster", "DeleteCluster", "ReconcileMachine", "DeleteMachine"} {
			a.Handlers = append(a.Handlers, &hooksv1alpha1.ExtensionHandler{Name: name, RequestHook: &hooksv1alpha1.GroupVersionHook{
				ApiVersion: "infrastructure.hookgate.dev/v1alpha1", Hook: name,
			}})
		}
		return nil
	}
	look()
	known := stored().Status
	if known.ProviderIDPrefix != "new://" || known.Handlers.DeleteMachine != "deletemachine" || !saysReady(stored()) {
		t.Errorf("what was announced is not recorded: %+v", known)
	}
	m.answer = func(_, out proto.Message) *gatewaytest.Answer { return inconclusive["lost"](out) }
	look()
	class = stored()
	if class.Status.Handlers != known.Handlers || class.Status.ProviderIDPrefix != "new://" || !saysReady(class) ||
		!meta.IsStatusConditionPresentAndEqual(class.Status.Conditions, infrav1.SyncedCondition, metav1.ConditionFalse) {
		t.Errorf("an extension that does not answer changes more than Synced: %+v", class.Status)
	}
	m.wantAsked("twice", "DiscoverInfrastructure", "DiscoverInfrastructure")
	alter(m, func(c *infrav1.InfrastructureClass) {
		c.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
	})
	look()
	if m.wantAsked("not while it is paused", "DiscoverInfrastructure", "DiscoverInfrastructure"); !meta.IsStatusConditionTrue(
		stored().Status.Conditions, infrav1.PausedCondition) {
		t.Errorf("the class does not say that it is paused: %+v", stored().Status)
	}
}
