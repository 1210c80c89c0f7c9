// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookjob_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/kinds/hookjob"
	"github.com/hookgate/hookgate/internal/kinds/owner"
)

// inMemory is an API server in memory, for HookJobs of the name backup, and the Cluster team/a.
type inMemory struct {
	t       *testing.T
	client  client.Client
	cluster *unstructured.Unstructured
	objects int
	hookJob *v1alpha1.HookJob
}

func newInMemory(t *testing.T) *inMemory {
	t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{batchv1.AddToScheme, corev1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	s := &inMemory{t: t, cluster: &unstructured.Unstructured{}}
	s.cluster.SetGroupVersionKind(owner.ClusterKind)
	s.client = fake.NewClientBuilder().WithScheme(scheme).WithStatusSubresource(&batchv1.Job{}).
		WithInterceptorFuncs(interceptor.Funcs{Create: func(
			ctx context.Context, c client.WithWatch, o client.Object, options ...client.CreateOption,
		) error {
			s.objects++
			o.SetUID(types.UID(fmt.Sprintf("uid-%d", s.objects)))
			return c.Create(ctx, o, options...)
		}, List: func(ctx context.Context, c client.WithWatch, l client.ObjectList, options ...client.ListOption) error {
			of, isMetadata := l.(*metav1.PartialObjectMetadataList)
			if !isMetadata {
				return c.List(ctx, l, options...)
			}
			of.Items = []metav1.PartialObjectMetadata{{ObjectMeta: metav1.ObjectMeta{
				Namespace: s.cluster.GetNamespace(), Name: s.cluster.GetName(), UID: s.cluster.GetUID(),
			}}}
			return nil
		}}).Build()
	s.cluster.SetNamespace("team")
	s.cluster.SetName("a")
	s.cluster.SetUID("made")
	return s
}

func (s *inMemory) create(o client.Object) {
	s.t.Helper()
	if err := s.client.Create(s.t.Context(), o); err != nil {
		s.t.Fatal(err)
	}
}

// apply makes the HookJob with a new UID, and returns how it answers for the Cluster.
func (s *inMemory) apply(spec string) (say func() string) {
	s.t.Helper()
	o := &v1alpha1.HookJob{ObjectMeta: metav1.ObjectMeta{Name: "backup"}}
	if err := yaml.UnmarshalStrict([]byte(spec), &o.Spec); err != nil {
		s.t.Fatal(err)
	}
	s.create(o)
	s.hookJob = o
	return s.compile()
}

// compile returns how the HookJob answers for the Cluster.
func (s *inMemory) compile() (say func() string) {
	s.t.Helper()
	hooks, err := catalog.With(catalog.Own()...)
	if err != nil {
		s.t.Fatal(err)
	}
	cel, err := policy.NewCompiler()
	if err != nil {
		s.t.Fatal(err)
	}
	types, err := policy.NewTypes(hooks)
	if err != nil {
		s.t.Fatal(err)
	}
	cluster := &hookjob.Cluster{
		Jobs: s.client, API: s.client, Namespace: "hookgate-system", Logger: slog.New(slog.DiscardHandler),
	}
	allowed := &hookjob.Allowed{Namespaces: []string{"jobs"}}
	reg, errs := hookjob.NewCompiler(hooks, cel, types, allowed, cluster).Compile(s.hookJob)
	if len(errs) > 0 {
		s.t.Fatal(errs.ToAggregate())
	}
	return func() string {
		s.t.Helper()
		raw, err := s.cluster.MarshalJSON()
		if err != nil {
			s.t.Fatal(err)
		}
		cluster := &hooksv1alpha1.RawExtension{Raw: raw}
		var request proto.Message = &hooksv1alpha1.BeforeClusterUpgradeRequest{
			Cluster: cluster, ToKubernetesVersion: "v1.36.0",
		}
		switch s.hookJob.Spec.Hook {
		case "BeforeClusterCreate":
			request = &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: cluster}
		case "BeforeClusterDelete":
			request = &hooksv1alpha1.BeforeClusterDeleteRequest{Cluster: cluster}
		}
		m, err := reg.InProcess.Answer(s.t.Context(), request, policy.Guard{})
		if err != nil {
			return err.Error()
		}
		answer := m.(interface {
			GetMessage() string
			GetRetryAfterSeconds() int32
		})
		return fmt.Sprintf("%s after %d s", answer.GetMessage(), answer.GetRetryAfterSeconds())
	}
}

