// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/controllers"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	machinesv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/machines/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/kinds/hookjob"
	"github.com/hookgate/hookgate/registry"
	"github.com/hookgate/hookgate/test/anykind"
	"github.com/hookgate/hookgate/test/process"
)

// jobServer is an API server with the controllers of Jobs. There is no kubelet: the test plays it.
type jobServer struct {
	t      testing.TB
	config *rest.Config
	client client.Client
}

func newJobServer(t testing.TB) *jobServer {
	t.Helper()
	config, _ := emptyServer(t, filepath.Join("..", "..", "deploy", "crd"))
	_, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{MaxTime: process.ServerPatience, CRDs: []*apiextensionsv1.CustomResourceDefinition{
		anykind.Of("cluster.x-k8s.io", "v1beta2", "Cluster"), anykind.Of("cluster.x-k8s.io", "v1beta2", "Machine")}})
	if err != nil {
		t.Fatal(err)
	}
	s := &jobServer{t: t, config: config}
	s.client = s.connect(config, nil)
	process.Run(t, "kube-controller-manager", exec.CommandContext(context.Background(), filepath.Join(apiServer.BinaryAssetsDirectory, "kube-controller-manager"),
		"--kubeconfig", kubeconfigOf(t, config), "--controllers", "job-controller,ttl-after-finished-controller,garbage-collector-controller",
		"--leader-elect=false", "--secure-port=0", "--concurrent-gc-syncs=2"))
	for _, name := range []string{"jobs", "team", "hookgate-system"} {
		s.create(&corev1.Namespace{}, name, "")
	}
	// The gateway has the rights of deploy/, and no others.
	of := filepath.Join("..", "..", "deploy")
	kubectl := exec.CommandContext(t.Context(), filepath.Join(apiServer.BinaryAssetsDirectory, "kubectl"), "--kubeconfig", kubeconfigOf(t, config), "apply",
		"-f", filepath.Join(of, "components", "cluster", "rbac.yaml"), "-f", filepath.Join(of, "components", "jobs", "rbac.yaml"),
		"-f", filepath.Join(of, "overlays", "hub-alone", "rbac.yaml"), "-f", filepath.Join(of, "jobs", "namespace.yaml"), "-f", filepath.Join(of, "jobs", "rbac.yaml"))
	if out, err := kubectl.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	gateway := []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "hookgate-system", Name: "hookgate"}}
	for _, namespace := range []string{"jobs", "team"} {
		s.create(&rbacv1.RoleBinding{RoleRef: rbacv1.RoleRef{Kind: "ClusterRole", Name: "hookgate-jobs"}, Subjects: gateway}, "hookgate-jobs", namespace)
	}
	return s
}

// gateway is how the gateway connects.
func (s *jobServer) gateway() *rest.Config {
	config := rest.CopyConfig(s.config)
	config.Impersonate.UserName = "system:serviceaccount:hookgate-system:hookgate"
	return config
}

// connect returns a client of config, whose requests pass wrap if it is not nil.
func (s *jobServer) connect(config *rest.Config, wrap func(http.RoundTripper) http.RoundTripper) client.Client {
	s.t.Helper()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{batchv1.AddToScheme, corev1.AddToScheme, eventsv1.AddToScheme, rbacv1.AddToScheme, v1alpha1.AddToScheme} {
		if err := add(scheme); err != nil {
			s.t.Fatal(err)
		}
	}
	config = rest.CopyConfig(config)
	config.QPS, config.Burst = 1000, 1000
	if wrap != nil {
		config.Wrap(wrap)
	}
	c, err := client.New(config, client.Options{Scheme: scheme})
	if err != nil {
		s.t.Fatal(err)
	}
	return c
}

func (s *jobServer) create(o client.Object, name, namespace string) {
	s.t.Helper()
	o.SetName(name)
	o.SetNamespace(namespace)
	if err := s.client.Create(s.t.Context(), o); err != nil {
		s.t.Fatal(err)
	}
}

// apply creates a HookJob.
func (s *jobServer) apply(name, spec string) *v1alpha1.HookJob {
	s.t.Helper()
	o := &v1alpha1.HookJob{}
	if err := yaml.UnmarshalStrict([]byte(spec), &o.Spec); err != nil {
		s.t.Fatal(err)
	}
	s.create(o, name, "")
	return o
}

// cluster returns what a replica of the gateway runs Jobs with. It reads Jobs past a cache, which would have all that the
// gateway may list.
func (s *jobServer) cluster(wrap func(http.RoundTripper) http.RoundTripper) *hookjob.Cluster {
	return &hookjob.Cluster{Jobs: s.client, API: s.connect(s.gateway(), wrap), Namespace: "hookgate-system", Logger: slog.New(slog.DiscardHandler)}
}

// replica compiles a HookJob as a replica of the gateway does.
func (s *jobServer) replica(o *v1alpha1.HookJob, cluster *hookjob.Cluster) registry.Answerer {
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
	allowed := &hookjob.Allowed{Namespaces: []string{"jobs", hookjob.BesideCluster}}
	reg, errs := hookjob.NewCompiler(hooks, cel, types, allowed, cluster).Compile(o)
	if len(errs) > 0 {
		s.t.Fatal(errs.ToAggregate())
	}
	return reg.InProcess
}

// answer is an answer of a hook.
type answer interface {
	GetStatus() hooksv1alpha1.ResponseStatus
	GetMessage() string
}

// say returns the answer to a request in one line.
func (s *jobServer) say(l registry.Answerer, request proto.Message) string {
	s.t.Helper()
	m, err := l.Answer(context.Background(), request, policy.Guard{})
	if err != nil {
		return err.Error()
	}
	a := m.(answer)
	text := strings.TrimPrefix(a.GetStatus().String(), "RESPONSE_STATUS_")
	if retry, ok := m.(interface{ GetRetryAfterSeconds() int32 }); ok && retry.GetRetryAfterSeconds() > 0 {
		text += fmt.Sprintf(", again after %d s", retry.GetRetryAfterSeconds())
	}
	return text + ": " + a.GetMessage()
}

