// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/registry"
)

// Kind is the kind that this package is about, and RecordKind that of its records.
const (
	Kind       = registry.RolloutKind
	RecordKind = "ExtensionRolloutRecord"
)

// Rollout is a valid ExtensionRollout.
type Rollout struct {
	name, stable, candidate string

	spec     *v1alpha1.ExtensionRolloutSpec
	percent  uint64
	selector labels.Selector // nil selects no Cluster
	approved map[string]bool
	state    *state
}

var _ registry.Assignment = (*Rollout)(nil)

// Compile returns what an ExtensionRollout says, or its mistakes.
func (e *Engine) Compile(o *v1alpha1.ExtensionRollout) (registry.Rollout, field.ErrorList) {
	r, errs := compile(o, e.config.IsNew != nil)
	if len(errs) > 0 {
		return registry.Rollout{}, errs
	}
	r.state = e.stateOf(o.Name)
	return registry.Rollout{Name: o.Name, Stable: r.stable, Candidate: r.candidate, Assignment: r}, nil
}

// Check returns the mistakes in an ExtensionRollout of a directory of manifests, or of a cluster.
func Check(o *v1alpha1.ExtensionRollout, inCluster bool) field.ErrorList {
	_, errs := compile(o, inCluster)
	return errs
}

func compile(o *v1alpha1.ExtensionRollout, inCluster bool) (*Rollout, field.ErrorList) {
	spec := o.Spec.DeepCopy()
	at := field.NewPath("spec")
	errs := checkNames(o.Name, spec)
	r := &Rollout{
		name: o.Name, stable: spec.Stable, candidate: spec.Candidate, spec: spec, percent: 100, approved: map[string]bool{},
	}
	if of := spec.CandidateFor; of != nil {
		if of.Percent != nil {
			r.percent = uint64(*of.Percent)
			if *of.Percent < 0 || *of.Percent > 100 {
				errs = append(errs, field.Invalid(at.Child("candidateFor", "percent"), *of.Percent, "must be 0 to 100"))
			}
		}
		r.selector = labels.Everything()
		if of.ClusterSelector != nil {
			var err error
			if r.selector, err = metav1.LabelSelectorAsSelector(of.ClusterSelector); err != nil {
				errs = append(errs, field.Invalid(at.Child("candidateFor", "clusterSelector"), "", err.Error()))
			}
		}
	}
	for i, of := range spec.Approved {
		r.approved[of] = true
		namespace, name, ok := strings.Cut(of, "/")
		if of != All && (!ok || (namespace == "") != (name == "") || strings.Contains(name, "/")) {
			errs = append(errs, field.Invalid(at.Child("approved").Index(i), of,
				`must be namespace/name of a Cluster, "*" for all, or "/" for calls about no Cluster`))
		}
	}
	for i, of := range spec.NotCompared {
		if err := registry.CheckName(of); err != nil {
			errs = append(errs, field.Invalid(at.Child("notCompared").Index(i), of,
				err.Error()+"; give the name from Discovery, without the name of the ExtensionConfig"))
		}
	}
	if spec.Abort != nil && (spec.Abort.ErrorPercent == nil || *spec.Abort.ErrorPercent < 0 ||
		*spec.Abort.ErrorPercent > 100) {
		errs = append(errs, field.Invalid(at.Child("abort", "errorPercent"), "", "must be 0 to 100"))
	}
	if spec.NewClusters == v1alpha1.NewClustersCandidate && !inCluster {
		errs = append(errs, field.Forbidden(at.Child("newClusters"),
			"only a gateway in a cluster sees whether a Cluster is new"))
	}
	return r, errs
}

// checkNames returns what is wrong with the names in an ExtensionRollout.
func checkNames(name string, spec *v1alpha1.ExtensionRolloutSpec) (errs field.ErrorList) {
	check := func(at *field.Path, name string) {
		if err := registry.CheckName(name); err != nil {
			errs = append(errs, field.Invalid(at, name, err.Error()))
		}
	}
	at := field.NewPath("spec")
	check(field.NewPath("metadata", "name"), name)
	if spec.Stable == "" {
		errs = append(errs, field.Required(at.Child("stable"), "must be the name of an ExtensionConfig"))
	} else {
		check(at.Child("stable"), spec.Stable)
	}
	if spec.Candidate != "" {
		check(at.Child("candidate"), spec.Candidate)
	}
	if spec.Candidate != "" && spec.Candidate == spec.Stable {
		errs = append(errs, field.Invalid(at.Child("candidate"), spec.Candidate,
			"must be another ExtensionConfig than stable"))
	}
	if !slices.Contains([]v1alpha1.NewClusters{
		"", v1alpha1.NewClustersStable, v1alpha1.NewClustersCandidate,
	}, spec.NewClusters) {
		errs = append(errs, field.NotSupported(at.Child("newClusters"), spec.NewClusters,
			[]v1alpha1.NewClusters{v1alpha1.NewClustersStable, v1alpha1.NewClustersCandidate}))
	}
	if !slices.Contains([]v1alpha1.OnDifference{
		"", v1alpha1.OnDifferenceHold, v1alpha1.OnDifferenceMove,
	}, spec.OnDifference) {
		errs = append(errs, field.NotSupported(at.Child("onDifference"), spec.OnDifference,
			[]v1alpha1.OnDifference{v1alpha1.OnDifferenceHold, v1alpha1.OnDifferenceMove}))
	}
	return errs
}

