// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/controllers"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/kinds/hookjob"
	"github.com/hookgate/hookgate/registry"
)

const (
	revisions = "/apis/apps/v1/namespaces/system/controllerrevisions/"
	prefix    = "/apis/hookgate.dev/v1alpha1/"
	stays     = "; its previous version stays in effect"
)

// lastValidKinds are the kinds of Hookgate's own: specs with a number as their version, specs with mistakes that no
// schema refuses, and the version that a replica has in effect.
var lastValidKinds = map[string]struct {
	resource, valid, mistaken string
	inEffect                  func(*replica) string
}{
	"HookRule": {
		"hookrules", `{"hook": "BeforeClusterCreate", "namespaceSelector": {"matchLabels": {"v": "%d"}}, "fail": [{"if": "true", "message": "'no'"}]}`,
		`{"hook": "BeforeClusterCreate", "namespaceSelector": {"matchLabels": {"v": "%d"}}, "fail": [{"if": "(", "message": "'no'"}]}`, selected,
	},
	"HookJob": {
		"hookjobs", `{"hook": "BeforeClusterCreate", "namespaceSelector": {"matchLabels": {"v": "%d"}}, "jobTemplate": ` + jobTemplate + `}`,
		`{"hook": "BeforeClusterCreate", "namespaceSelector": {"matchLabels": {"v": "%d"}}, "once": "(", "jobTemplate": ` + jobTemplate + `}`, selected,
	},
	"ExtensionPolicy": {
		"extensionpolicies", `{"targetRef": {"name": "acme"}, "timeoutSeconds": %d}`,
		`{"targetRef": {"name": "acme"}, "timeoutSeconds": %d, "matchConditions": [{"name": "x", "expression": "("}]}`,
		func(r *replica) string {
			return strconv.Itoa(int(r.registry.Snapshot().Policies("acme").Override(registry.Handler{Name: "a"}).Timeout.Seconds()))
		},
	},
	"HandlerChain": {
		"handlerchains", `{"hook": "BeforeClusterCreate", "steps": [{"handler": "%d.acme"}]}`, `{"hook": "BeforeClusterCreate", "steps": [{"handler": "%d"}]}`,
		func(r *replica) string {
			c, ok := r.registry.Snapshot().Chain("x")
			if !ok || len(c.Steps) == 0 {
				return "none"
			}
			return strings.TrimSuffix(c.Steps[0].Handler, ".acme")
		},
	},
	"ExtensionRollout": {
		"extensionrollouts", `{"stable": "x-a", "candidate": "x-%d"}`, `{"stable": "x-a", "candidate": "x-%d", "candidateFor": {"percent": 101}}`,
		func(r *replica) string {
			o, ok := r.registry.Snapshot().Rollout("x")
			if !ok {
				return "none"
			}
			return strings.TrimPrefix(o.Candidate, "x-")
		},
	},
}

const jobTemplate = `{"spec": {"backoffLimit": 0, "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "a"}]}}}}`

// selected returns the version in the namespaceSelector of a rule or a job.
func selected(r *replica) string {
	reg, ok := r.registry.Snapshot().Registration("x")
	if !ok || reg.NamespaceSelector == nil {
		return "none"
	}
	return strings.TrimPrefix(reg.NamespaceSelector.String(), "v=")
}

// keeping makes a Source keep what was last valid.
func keeping(c *controllers.Config) {
	c.OwnNamespace = "system"
	if !c.ReadOnly {
		c.HookJobs = hookjob.Allowed{Namespaces: []string{"jobs"}}
	}
}

// object creates or changes the object x of a kind.
func (s *apiServer) object(kind, uid, spec string, version int) {
	path := prefix + lastValidKinds[kind].resource + "/x"
	var o map[string]any
	if !s.read(path, &o) || metadata(o)["uid"] != uid {
		o = map[string]any{"apiVersion": "hookgate.dev/v1alpha1", "kind": kind, "metadata": map[string]any{"name": "x", "uid": uid}}
	}
	var decoded map[string]any
	if err := json.Unmarshal(fmt.Appendf(nil, spec, version), &decoded); err != nil {
		panic(err)
	}
	o["spec"] = decoded
	s.put(path, o)
}