// awaits waits until the answer is that one.
func (s *jobServer) awaits(l registry.Answerer, request proto.Message, want string) {
	s.t.Helper()
	eventually(s.t, want, func() (string, bool) {
		got := s.say(l, request)
		return got, got == want
	})
}

// jobs returns the Jobs that were made for a HookJob and are not about to be deleted.
func (s *jobServer) jobs(hookJob string) []batchv1.Job {
	s.t.Helper()
	var list batchv1.JobList
	if err := s.client.List(s.t.Context(), &list, client.MatchingLabels{hookjob.HookJobLabel: hookJob}); err != nil {
		s.t.Fatal(err)
	}
	return list.Items
}

// job returns the one Job of a HookJob.
func (s *jobServer) job(hookJob string) *batchv1.Job {
	s.t.Helper()
	jobs := s.jobs(hookJob)
	if len(jobs) != 1 {
		s.t.Fatalf("HookJob %s has %d Jobs", hookJob, len(jobs))
	}
	return &jobs[0]
}

// end plays the kubelet: it ends the Pod of a Job, as the container would.
func (s *jobServer) end(job *batchv1.Job, exitCode int32, message string) {
	s.t.Helper()
	phase := corev1.PodSucceeded
	if exitCode != 0 {
		phase = corev1.PodFailed
	}
	s.kubelet(job, phase, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: exitCode, Message: message}})
}

// kubelet plays the kubelet: it writes the status of the Pod of a Job.
func (s *jobServer) kubelet(job *batchv1.Job, phase corev1.PodPhase, container corev1.ContainerState) {
	s.t.Helper()
	var pods corev1.PodList
	eventually(s.t, "a Pod of "+job.Name, func() (string, bool) {
		if err := s.client.List(s.t.Context(), &pods, client.InNamespace(job.Namespace), client.MatchingLabels{batchv1.ControllerUidLabel: string(job.UID)}); err != nil {
			s.t.Fatal(err)
		}
		return "none", len(pods.Items) > 0
	})
	pod := &pods.Items[0]
	pod.Status.Phase = phase
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: pod.Spec.Containers[0].Name, State: container}}
	if err := s.client.Status().Update(s.t.Context(), pod); err != nil {
		s.t.Fatal(err)
	}
}

// delete deletes a Job, and waits until it is gone.
func (s *jobServer) delete(job *batchv1.Job) {
	s.t.Helper()
	if err := s.client.Delete(s.t.Context(), job, client.PropagationPolicy("Background")); err != nil {
		s.t.Fatal(err)
	}
	eventually(s.t, job.Name+" is gone", func() (string, bool) {
		err := s.client.Get(s.t.Context(), client.ObjectKeyFromObject(job), &batchv1.Job{})
		return fmt.Sprint(err), apierrors.IsNotFound(err)
	})
}

const jobTemplate = `
jobTemplate:
  spec:
    backoffLimit: 0
    template:
      spec:
        restartPolicy: Never
        containers: [{name: main, image: example.com/image}]
`

// upgradeOf is a request about a Cluster of namespace team.
func upgradeOf(cluster, to string) *hooksv1alpha1.BeforeClusterUpgradeRequest {
	return &hooksv1alpha1.BeforeClusterUpgradeRequest{
		Settings: map[string]string{"bucket-name": "a$(HOME)"},
		Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(`{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"name":"` + cluster +
			`","namespace":"team","uid":"uid-of-` + cluster + `"}}`)},
		FromKubernetesVersion: "v1.35.0", ToKubernetesVersion: to,
	}
}

// All Jobs of these tests run on one server, one HookJob for each test.
func TestHookJobs(t *testing.T) {
	if apiServer == nil {
		t.Skipf("%s is not set", assetsVariable)
	}
	s := newJobServer(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *jobServer)
	}{
		{"once", testOnce}, {"failure", testFailure}, {"interrupted", testInterrupted}, {"deleted", testDeleted},
		{"files", testFiles}, {"in-place", testInPlace}, {"remediation", testRemediation}, {"telling", testTelling}, {"pruned", testPruned},
		{"problem", testProblem}, {"refused", testRefused}, {"rerun", testRerun}, {"replicas", testReplicas}, {"moves", testMoves},
		{"gone", testGone},
	} {
		t.Run(test.name, func(t *testing.T) {
			of := *s
			of.t = t
			test.run(t, &of)
		})
	}
}

// A Cluster that is gone is cleaned up when its Job has succeeded, and not before. What is recorded outlives the Cluster, and
// says nothing about another one of its name, which clusterctl may move meanwhile.
func testGone(t *testing.T, s *jobServer) {
	o, cluster := s.apply("gone", "hook: AfterClusterDelete\n"+jobTemplate), s.cluster(nil)
	l := s.replica(o, cluster)
	s.create(ofKind("Cluster"), "gone", "team") // of another UID
	request := func(uid string) *machinesv1alpha1.AfterClusterDeleteRequest {
		return &machinesv1alpha1.AfterClusterDeleteRequest{Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(
			`{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"name":"gone","namespace":"team","uid":"` + uid + `"}}`)}}
	}
	if got := s.say(l, request("first")); !strings.Contains(got, `HookJob "gone": Job jobs/`) || !strings.HasSuffix(got, "runs") {
		t.Errorf("while the Job runs: got %s", got)
	}
	job := s.job("gone")
	s.end(job, 1, "the DNS cannot be reached")
	s.awaits(l, request("first"), "FAILURE: Job jobs/"+job.Name+" failed: the DNS cannot be reached")
	if err := cluster.Prune(t.Context()); err != nil { // it is made again
		t.Fatal(err)
	}
	eventually(t, "the Job that has failed is gone", func() (string, bool) { n := len(s.jobs("gone")); return strconv.Itoa(n), n == 0 })
	s.say(l, request("first"))
	s.end(s.job("gone"), 0, "")
	s.awaits(l, request("first"), "SUCCESS: ")
	if err := cluster.Prune(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.delete(s.job("gone"))
	if got := s.say(l, request("first")); got != "SUCCESS: " {
		t.Errorf("when the Job is gone: got %s", got)
	}
	if got := s.say(l, request("second")); !strings.HasSuffix(got, "runs") {
		t.Errorf("another Cluster of this name: got %s", got)
	}
	list := &v1alpha1.ClusterRecordList{}
	if err := s.client.List(t.Context(), list, client.MatchingLabels{hookjob.HookJobLabel: "gone"}); err != nil || len(list.Items) > 0 {
		t.Errorf("clusterctl waits for %d Jobs (error: %v)", len(list.Items), err)
	}
}