func (s *inMemory) jobs() []batchv1.Job {
	s.t.Helper()
	list := &batchv1.JobList{}
	if err := s.client.List(s.t.Context(), list); err != nil {
		s.t.Fatal(err)
	}
	return list.Items
}

// succeed lets the only Job succeed.
func (s *inMemory) succeed() {
	s.t.Helper()
	all := s.jobs()
	if len(all) != 1 {
		s.t.Fatalf("there are %d Jobs", len(all))
	}
	all[0].Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	if err := s.client.Status().Update(s.t.Context(), &all[0]); err != nil {
		s.t.Fatal(err)
	}
}

// collect deletes what the HookJob owned, as the garbage collector does.
func (s *inMemory) collect() {
	s.t.Helper()
	for _, o := range []client.Object{&batchv1.Job{}, &corev1.Secret{}, &corev1.ConfigMap{}} {
		for _, namespace := range []string{"jobs", "hookgate-system"} {
			if err := s.client.DeleteAllOf(s.t.Context(), o, client.InNamespace(namespace)); err != nil {
				s.t.Fatal(err)
			}
		}
	}
}

// moved gives the Cluster another UID, as clusterctl move does, and the owner of its records with it.
func (s *inMemory) moved() {
	s.t.Helper()
	s.cluster.SetUID("moved")
	list := &v1alpha1.ClusterRecordList{}
	if err := s.client.List(s.t.Context(), list); err != nil {
		s.t.Fatal(err)
	}
	for i := range list.Items {
		list.Items[i].OwnerReferences[0].UID = "moved"
		if err := s.client.Update(s.t.Context(), &list.Items[i]); err != nil {
			s.t.Fatal(err)
		}
	}
}

// What a HookJob has done is deleted with it: another one of its name runs its own Jobs. After a move, the HookJob of
// the name is another one, too, and what was done counts.
func TestHookJobOfTheSameName(t *testing.T) {
	s := newInMemory(t)
	say := s.apply(valid)
	want := func(when, want string) {
		t.Helper()
		if got := say(); !strings.HasSuffix(got, want) {
			t.Errorf("%s: %q, want %q", when, got, want)
		}
	}
	again := func() {
		t.Helper()
		if err := s.client.DeleteAllOf(t.Context(), &v1alpha1.HookJob{}); err != nil {
			t.Fatal(err)
		}
		say = s.apply(valid)
	}
	const runs, done = " runs after 30 s", " after 0 s"
	want("first", runs)
	s.succeed()
	want("after a success", done)
	again()
	want("made again, and nothing is collected yet", ` of an earlier HookJob "backup" is being deleted after 30 s`)
	if err := s.client.DeleteAllOf(t.Context(), &batchv1.Job{}, client.InNamespace("jobs")); err != nil {
		t.Fatal(err)
	}
	want("the record is not collected yet", runs)
	s.succeed()
	want("the record is not collected yet", "one of the two HookJobs is being deleted: try again")
	s.collect()
	want("all is collected", runs)
	s.succeed()
	want("after another success", done)
	s.collect()
	want("the record of the Cluster is left", done)
	again()
	s.moved()
	want("after a move", done)
	if n := len(s.jobs()); n != 0 {
		t.Errorf("after a move, %d Jobs were made", n)
	}
}

// What a HookJob has done for one hook is nothing that it has done for another one.
func TestAnotherHook(t *testing.T) {
	for name, change := range map[string]func(s *inMemory){
		"edited":           func(*inMemory) {},
		"edited and moved": func(s *inMemory) { s.collect(); s.moved() },
	} {
		t.Run(name, func(t *testing.T) {
			s := newInMemory(t)
			spec := strings.NewReplacer("BeforeClusterUpgrade", "BeforeClusterCreate",
				` + "/" + request.toKubernetesVersion`, "").Replace(valid)
			say := s.apply(spec)
			say()
			s.succeed()
			if got := say(); got != " after 0 s" {
				t.Fatalf("after a success: %q", got)
			}
			change(s)
			s.hookJob.Spec.Hook = "BeforeClusterDelete"
			if got := s.compile()(); !strings.HasSuffix(got, " runs after 30 s") {
				t.Errorf("for another hook: %q", got)
			}
		})
	}
}