// recorded returns the revisions that are recorded of an object.
func (s *apiServer) recorded(kind, uid string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []string
	for path := range s.objects {
		if revision, ok := strings.CutPrefix(path, revisions+strings.ToLower(kind)+"-"+uid+"-"); ok {
			found = append(found, revision)
		}
	}
	slices.Sort(found)
	return found
}

func (s *apiServer) awaitRecorded(t testing.TB, kind, uid string, want ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("of %s %s is recorded %v", kind, uid, want), func() (string, bool) {
		got := s.recorded(kind, uid)
		return fmt.Sprint(got), slices.Equal(got, want)
	})
}

// awaitMistaken waits until the condition of x says that it has a mistake, with an end.
func (s *apiServer) awaitMistaken(t testing.TB, kind string, ends bool) {
	t.Helper()
	path := prefix + lastValidKinds[kind].resource + "/x"
	eventually(t, fmt.Sprintf("%s is invalid, and its previous version in effect: %t", path, ends), func() (string, bool) {
		var o struct {
			Metadata metav1.ObjectMeta
			Status   struct{ Conditions []metav1.Condition }
		}
		s.read(path, &o)
		if len(o.Status.Conditions) != 1 {
			return "no condition", false
		}
		c := o.Status.Conditions[0]
		return c.Reason + ": " + c.Message, c.Reason == v1alpha1.InvalidReason && c.ObservedGeneration == o.Metadata.Generation &&
			strings.HasSuffix(c.Message, stays) == ends
	})
}

// An object that gets a mistake stays in effect as it was last valid: in the replica that has seen it, in one that starts
// later, and in one that only reads. A new object of its name has none of it.
func TestWhatWasLastValidOutlivesReplicas(t *testing.T) {
	for kind, k := range lastValidKinds {
		t.Run(kind, func(t *testing.T) {
			api := newAPIServer(t)
			api.register("acme", nil)
			inEffect := func(r *replica, who, want string) {
				t.Helper()
				if got := k.inEffect(r); got != want {
					t.Errorf("%s has version %s in effect, want %s", who, got, want)
				}
			}
			first := start(t, api, keeping)
			api.object(kind, "u1", k.valid, 1)
			api.awaitRecorded(t, kind, "u1", "1")
			api.object(kind, "u1", k.valid, 2)
			api.awaitRecorded(t, kind, "u1", "2")
			api.object(kind, "u1", k.mistaken, 3)
			api.awaitMistaken(t, kind, true)
			inEffect(first, "the replica that saw it valid", "2")
			first.stop()

			second := start(t, api, keeping)
			inEffect(second, "a replica that starts later", "2")
			reader := start(t, api, func(c *controllers.Config) { c.ReadOnly = true; keeping(c) })
			if kind != hookjob.Kind { // which a reader does not follow
				inEffect(reader, "a replica that only reads", "2")
			}
			api.object(kind, "u1", k.mistaken, 4)
			api.awaitMistaken(t, kind, true)
			inEffect(second, "after another mistake, it", "2")
			api.awaitRecorded(t, kind, "u1", "2")

			// A new object has a record of its own only.
			api.remove(prefix + k.resource + "/x")
			api.object(kind, "u2", k.mistaken, 5)
			api.awaitMistaken(t, kind, false)
			third := start(t, api, keeping)
			for who, r := range map[string]*replica{"the replica": second, "another": third} {
				if got := k.inEffect(r); got == "2" {
					t.Errorf("%s has a version of an object that was deleted in effect", who)
				}
			}
			api.object(kind, "u2", k.valid, 6)
			api.awaitRecorded(t, kind, "u2", "2")
		})
	}
}

// recordOf returns the stored record of an object.
func (s *apiServer) recordOf(kind, uid, revision string) *appsv1.ControllerRevision {
	var r *appsv1.ControllerRevision
	s.read(revisions+strings.ToLower(kind)+"-"+uid+"-"+revision, &r)
	return r
}