// Replicas and repeated calls make one Job; once it has succeeded, it is not made again when it is long gone.
func testOnce(t *testing.T, s *jobServer) {
	o := s.apply("once", "hook: BeforeClusterUpgrade\nretryAfterSeconds: 15\n"+jobTemplate)
	replicas := []registry.Answerer{s.replica(o, s.cluster(nil)), s.replica(o, s.cluster(nil))}
	request := upgradeOf("a", "v1.36.0")
	var calls sync.WaitGroup
	answers := make([]string, 16)
	for i := range answers {
		calls.Go(func() { answers[i] = s.say(replicas[i%2], request) })
	}
	calls.Wait()
	job := s.job("once")
	for _, got := range answers {
		if want := "SUCCESS, again after 15 s: Job jobs/" + job.Name + " runs"; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if *job.Spec.ActiveDeadlineSeconds != 3600 || *job.Spec.Suspend || job.Spec.TTLSecondsAfterFinished != nil {
		t.Errorf("the Job is %+v", job.Spec)
	}
	s.say(replicas[0], upgradeOf("a", "v1.37.0"))
	if n := len(s.jobs("once")); n != 2 {
		t.Errorf("for two versions, there are %d Jobs", n)
	}
	s.end(job, 0, "4 GiB saved\n")
	for _, r := range replicas {
		s.awaits(r, request, "SUCCESS: 4 GiB saved")
	}
	if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(job), job); err != nil {
		t.Fatal(err)
	}
	if kept := job.Spec.TTLSecondsAfterFinished; kept == nil || *kept != 86400 {
		t.Errorf("the Job may be removed after %v s", kept)
	}
	s.delete(job)
	for _, r := range replicas {
		if got := s.say(r, request); got != "SUCCESS: " {
			t.Errorf("when the Job is gone: got %s", got)
		}
	}
	if n := len(s.jobs("once")); n != 1 {
		t.Errorf("there are %d Jobs, with that of the other version", n)
	}
}

// A Job that has failed holds its caller, or fails the call. Its message stays when its Pod is gone; when it is deleted,
// it is made again.
func testFailure(t *testing.T, s *jobServer) {
	o := s.apply("failure", "hook: BeforeClusterUpgrade\n"+jobTemplate)
	l, request := s.replica(o, s.cluster(nil)), upgradeOf("a", "v1.36.0")
	s.say(l, request)
	job := s.job("failure")
	s.end(job, 3, "the disk is full")
	s.awaits(l, request, "SUCCESS, again after 30 s: Job jobs/"+job.Name+" failed: the disk is full")
	if err := s.client.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace("jobs"), client.MatchingLabels{hookjob.HookJobLabel: "failure"}, client.GracePeriodSeconds(0)); err != nil {
		t.Fatal(err)
	}
	fails := o.DeepCopy()
	fails.Spec.OnFailure = v1alpha1.OnJobFailureFail
	if got, want := s.say(s.replica(fails, s.cluster(nil)), request), "FAILURE: Job jobs/"+job.Name+" failed: the disk is full"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	s.delete(job)
	s.awaits(l, request, "SUCCESS, again after 30 s: Job jobs/"+job.Name+" runs")
	if again := s.job("failure"); again.UID == job.UID {
		t.Error("the Job was not made again")
	}
}

// failing fails the first request of a method and a kind, as a gateway that is killed there would not make it.
type failing struct {
	next         http.RoundTripper
	method, kind string
	once         *atomic.Bool
}

var errKilled = errors.New("killed")

func (f failing) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == f.method && strings.Contains(r.URL.Path, "/"+f.kind) && f.once.CompareAndSwap(false, true) {
		return nil, errKilled
	}
	return f.next.RoundTrip(r)
}

// Wherever a gateway ends on the way, the next call goes on, and one Job runs.
func testInterrupted(t *testing.T, s *jobServer) {
	for at, ends := range map[string]failing{
		"Create": {method: http.MethodPost, kind: "jobs"}, "Secret": {method: http.MethodPost, kind: "secrets"},
		"Start": {method: http.MethodPatch, kind: "jobs"}, "Record": {method: http.MethodPost, kind: "configmaps"},
	} {
		t.Run(at, func(t *testing.T) {
			of := *s
			of.t = t
			ends.once = &atomic.Bool{}
			name := "interrupted-" + strings.ToLower(at)
			o := of.apply(name, "hook: BeforeClusterUpgrade\n"+jobTemplate)
			l := of.replica(o, of.cluster(func(next http.RoundTripper) http.RoundTripper {
				killed := ends
				killed.next = next
				return killed
			}))
			request := upgradeOf("a", "v1.36.0")
			if at != "Record" {
				_, err := l.Answer(t.Context(), request, policy.Guard{})
				var known *hook.Error
				if !errors.As(err, &known) || known.Kind != hook.Unreachable {
					t.Errorf("the killed call: %v", err)
				}
			}
			other := of.replica(o, of.cluster(nil))
			of.say(other, request)
			job := of.job(name)
			of.end(job, 0, "")
			if at == "Record" {
				of.awaits(l, request, "record the result of Job jobs/"+job.Name+": the request to the API server failed")
			}
			of.awaits(other, request, "SUCCESS: ")
			of.delete(of.job(name))
			if got := of.say(other, request); got != "SUCCESS: " || len(of.jobs(name)) != 0 {
				t.Errorf("afterwards: %s, %d Jobs", got, len(of.jobs(name)))
			}
		})
	}
}

