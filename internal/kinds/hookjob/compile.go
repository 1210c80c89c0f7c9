// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookjob

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation/field"
	podsecurity "k8s.io/pod-security-admission/api"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	machinesv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/machines/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/registry"
)

// BesideCluster is the namespace of a HookJob whose Jobs are in the namespaces of the Clusters.
const BesideCluster = "Cluster"

// defaultRetry is how soon the caller asks again while a Job runs, in seconds, if its HookJob does not say.
const defaultRetry = 30

// Allowed is what whoever runs the gateway allows of HookJobs.
type Allowed struct {
	// Namespaces are those in which Jobs may run, and BesideCluster for those of Clusters. The first is the default.
	// Without any, no HookJob is valid.
	Namespaces []string
	// ServiceAccounts are those that Pods may have. Without any, Pods have no credentials of the cluster.
	ServiceAccounts []string
	// PodSecurity is the level of the Pod Security Standards that Pods meet. Empty means restricted.
	PodSecurity podsecurity.Level
}

// Compiler compiles HookJobs. It is safe for concurrent use.
type Compiler struct {
	hooks   *catalog.Catalog
	codec   *codec.Codec
	cel     *policy.Compiler
	types   *policy.Types
	allowed *Allowed
	cluster *Cluster
}

// NewCompiler returns a Compiler for the hooks of a catalog, whose types are types. allowed may be nil where it is not
// known, and cluster where Jobs are only compiled.
func NewCompiler(
	hooks *catalog.Catalog, cel *policy.Compiler, types *policy.Types, allowed *Allowed, cluster *Cluster,
) *Compiler {
	return &Compiler{hooks: hooks, codec: codec.New(hooks), cel: cel, types: types, allowed: allowed, cluster: cluster}
}

// compilation is one HookJob that is being compiled.
type compilation struct {
	*Compiler
	hook *catalog.Hook
	errs field.ErrorList
}

func (in *compilation) forbidf(path *field.Path, format string, args ...any) {
	in.errs = append(in.errs, field.Forbidden(path, fmt.Sprintf(format, args...)))
}

// Compile returns the registration of a HookJob, by the rules of its schema and those that a schema cannot say. It does
// not look at the status, and does not change o.
func (c *Compiler) Compile(o *v1alpha1.HookJob) (registry.Registration, field.ErrorList) {
	in := &compilation{Compiler: c, errs: kinds.ValidateName(o.Name)}
	path, spec := field.NewPath("spec"), o.Spec.DeepCopy()
	if c.allowed != nil && len(c.allowed.Namespaces) == 0 {
		in.forbidf(path, "this gateway runs no Jobs: to run Jobs, it needs a cluster that it may write to, and "+
			"--hook-jobs-namespace")
	}
	if in.findHook(spec.Hook, path.Child("hook")); in.hook == nil {
		return registry.Registration{Name: o.Name}, in.errs
	}
	common := kinds.InProcess{
		Kind: Kind, Name: o.Name, Handler: HandlerName, NamespaceSelector: spec.NamespaceSelector,
		ObjectSelector: spec.ObjectSelector, MatchConditions: spec.MatchConditions, ClusterAPIVersion: spec.ClusterAPIVersion,
	}
	reg, errs := common.Compile(in.hook, path, in.cel, in.types)
	in.errs = append(in.errs, errs...)
	reg.InProcess = in.job(o, spec, path)
	return reg, in.errs
}