// What a record says must be understood whole: one with an unknown member, of another kind, or that a stricter gateway
// would refuse, counts as none. It belongs to the object for the garbage collector.
func TestRecordsThatDoNotCount(t *testing.T) {
	const kind = "HookRule"
	k := lastValidKinds[kind]
	api := newAPIServer(t)
	first := start(t, api, keeping)
	api.object(kind, "u1", k.valid, 1)
	api.awaitRecorded(t, kind, "u1", "1")
	api.object(kind, "u1", k.mistaken, 2)
	api.awaitMistaken(t, kind, true)
	first.stop()
	good := api.recordOf(kind, "u1", "1")
	good.UID = "good"
	want := []metav1.OwnerReference{{APIVersion: "hookgate.dev/v1alpha1", Kind: kind, Name: "x", UID: "u1"}}
	if diff := cmp.Diff(want, good.OwnerReferences); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
	for reason, change := range map[string]func(*appsv1.ControllerRevision){
		"a member that this version does not know": func(r *appsv1.ControllerRevision) {
			r.Data.Raw = []byte(strings.Replace(string(r.Data.Raw), `"hook":`, `"until":"later","hook":`, 1))
		},
		"an expression that this version refuses": func(r *appsv1.ControllerRevision) {
			r.Data.Raw = []byte(strings.Replace(string(r.Data.Raw), `"true"`, `"request.gone"`, 1))
		},
		"no spec":             func(r *appsv1.ControllerRevision) { r.Data.Raw = []byte(`{}`) },
		"no JSON object":      func(r *appsv1.ControllerRevision) { r.Data.Raw = []byte(`[]`) },
		"another object":      func(r *appsv1.ControllerRevision) { r.OwnerReferences[0].UID = "u0" },
		"another kind":        func(r *appsv1.ControllerRevision) { r.Labels["hookgate.dev/last-valid"] = "HookJob" },
		"a kind of elsewhere": func(r *appsv1.ControllerRevision) { r.OwnerReferences[0].APIVersion = "apps/v1" },
		"no owner":            func(r *appsv1.ControllerRevision) { r.OwnerReferences = nil },
	} {
		t.Run(reason, func(t *testing.T) {
			r := good.DeepCopy()
			r.UID = "other"
			change(r)
			api.put(revisions+r.Name, r)
			replica := start(t, api, keeping)
			if got := k.inEffect(replica); got == "1" {
				t.Error("it is in effect")
			}
			api.awaitMistaken(t, kind, false)
			api.put(revisions+r.Name, good)
			eventually(t, "the good record is in effect", func() (string, bool) {
				return k.inEffect(replica), k.inEffect(replica) == "1"
			})
			api.awaitMistaken(t, kind, true)
			replica.stop()
		})
	}
}

// Only the leader writes records, one for each valid generation, and no status makes it write.
func TestOnlyValidGenerationsAreRecorded(t *testing.T) {
	const kind = "HandlerChain"
	k := lastValidKinds[kind]
	api := newAPIServer(t)
	follower := start(t, api, func(c *controllers.Config) { following(api)(c); keeping(c) })
	about := func(r *replica, want string) {
		t.Helper()
		eventually(t, "version "+want+" is in effect", func() (string, bool) { return k.inEffect(r), k.inEffect(r) == want })
	}
	api.object(kind, "u1", k.valid, 1)
	about(follower, "1")
	api.object(kind, "u1", k.mistaken, 2)
	api.object("HookRule", "u1", lastValidKinds["HookRule"].valid, 7) // what comes later has been seen
	eventually(t, "the rule is in effect", func() (string, bool) { return selected(follower), selected(follower) == "7" })
	about(follower, "1")
	expectWrites(t, api, 0)

	// It begins to lead, and knows what was valid before.
	api.lease("")
	api.awaitMistaken(t, kind, true)
	api.awaitRecorded(t, kind, "u1", "1")
	api.awaitRecorded(t, "HookRule", "u1", "1")
	api.object(kind, "u1", k.valid, 3)
	api.awaitRecorded(t, kind, "u1", "3")
	api.awaitReady(t, "x", v1alpha1.NameCollisionReason, "")
	const written = "POST controllerrevisions 200"
	got := slices.DeleteFunc(requests(api.written()), func(w string) bool { return strings.Contains(w, "/status") })
	if diff := cmp.Diff([]string{written, written, written, "DELETE handlerchain-u1-1 200"}, got); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}

	// One that was deleted by hand is written again.
	api.remove(revisions + "handlerchain-u1-3")
	api.awaitRecorded(t, kind, "u1", "3")
}