// A Job that was deleted before its success is made again, and gets a Secret of its own.
func testDeleted(t *testing.T, s *jobServer) {
	o := s.apply("deleted", "hook: BeforeClusterUpgrade\nnamespace: Cluster\n"+jobTemplate)
	l, request := s.replica(o, s.cluster(nil)), upgradeOf("a", "v1.36.0")
	s.say(l, request)
	first := s.job("deleted")
	s.delete(first)
	secret := &corev1.Secret{}
	eventually(t, "the Secret of the first Job is gone", func() (string, bool) {
		err := s.client.Get(t.Context(), client.ObjectKeyFromObject(first), secret)
		return fmt.Sprint(err), apierrors.IsNotFound(err)
	})
	s.create(&corev1.Secret{}, first.Name, first.Namespace) // as if it were still there
	s.awaits(l, request, "SUCCESS, again after 30 s: Job team/"+first.Name+" runs")
	eventually(t, "the Secret of the second Job", func() (string, bool) {
		err := s.client.Get(t.Context(), client.ObjectKeyFromObject(first), secret)
		return fmt.Sprint(secret.OwnerReferences, err), err == nil && len(secret.OwnerReferences) == 1 && secret.OwnerReferences[0].UID == s.job("deleted").UID
	})
}

// The container finds the request, the settings and the kubeconfig.
func testFiles(t *testing.T, s *jobServer) {
	o := s.apply("files", "hook: BeforeClusterUpgrade\nworkloadCluster: Kubeconfig\ndeadline: 90s\n"+jobTemplate)
	l, request := s.replica(o, s.cluster(nil)), upgradeOf("files", "v1.36.0")
	if got, want := s.say(l, request), `FAILURE: read the kubeconfig of Cluster team/files: secrets "files-kubeconfig" not found`; got != want || len(s.jobs("files")) != 0 {
		t.Errorf("without a kubeconfig: got %s, want %s", got, want)
	}
	s.create(&corev1.Secret{Data: map[string][]byte{"value": []byte("the kubeconfig")}}, "files-kubeconfig", "team")
	s.say(l, request)
	job := s.job("files")
	secret := &corev1.Secret{}
	if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(job), secret); err != nil {
		t.Fatal(err)
	}
	var got struct {
		Kind, ToKubernetesVersion string
	}
	if err := json.Unmarshal(secret.Data["request.json"], &got); err != nil || got.Kind != "BeforeClusterUpgradeRequest" || got.ToKubernetesVersion != "v1.36.0" {
		t.Errorf("the request is %s", secret.Data["request.json"])
	}
	if string(secret.Data["kubeconfig"]) != "the kubeconfig" || secret.OwnerReferences[0].UID != job.UID {
		t.Errorf("the Secret is %+v", secret)
	}
	c := job.Spec.Template.Spec.Containers[0]
	var variables []string
	for _, v := range c.Env {
		variables = append(variables, v.Name+"="+v.Value)
	}
	want := "HOOKGATE_HOOK=BeforeClusterUpgrade HOOKGATE_CLUSTER_NAMESPACE=team HOOKGATE_CLUSTER_NAME=files KUBECONFIG=/hookgate/kubeconfig HOOKGATE_SETTING_BUCKET_NAME=a$$(HOME)"
	if got := strings.Join(variables, " "); got != want {
		t.Errorf("the variables are %s, want %s", got, want)
	}
	if c.VolumeMounts[0].MountPath != "/hookgate" || *job.Spec.ActiveDeadlineSeconds != 90 || *c.SecurityContext.AllowPrivilegeEscalation {
		t.Errorf("the container is %+v", c)
	}
	s.delete(job)
	eventually(t, "the Secret ends with the Job", func() (string, bool) {
		err := s.client.Get(t.Context(), client.ObjectKeyFromObject(secret), &corev1.Secret{})
		return fmt.Sprint(err), apierrors.IsNotFound(err)
	})
}

// ofKind returns an object of Cluster API.
func ofKind(kind string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: "cluster.x-k8s.io", Version: "v1beta2", Kind: kind})
	return o
}