const (
	// All approves every Cluster.
	All = "*"
	// None is the Cluster of calls that are about none.
	None = "/"
)

// Candidate reports whether the candidate answers for a Cluster: if its record says so, and never for calls about none.
func (r *Rollout) Candidate(ctx context.Context, namespace, cluster string) (bool, error) {
	return r.answers(ctx, namespace, cluster, r.moveIfNew)
}

// Look reports what Candidate would, and moves no Cluster.
func (r *Rollout) Look(ctx context.Context, namespace, cluster string) (bool, error) {
	return r.answers(ctx, namespace, cluster, r.isNew)
}

// answers reports whether the candidate answers for a Cluster, and asks isNew about one that nothing is known of and
// that has the candidate if it is new.
func (r *Rollout) answers(
	ctx context.Context, namespace, cluster string, isNew func(context.Context, types.NamespacedName) (bool, error),
) (bool, error) {
	of := types.NamespacedName{Namespace: namespace, Name: cluster}
	if cluster == "" || !r.state.engine.readable() {
		if cluster == "" {
			return false, nil
		}
		return false, hook.Errorf(hook.NotReady, "%s %q: its records have not been read yet: try again", Kind, r.name)
	}
	switch to, known := r.state.movedTo(of); {
	case to == "" && !known && r.spec.NewClusters == v1alpha1.NewClustersCandidate && r.mayMoveAny():
		return isNew(ctx, of)
	case to == "", to == r.stable:
		return false, nil
	case to == r.candidate:
		return true, nil
	default:
		return false, hook.Errorf(hook.NotReady, "Cluster %q has moved to ExtensionConfig %q, which is neither stable nor "+
			"candidate of %s %q any more: make it one of the two again, or move the Cluster back by deleting its %s",
			of, to, Kind, r.name, RecordKind)
	}
}

// isNew reports whether a Cluster is new.
func (r *Rollout) isNew(ctx context.Context, of types.NamespacedName) (bool, error) {
	isNew, err := r.state.engine.config.IsNew(ctx, of.Namespace, of.Name)
	if err != nil {
		return false, hook.Errorf(hook.NotReady, "%s %q: cannot see whether Cluster %q is new: try again", Kind, r.name, of).
			WithCause(err)
	}
	return isNew, nil
}

// moveIfNew decides for a Cluster that nothing is known of. If it is new, it moves before the candidate answers.
func (r *Rollout) moveIfNew(ctx context.Context, of types.NamespacedName) (bool, error) {
	e := r.state.engine
	isNew, err := r.isNew(ctx, of)
	if err != nil {
		return false, err
	}
	if !isNew {
		r.state.notNew(of)
		return false, nil
	}
	record := r.record(of, v1alpha1.RolloutStateMoved, "the Cluster was new", nil, 0)
	ctx, cancel := context.WithTimeout(ctx, storePatience)
	defer cancel()
	if err := e.put(ctx, record); err != nil {
		return false, hook.Errorf(hook.NotReady, "%s %q: the record that Cluster %q has moved cannot be stored: try again",
			Kind, r.name, of).WithCause(err)
	}
	return true, nil
}

// mayMoveAny reports whether any Cluster may move.
func (r *Rollout) mayMoveAny() bool {
	return r.candidate != "" && !r.spec.Paused && !r.state.isAborted(r.candidate)
}

// mayMove reports whether a Cluster with equal answers may move, and approved whether it may with different ones.
func (r *Rollout) mayMove(of types.NamespacedName, labels labels.Set) (may, approved bool) {
	approved = r.approved[of.String()] || r.approved[All]
	live, annotations := r.state.engine.metadata(of)
	approved = approved || r.candidate != "" && annotations[v1alpha1.ApproveRolloutAnnotation] == r.candidate
	if live != nil {
		labels = live
	}
	chosen := r.selector != nil && r.selector.Matches(labels) && share(of) < r.percent
	return chosen || approved, approved
}

// share returns the place of a Cluster among all, 0 to 99.
func share(of types.NamespacedName) uint64 {
	sum := sha256.Sum256([]byte(of.String()))
	return binary.BigEndian.Uint64(sum[:8]) % 100
}

// Compare takes a call to compare its answer, if the Cluster is to be compared.
func (r *Rollout) Compare(c registry.Comparison) {
	of := types.NamespacedName{Namespace: c.Namespace, Name: c.Cluster}
	if r.candidate == "" || r.state.engine.config.Store == nil {
		return
	}
	if may, _ := r.mayMove(of, c.Labels); may || r.spec.Compare {
		r.state.engine.add(r, of, c, may)
	}
}

// unasked returns why the candidate is not to be asked in place of a handler of the stable member; empty if it is.
func (r *Rollout) unasked(handler string) string {
	if !slices.Contains(r.spec.NotCompared, handler) {
		return ""
	}
	return "the candidate is not called: spec.notCompared names the handler"
}

// Failed notes that a call about a Cluster has failed, of this ExtensionRollout or another handler: the reconcile that
// it is of asks no more.
func (r *Rollout) Failed(namespace, cluster string) {
	r.state.failed(types.NamespacedName{Namespace: namespace, Name: cluster})
}

// Answered counts a call of the candidate.
func (r *Rollout) Answered(failed bool) { r.state.count(r, failed) }