// A leader replaces the record of another version of the gateway, which did not know a member, and deletes what an
// earlier one has left.
func TestRecordIsCompletedAfterAnUpgrade(t *testing.T) {
	const kind = "HookRule"
	k := lastValidKinds[kind]
	api := newAPIServer(t)
	first := start(t, api, keeping)
	api.object(kind, "u1", k.valid, 1)
	api.awaitRecorded(t, kind, "u1", "1")
	first.stop()
	old := api.recordOf(kind, "u1", "1")
	complete := string(old.Data.Raw)
	old.UID, old.Data.Raw = "old", []byte(strings.Replace(complete, `,"namespaceSelector":{"matchLabels":{"v":"1"}}`, "", 1))
	if complete == string(old.Data.Raw) {
		t.Fatalf("the record is %s", complete)
	}
	api.put(revisions+old.Name, old)
	older := old.DeepCopy()
	older.Name, older.UID, older.Revision = "hookrule-u1-0", "older", 0
	api.put(revisions+older.Name, older)
	start(t, api, keeping)
	eventually(t, "the record is complete", func() (string, bool) {
		r := api.recordOf(kind, "u1", "1")
		if r == nil {
			return "none", false
		}
		return string(r.Data.Raw), string(r.Data.Raw) == complete && r.UID != types.UID("old")
	})
	api.awaitRecorded(t, kind, "u1", "1")
}

// Without permission for records, a gateway says which Role it lacks, and goes on without them; with it, it takes them
// up.
func TestRecordsNeedARole(t *testing.T) {
	const kind = "HookRule"
	k := lastValidKinds[kind]
	api := newAPIServer(t)
	api.object(kind, "u1", k.valid, 1)
	var granted atomic.Bool
	refuse := func(path string) error {
		if granted.Load() || !strings.Contains(path, "controllerrevisions") {
			return nil
		}
		return apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "controllerrevisions"}, "", nil)
	}
	api.before(func(_, path string) error { return refuse(path) })
	api.refuseWatches(refuse)
	r := start(t, api, keeping)
	if got := k.inEffect(r); got != "1" {
		t.Errorf("version %s is in effect", got)
	}
	r.awaitLog(t, "hookgate-last-valid")
	granted.Store(true)
	api.awaitRecorded(t, kind, "u1", "1")
	api.before(func(method, path string) error {
		if method == http.MethodPost && strings.Contains(path, "controllerrevisions") {
			return apierrors.NewForbidden(schema.GroupResource{Group: "apps", Resource: "controllerrevisions"}, "", nil)
		}
		return nil
	})
	api.object(kind, "u1", k.valid, 2)
	r.awaitLog(t, "last valid specs cannot be recorded")
	api.before(nil)
	api.awaitRecorded(t, kind, "u1", "2")
}

// A spec that is too large for a record is in effect, and the log says that it is not kept.
func TestSpecTooLargeForARecord(t *testing.T) {
	const kind = "HookRule"
	k := lastValidKinds[kind]
	api := newAPIServer(t)
	r := start(t, api, keeping)
	var labels strings.Builder
	for i := range limits.LastValidBytes / 16 {
		fmt.Fprintf(&labels, `"l%013d": "", `, i)
	}
	api.object(kind, "u1", strings.Replace(k.valid, `"v":`, labels.String()+`"v":`, 1), 1)
	r.awaitLog(t, "last valid spec cannot be recorded")
	eventually(t, "it is in effect", func() (string, bool) { return k.inEffect(r), k.inEffect(r) != "none" })
	api.object(kind, "u1", k.valid, 2)
	api.awaitRecorded(t, kind, "u1", "2")
}