// An update from A to B and back to A runs three Jobs, each once, and one that is over can come again.
func testInPlace(t *testing.T, s *jobServer) {
	o := s.apply("in-place", "hook: UpdateMachine\n"+jobTemplate)
	cluster := s.cluster(nil)
	l := s.replica(o, cluster)
	machine := ofKind("Machine")
	machine.SetAnnotations(map[string]string{clusterv1.UpdateInProgressAnnotation: ""})
	machine.Object["status"] = map[string]any{
		"nodeRef": map[string]any{"name": "node-1"}, "addresses": []any{map[string]any{"type": "InternalIP", "address": "10.0.0.1"}},
	}
	s.create(machine, "m", "team")
	to := func(version string) *hooksv1alpha1.UpdateMachineRequest {
		return &hooksv1alpha1.UpdateMachineRequest{Desired: &hooksv1alpha1.UpdateMachineRequestObjects{
			Machine: &hooksv1alpha1.RawExtension{Raw: []byte(`{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Machine","metadata":{"name":"m","namespace":"team"},` +
				`"spec":{"clusterName":"c","version":"` + version + `"}}`)},
			InfrastructureMachine: &hooksv1alpha1.RawExtension{Raw: []byte(`{"spec":{"a":1}}`)},
		}}
	}
	ran := map[string]bool{}
	var names []string
	for _, version := range []string{"v1", "v2", "v1"} {
		var job *batchv1.Job
		eventually(t, "the Job for "+version, func() (string, bool) {
			got := s.say(l, to(version))
			jobs := s.jobs("in-place")
			if len(jobs) != 1 || !strings.HasSuffix(got, jobs[0].Name+" runs") {
				return got, false
			}
			job = &jobs[0]
			return got, true
		})
		if ran[string(job.UID)] {
			t.Fatalf("the Job for %s ran before", version)
		}
		ran[string(job.UID)] = true
		names = append(names, job.Name)
		s.end(job, 0, "done")
		s.awaits(l, to(version), "SUCCESS: done")
	}
	if names[0] != names[2] || names[0] == names[1] {
		t.Errorf("the Jobs are %q", names)
	}
	secret := &corev1.Secret{}
	if err := s.client.Get(t.Context(), client.ObjectKey{Namespace: "jobs", Name: names[2]}, secret); err != nil {
		t.Fatal(err)
	}
	if string(secret.Data["node-name"]) != "node-1" || string(secret.Data["addresses.json"]) != `[{"address":"10.0.0.1","type":"InternalIP"}]` ||
		!strings.Contains(string(secret.Data["desired-machine.json"]), `"v1"`) {
		t.Errorf("the files are %q", secret.Data)
	}
	sweep := func() {
		t.Helper()
		if err := cluster.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	sweep()
	if got := s.say(l, to("v1")); got != "SUCCESS: done" {
		t.Errorf("while Cluster API updates the Machine, a sweep changes the answer to %s", got)
	}
	machine.SetAnnotations(nil)
	if err := s.client.Update(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	sweep()
	eventually(t, "the Job is gone when the update is over", func() (string, bool) {
		n := len(s.jobs("in-place"))
		return strconv.Itoa(n), n == 0
	})
	if got := s.say(l, to("v1")); !strings.HasSuffix(got, names[0]+" runs") {
		t.Errorf("the next update to the same state: %s", got)
	}
}

// Each attempt of a remediation is a Job, whose failure is that of the attempt. Its success is remembered until the
// Machine is gone.
func testRemediation(t *testing.T, s *jobServer) {
	o := s.apply("reboot", "hook: RemediateMachine\n"+jobTemplate)
	cluster := s.cluster(nil)
	l := s.replica(o, cluster)
	machine := ofKind("Machine")
	s.create(machine, "broken", "team")
	attempt := func(n int32) *machinesv1alpha1.RemediateMachineRequest {
		return &machinesv1alpha1.RemediateMachineRequest{
			RemediationId: "r", Attempt: n,
			Machine: &hooksv1alpha1.RawExtension{Raw: fmt.Appendf(nil, `{"kind":"Machine","metadata":{"name":"broken","namespace":"team","uid":%q},`+
				`"spec":{"clusterName":"c","providerID":"x://1"},"status":{"nodeRef":{"name":"node-1"}}}`, machine.GetUID())},
		}
	}
	s.say(l, attempt(1))
	first := s.job("reboot")
	s.awaits(l, attempt(1), "SUCCESS, again after 30 s: Job jobs/"+first.Name+" runs")
	var variables []string
	for _, v := range first.Spec.Template.Spec.Containers[0].Env {
		variables = append(variables, v.Name+"="+v.Value)
	}
	if got, want := strings.Join(variables[3:], " "), "HOOKGATE_MACHINE_NAME=broken HOOKGATE_NODE_NAME=node-1 HOOKGATE_PROVIDER_ID=x://1"; got != want {
		t.Errorf("the variables are %s, want %s", got, want)
	}
	s.end(first, 1, "no power")
	s.awaits(l, attempt(1), "FAILURE: Job jobs/"+first.Name+" failed: no power")
	eventually(t, "the second attempt has a Job of its own", func() (string, bool) {
		got := s.say(l, attempt(2))
		return got, strings.HasPrefix(got, "SUCCESS, again after 30 s: Job jobs/reboot-") && strings.HasSuffix(got, " runs") && !strings.Contains(got, first.Name)
	})
	second := s.job("reboot")
	s.end(second, 0, "rebooted")
	s.awaits(l, attempt(2), "SUCCESS: rebooted")
	secret := &corev1.Secret{}
	if err := s.client.Get(t.Context(), client.ObjectKeyFromObject(second), secret); err != nil || !strings.Contains(string(secret.Data["machine.json"]), "x://1") {
		t.Errorf("the files are %q, %v", secret.Data, err)
	}
	s.delete(second)
	sweep := func() {
		t.Helper()
		if err := errors.Join(cluster.Sweep(t.Context()), cluster.Prune(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	sweep()
	if got := s.say(l, attempt(2)); got != "SUCCESS: " {
		t.Errorf("when the Job is gone, and the Machine is there: %s", got)
	}
	if err := s.client.Delete(t.Context(), machine); err != nil {
		t.Fatal(err)
	}
	sweep()
	if got := s.say(l, attempt(2)); !strings.HasSuffix(got, " runs") {
		t.Errorf("when the Machine is gone, its record is not: %s", got)
	}
	sweep()
}

// A hook that does not wait is told at once. What becomes of its Job is recorded although nobody asks.
func testTelling(t *testing.T, s *jobServer) {
	o := s.apply("telling", "hook: AfterControlPlaneInitialized\n"+jobTemplate)
	cluster := s.cluster(nil)
	l := s.replica(o, cluster)
	request := &hooksv1alpha1.AfterControlPlaneInitializedRequest{Cluster: upgradeOf("telling", "").GetCluster()}
	if got := s.say(l, request); !strings.HasPrefix(got, "SUCCESS: Job jobs/telling-") {
		t.Errorf("got %s", got)
	}
	job := s.job("telling")
	s.end(job, 0, "applied")
	eventually(t, "a sweep sees the end", func() (string, bool) {
		if err := cluster.Sweep(t.Context()); err != nil {
			t.Fatal(err)
		}
		job = s.job("telling")
		return fmt.Sprint(job.Status), job.Spec.TTLSecondsAfterFinished != nil
	})
	s.delete(job)
	if got := s.say(l, request); got != "SUCCESS: " || len(s.jobs("telling")) != 0 {
		t.Errorf("it is not made again: %s", got)
	}
}

// noImage is the state of a container whose image cannot be pulled, as a kubelet writes it between two attempts, and
// noImageText what is said of it.
var noImage = corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{
	Reason: "ImagePullBackOff", Message: `Back-off pulling image "example.com/image": ErrImagePull: failed to resolve reference "example.com/image": example.com/image: not found`,
}}

const noImageText = `container "main" cannot start: ImagePullBackOff of image "example.com/image": not found`

// What keeps a Pod from succeeding is said while the Job goes on, by every replica, and by the failure of the Job, when
// the Pod is gone.
func testProblem(t *testing.T, s *jobServer) {
	o := s.apply("problem", "hook: BeforeClusterUpgrade\n"+jobTemplate)
	cluster := s.cluster(nil)
	var events []string
	cluster.Event = func(hookJob, of, reason, message string) {
		events = append(events, strings.Join([]string{hookJob, of, reason, message}, "|"))
	}
	l, request := s.replica(o, cluster), upgradeOf("a", "v1.36.0")
	look := func() {
		t.Helper()
		if err := cluster.Look(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	s.say(l, request)
	job := s.job("problem")
	s.kubelet(job, corev1.PodPending, noImage)
	look()
	s.kubelet(job, corev1.PodPending, corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "ErrImagePull", Message: "rpc error: code = NotFound"}})
	look()
	if got, want := s.say(s.replica(o, s.cluster(nil)), request), "SUCCESS, again after 30 s: Job jobs/"+job.Name+": "+noImageText; got != want {
		t.Errorf("another replica: got %s, want %s", got, want)
	}
	deadline := client.RawPatch(types.MergePatchType, []byte(`{"spec":{"activeDeadlineSeconds":1}}`))
	if err := s.client.Patch(t.Context(), job.DeepCopy(), deadline); err != nil {
		t.Fatal(err)
	}
	const failed = "Job was active longer than specified deadline: " + noImageText
	s.awaits(l, request, "SUCCESS, again after 30 s: Job jobs/"+job.Name+" failed: "+failed)
	want := []string{"problem|team/a|JobFailing|Job jobs/" + job.Name + ": " + noImageText, "problem|team/a|JobFailed|Job jobs/" + job.Name + ": " + failed}
	if diff := cmp.Diff(want, events); diff != "" {
		t.Errorf("events: -want +got\n%s", diff)
	}

	l = s.replica(s.apply("memory", "hook: BeforeClusterUpgrade\n"+jobTemplate), cluster)
	s.say(l, request)
	job = s.job("memory")
	s.kubelet(job, corev1.PodPending, noImage)
	look()
	s.kubelet(job, corev1.PodRunning, corev1.ContainerState{Running: &corev1.ContainerStateRunning{}})
	look()
	if got, want := s.say(l, request), "SUCCESS, again after 30 s: Job jobs/"+job.Name+" runs"; got != want {
		t.Errorf("once the container runs: got %s, want %s", got, want)
	}
	s.kubelet(job, corev1.PodFailed, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: 137, Reason: "OOMKilled"}})
	s.awaits(l, request, "SUCCESS, again after 30 s: Job jobs/"+job.Name+` failed: Job has reached the specified backoff limit: container "main" ended: OOMKilled`)
}

// What was recorded of a Cluster is removed once it is gone, and no sooner.
func testPruned(t *testing.T, s *jobServer) {
	o := s.apply("pruned", "hook: BeforeClusterUpgrade\n"+jobTemplate)
	cluster := s.cluster(nil)
	l := s.replica(o, cluster)
	live := ofKind("Cluster")
	s.create(live, "pruned", "team")
	request := upgradeOf("pruned", "v1.36.0")
	request.Cluster.Raw = []byte(strings.Replace(string(request.GetCluster().GetRaw()), "uid-of-pruned", string(live.GetUID()), 1))
	s.say(l, request)
	s.end(s.job("pruned"), 0, "")
	s.awaits(l, request, "SUCCESS: ")
	s.delete(s.job("pruned"))
	recorded := func() int {
		t.Helper()
		if err := cluster.Prune(t.Context()); err != nil {
			t.Fatal(err)
		}
		record := &corev1.ConfigMap{}
		if err := s.client.Get(t.Context(), client.ObjectKey{Namespace: "hookgate-system", Name: "hookgate-job-pruned"}, record); err != nil {
			t.Fatal(err)
		}
		return len(record.Data)
	}
	if n := recorded(); n != 1 {
		t.Errorf("while the Cluster is there, %d successes are recorded", n)
	}
	if err := s.client.Delete(t.Context(), live); err != nil {
		t.Fatal(err)
	}
	if n := recorded(); n != 0 {
		t.Errorf("when the Cluster is gone, %d successes are recorded", n)
	}
}

// What somebody has to change is a Failure that says so, and makes nothing.
func testRefused(t *testing.T, s *jobServer) {
	for name, tt := range map[string]struct {
		spec    string
		request func(*hooksv1alpha1.BeforeClusterUpgradeRequest)
		want    string
	}{
		"too-large": {"", func(r *hooksv1alpha1.BeforeClusterUpgradeRequest) {
			r.Cluster.Raw = append(r.GetCluster().GetRaw(), make([]byte, 1<<20)...)
			for i := len(r.GetCluster().GetRaw()) - 1<<20; i < len(r.GetCluster().GetRaw()); i++ {
				r.GetCluster().GetRaw()[i] = ' '
			}
		}, " bytes: at most 786432 fit into its Secret"},
		"no-uid": {"", func(r *hooksv1alpha1.BeforeClusterUpgradeRequest) {
			r.Cluster.Raw = []byte(`{"metadata":{"name":"a"}}`)
		}, "FAILURE: the Cluster of the request has no metadata.uid: the HookJob must have spec.once"},
		"empty":    {"once: '\"\"'\n", nil, `FAILURE: HookJob "empty": the value of spec.once is empty, but must tell Jobs apart`},
		"long":     {"once: request.toKubernetesVersion\n", func(r *hooksv1alpha1.BeforeClusterUpgradeRequest) { r.ToKubernetesVersion = strings.Repeat("v", 1025) }, `FAILURE: HookJob "long": spec.once has 1025 bytes: at most 1024 are possible`},
		"settings": {"", func(r *hooksv1alpha1.BeforeClusterUpgradeRequest) { r.Settings["bucket_name"] = "" }, `FAILURE: settings "bucket-name" and "bucket_name" would both be variable HOOKGATE_SETTING_BUCKET_NAME: rename one of them`},
		"many":     {"", func(r *hooksv1alpha1.BeforeClusterUpgradeRequest) { r.Settings["a"] = strings.Repeat("a", 32<<10) }, "FAILURE: the settings have more than 32768 bytes, which is too much for environment variables"},
		"invalid":  {"matchConditions: [{name: a, expression: 'true'}]\n", nil, "spec.template.spec.containers[0].name: Invalid value: \"MAIN\""},
	} {
		t.Run(name, func(t *testing.T) {
			of := *s
			of.t = t
			template := jobTemplate
			if name == "invalid" {
				template = strings.Replace(template, "name: main", "name: MAIN", 1)
			}
			o := of.apply(name, "hook: BeforeClusterUpgrade\n"+tt.spec+template)
			request := upgradeOf("a", "v1.36.0")
			if tt.request != nil {
				tt.request(request)
			}
			if got := of.say(of.replica(o, of.cluster(nil)), request); !strings.HasPrefix(got, "FAILURE: ") || !strings.Contains(got, tt.want) {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			if n := len(of.jobs(name)); n != 0 {
				t.Errorf("%d Jobs were made", n)
			}
		})
	}
}

// A Job that has ended runs again when somebody says so, for the Cluster that is named alone.
func testRerun(t *testing.T, s *jobServer) {
	l := s.replica(s.apply("rerun", "hook: BeforeClusterUpgrade\n"+jobTemplate), s.cluster(nil))
	request, other := upgradeOf("again", "v1.36.0"), upgradeOf("other", "v1.36.0")
	hookgate := func(verb string) string {
		t.Helper()
		out, _ := exec.CommandContext(t.Context(), process.Program(t, gatewayVariable), "job", verb, "rerun", "--cluster", "team/again",
			"--kubeconfig", kubeconfigOf(t, s.config)).CombinedOutput()
		return string(out)
	}
	const nothing = `hookgate: HookJob "rerun" has no Jobs and no records for Cluster team/again: see hookgate get jobs for the names of HookJobs, and set --namespace to the namespace of the gateway` + "\n"
	for verb, want := range map[string]string{"rerun": nothing, "forget": nothing} {
		if got := hookgate(verb); got != want {
			t.Errorf("%s: got %s, want %s", verb, got, want)
		}
	}
	s.say(l, request)
	first := s.job("rerun")
	if got, want := hookgate("rerun"), "Job jobs/"+first.Name+" has not finished, and keeps running\n0 records of Cluster team/again removed\n"; got != want {
		t.Errorf("while it runs: got %s, want %s", got, want)
	}
	s.end(first, 1, "no space")
	s.awaits(l, request, "SUCCESS, again after 30 s: Job jobs/"+first.Name+" failed: no space")
	if got, want := hookgate("rerun"), "Job jobs/"+first.Name+" is deleted\n0 records of Cluster team/again removed\n"; got != want {
		t.Errorf("when it has failed: got %s, want %s", got, want)
	}
	s.awaits(l, request, "SUCCESS, again after 30 s: Job jobs/"+first.Name+" runs")
	second := s.job("rerun")
	if second.UID == first.UID {
		t.Error("no other Job was made")
	}
	s.end(second, 0, "saved")
	s.awaits(l, request, "SUCCESS: saved")
	s.say(l, other)
	for i := range s.jobs("rerun") {
		if job := &s.jobs("rerun")[i]; job.Name != second.Name {
			s.end(job, 0, "")
		}
	}
	s.awaits(l, other, "SUCCESS: ")
	if got, want := hookgate("forget"), "1 record of Cluster team/again removed\n"; got != want {
		t.Errorf("forget: got %s, want %s", got, want)
	}
	if got := s.say(l, request); got != "SUCCESS: saved" {
		t.Errorf("a Job that is there does not answer for itself: %s", got)
	}
	s.delete(second)
	s.awaits(l, request, "SUCCESS, again after 30 s: Job jobs/"+second.Name+" runs")
	if got := s.say(l, other); got != "SUCCESS: " {
		t.Errorf("the other Cluster: %s", got)
	}
}

// Replicas of the gateway take HookJobs from the API server and Jobs from a cache, and the leader looks after those that
// nobody asks about.
func testReplicas(t *testing.T, s *jobServer) {
	labelled := func(name, spec string) {
		t.Helper()
		o := &v1alpha1.HookJob{}
		if err := yaml.UnmarshalStrict([]byte(spec), &o.Spec); err != nil {
			t.Fatal(err)
		}
		o.Labels = map[string]string{clusterv1.WatchLabel: filterOf(t)}
		s.create(o, name, "")
	}
	labelled("waits", "hook: BeforeClusterUpgrade\n"+jobTemplate)
	labelled("tells", "hook: AfterControlPlaneInitialized\n"+jobTemplate)
	labelled("wrong", "hook: BeforeClusterUpgrade\n"+strings.Replace(jobTemplate, "restartPolicy: Never", "", 1))
	var replicas []*replica
	for range 2 {
		r := start(t, func(c *controllers.Config) {
			c.REST, c.OwnNamespace = s.gateway(), "hookgate-system"
			c.HookJobs = hookjob.Allowed{Namespaces: []string{"jobs"}}
			c.LeaderElection = controllers.LeaderElection{
				Enabled: true, Namespace: "default", Name: "jobs", LeaseDuration: 3 * time.Second, RenewDeadline: 2 * time.Second, RetryPeriod: 100 * time.Millisecond,
			}
		})
		r.client = s.client
		r.ready(t)
		replicas = append(replicas, r)
	}
	for name, want := range map[string]string{
		"waits": "Ready: Answers BeforeClusterUpgrade as handler job.waits",
		"wrong": "Invalid: spec.jobTemplate.spec.template.spec.restartPolicy: Required value: must be Never or OnFailure; " +
			"the gateway refuses every call that the object may apply to (NotReady)",
	} {
		eventually(t, name+" is "+want, func() (string, bool) {
			o := &v1alpha1.HookJob{}
			if err := s.client.Get(t.Context(), client.ObjectKey{Name: name}, o); err != nil {
				t.Fatal(err)
			}
			if len(o.Status.Conditions) == 0 {
				return "no condition", false
			}
			got := o.Status.Conditions[0].Reason + ": " + o.Status.Conditions[0].Message
			return got, got == want
		})
	}
	local := func(r *replica, name string) registry.Answerer {
		t.Helper()
		reg, ok := r.registry.Snapshot().Registration(name)
		if !ok {
			t.Fatalf("%s is not registered", name)
		}
		return reg.InProcess
	}
	request := upgradeOf("a", "v1.36.0")
	var calls sync.WaitGroup
	for i := range 16 {
		calls.Go(func() { s.say(local(replicas[i%2], "waits"), request) })
	}
	calls.Wait()
	job := s.job("waits")
	s.kubelet(job, corev1.PodPending, noImage)
	for _, r := range replicas {
		s.awaits(local(r, "waits"), request, "SUCCESS, again after 30 s: Job jobs/"+job.Name+": "+noImageText)
	}
	eventually(t, "the leader writes an event about the HookJob", func() (string, bool) {
		var list eventsv1.EventList
		if err := replicas[0].client.List(t.Context(), &list, client.InNamespace("default")); err != nil {
			t.Fatal(err)
		}
		var saw []string
		for i := range list.Items {
			if e := &list.Items[i]; e.Regarding.Kind == hookjob.Kind {
				saw = append(saw, fmt.Sprintf("%s %s, %s/%s: %s", e.Reason, e.Regarding.Name, e.Related.Namespace, e.Related.Name, e.Note))
			}
		}
		return strings.Join(saw, "\n"), slices.Equal(saw, []string{"JobFailing waits, team/a: Job jobs/" + job.Name + ": " + noImageText})
	})
	s.end(job, 0, "done")
	for _, r := range replicas {
		s.awaits(local(r, "waits"), request, "SUCCESS: done")
	}
	s.say(local(replicas[0], "tells"), &hooksv1alpha1.AfterControlPlaneInitializedRequest{Cluster: request.GetCluster()})
	s.end(s.job("tells"), 0, "")
	eventually(t, "the leader records a success that nobody asks about", func() (string, bool) {
		record := &corev1.ConfigMap{}
		err := s.client.Get(t.Context(), client.ObjectKey{Namespace: "hookgate-system", Name: "hookgate-job-tells"}, record)
		return fmt.Sprint(record.Data, err), len(record.Data) == 1
	})
}

// A Cluster is not moved while a Job runs for it, and takes along which Jobs have succeeded: in another management
// cluster, where it has another UID, they do not run again. What is known of a Cluster is deleted with it.
func testMoves(t *testing.T, s *jobServer) {
	key := client.ObjectKey{Namespace: "team", Name: "job.moves.goes"}
	record := func() *v1alpha1.ClusterRecord {
		t.Helper()
		found := &v1alpha1.ClusterRecord{}
		if err := s.client.Get(t.Context(), key, found); client.IgnoreNotFound(err) != nil {
			t.Fatal(err)
		}
		return found
	}
	blocks := func() string { return record().Annotations["clusterctl.cluster.x-k8s.io/block-move"] }
	begin := func() (*unstructured.Unstructured, *hooksv1alpha1.BeforeClusterUpgradeRequest) {
		cluster := ofKind("Cluster")
		s.create(cluster, "goes", "team")
		raw, err := cluster.MarshalJSON()
		if err != nil {
			t.Fatal(err)
		}
		return cluster, &hooksv1alpha1.BeforeClusterUpgradeRequest{
			Cluster: &hooksv1alpha1.RawExtension{Raw: raw}, ToKubernetesVersion: "v1.36.0",
		}
	}
	cluster, request := begin()
	o, c := s.apply("moves", "hook: BeforeClusterUpgrade\n"+jobTemplate), s.cluster(nil)
	r := s.replica(o, c)
	sweep := func() {
		t.Helper()
		if err := c.Sweep(t.Context()); err != nil {
			t.Error(err)
		}
	}
	s.say(r, request)
	job := s.job("moves")
	sweep()
	if got := blocks(); !strings.HasPrefix(got, "jobs/"+job.Name+"/") {
		t.Errorf("while Job %s runs, the move is blocked by %q", job.Name, got)
	}
	s.end(job, 0, "saved")
	s.awaits(r, request, "SUCCESS: saved")
	sweep()
	went := record()
	if got := blocks(); got != "" || len(went.Spec.Job.Succeeded) != 1 {
		t.Errorf("the Job has ended, and the move is blocked by %q; succeeded: %v", got, went.Spec.Job.Succeeded)
	}

	if err := s.client.Delete(t.Context(), cluster); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the record goes with the Cluster", func() (string, bool) { return "there", record().UID == "" })
	cluster, request = begin()
	arrived := &v1alpha1.ClusterRecord{Spec: went.Spec}
	arrived.Labels, arrived.OwnerReferences = went.Labels, went.OwnerReferences
	arrived.OwnerReferences[0].UID = cluster.GetUID()
	s.create(arrived, key.Name, key.Namespace)
	if got := s.say(r, request); got != "SUCCESS: " || len(s.jobs("moves")) != 1 {
		t.Errorf("after the move: %s, with %d Jobs", got, len(s.jobs("moves")))
	}
	if n, err := c.Forget(t.Context(), "moves", "team/goes"); err != nil || n != 1 {
		t.Errorf("%d are forgotten: %v", n, err)
	}
	if got := s.say(r, request); !strings.HasSuffix(got, " runs") || len(s.jobs("moves")) != 2 {
		t.Errorf("after it was forgotten: %s, with %d Jobs", got, len(s.jobs("moves")))
	}
}