// job compiles what a Job is made of, and when.
func (in *compilation) job(o *v1alpha1.HookJob, spec *v1alpha1.HookJobSpec, path *field.Path) *Job {
	j := &Job{
		name: o.Name, uid: o.UID, hook: in.hook, codec: in.codec, cluster: in.cluster,
		inPlace: isUpdateMachine(in.hook), remediates: isRemediateMachine(in.hook), retry: defaultRetry,
		untilDone: in.hook.Hook == afterClusterDelete, deadline: limits.DefaultJobDeadline,
	}
	// A failed attempt is followed by another one, or by the owner of the Machine.
	j.fails = j.remediates || j.untilDone
	j.namespace = in.namespace(spec.Namespace, path.Child("namespace"))
	if j.untilDone && j.namespace == BesideCluster {
		in.forbidf(path.Child("namespace"),
			"when the Cluster is gone, its namespace may be gone, too: name another namespace")
	}
	if spec.Once != "" {
		at := path.Child("once")
		once, err := in.cel.Expression(in.types, in.hook.GroupHook(), at.String(), spec.Once, policy.String)
		if err != nil {
			in.errs = append(in.errs, field.Invalid(at, field.OmitValueType{}, err.Error()))
		}
		j.once = once
	}
	switch at := path.Child("workloadCluster"); spec.WorkloadCluster {
	case "", v1alpha1.WorkloadClusterNone:
	case v1alpha1.WorkloadClusterKubeconfig:
		j.kubeconfig = true
		switch in.hook.Hook {
		case "BeforeClusterCreate":
			in.forbidf(at, "there is no workload cluster before it is created")
		case afterClusterDelete:
			in.forbidf(at, "the workload cluster is gone")
		}
	default:
		in.errs = append(in.errs, field.NotSupported(at, spec.WorkloadCluster,
			[]v1alpha1.WorkloadCluster{v1alpha1.WorkloadClusterNone, v1alpha1.WorkloadClusterKubeconfig}))
	}
	switch at := path.Child("onFailure"); spec.OnFailure {
	case "":
	case v1alpha1.OnJobFailureHold:
		j.fails = false
	case v1alpha1.OnJobFailureFail:
		j.fails = true
	default:
		in.errs = append(in.errs, field.NotSupported(at, spec.OnFailure,
			[]v1alpha1.OnJobFailure{v1alpha1.OnJobFailureHold, v1alpha1.OnJobFailureFail}))
	}
	if !in.hook.Blocking && spec.OnFailure != "" {
		in.forbidf(path.Child("onFailure"), "Cluster API does not wait for %s", in.hook.Hook)
	}
	if spec.RetryAfterSeconds != nil {
		at := path.Child("retryAfterSeconds")
		if j.retry = *spec.RetryAfterSeconds; j.retry < 1 || j.retry > limits.RuleRetrySeconds {
			in.errs = append(in.errs, field.Invalid(at, j.retry,
				fmt.Sprintf("must be between 1 and %d", limits.RuleRetrySeconds)))
		}
		if !in.hook.Blocking {
			in.forbidf(at, "Cluster API does not wait for %s", in.hook.Hook)
		}
	}
	if spec.Deadline != nil {
		j.deadline = spec.Deadline.Duration
		if j.deadline < time.Second || j.deadline > limits.JobDeadline {
			in.errs = append(in.errs, field.Invalid(path.Child("deadline"), j.deadline.String(),
				"must be between 1s and "+limits.JobDeadline.String()))
		}
	}
	j.template = in.template(spec.JobTemplate.Raw, path.Child("jobTemplate"))
	return j
}

// namespace returns the namespace of the Jobs, or BesideCluster.
func (in *compilation) namespace(stated string, path *field.Path) string {
	if in.allowed == nil || len(in.allowed.Namespaces) == 0 {
		return stated
	}
	if stated == "" {
		return in.allowed.Namespaces[0]
	}
	if !slices.Contains(in.allowed.Namespaces, stated) {
		in.errs = append(in.errs, field.NotSupported(path, text.Cut(stated, limits.QuotedBytes), in.allowed.Namespaces))
	}
	return stated
}

// findHook finds the hook of a HookJob, or notes a mistake.
func (in *compilation) findHook(name string, path *field.Path) {
	var known []string
	for _, h := range in.hooks.Hubs() {
		if h.Category == catalog.Lifecycle || isUpdateMachine(h) || isRemediateMachine(h) {
			if known = append(known, h.Hook); h.Hook == name {
				in.hook = h
				return
			}
		}
	}
	in.errs = append(in.errs, kinds.NoHook(path, name, "a Job can answer", known))
}

func isUpdateMachine(h *catalog.Hook) bool {
	_, is := h.Request.New().Interface().(*hooksv1alpha1.UpdateMachineRequest)
	return is
}

func isRemediateMachine(h *catalog.Hook) bool {
	_, is := h.Request.New().Interface().(*machinesv1alpha1.RemediateMachineRequest)
	return is
}

// CheckNamespace returns an error unless namespace may be one of Allowed.
func CheckNamespace(namespace string) error {
	if namespace == BesideCluster {
		return nil
	}
	if errs := kinds.ValidateName(namespace); len(errs) > 0 {
		return fmt.Errorf("want %s or the name of a namespace: %s", BesideCluster,
			strings.TrimPrefix(errs[0].ErrorBody(), "Invalid value: "))
	}
	return nil
}
