// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/registry"
)

// Description describes the kind.
var Description = kinds.Kind{
	Name: Kind, Shown: shownKind, Wanted: "rollouts", Instead: "use spec.candidateFor.clusterSelector to choose Clusters",
	New:       func() kinds.Object { return &v1alpha1.ExtensionRollout{} },
	NewList:   func() runtime.Object { return &v1alpha1.ExtensionRolloutList{} },
	Closes:    closes,
	Condition: kinds.Verdict.ReadyCondition,
	Conditions: func(o kinds.Object) *[]metav1.Condition {
		return &o.(*v1alpha1.ExtensionRollout).Status.Conditions
	},
}

// Compile returns what an object says, or its mistakes.
type Compile func(*v1alpha1.ExtensionRollout) (registry.Rollout, field.ErrorList)

// CompileAlone is a Compile that knows no Clusters, for where no calls are answered.
func CompileAlone(o *v1alpha1.ExtensionRollout) (registry.Rollout, field.ErrorList) {
	return registry.Rollout{Name: o.Name, Stable: o.Spec.Stable, Candidate: o.Spec.Candidate}, Check(o, false)
}

// Rules returns the rules of the kind. registered returns what is registered, or nil where that is not known; moved,
// which may be nil, knows which Clusters have moved.
func Rules(compile Compile, registered func() *registry.Snapshot, moved Moves) kinds.Rules {
	a := &admission{registered: registered, moved: moved}
	return kinds.Rules{Kind: Description, Compile: kinds.Compiler(compile), Admit: a.admit, Keeps: a.keeps}
}

// rolloutMembers are the members of an ExtensionRollout that name no ExtensionConfig.
var rolloutMembers = []string{
	"abort", "approved", "candidateFor", "compare", "newClusters", "onDifference", "paused",
}

// closes closes an ExtensionRollout and every ExtensionConfig that its spec may name.
func closes(s kinds.Spec, c *kinds.Closed) {
	names := append(kinds.Texts(rolloutMembers, s.Members), c.Name)
	slices.Sort(names)
	c.Extensions = slices.DeleteFunc(slices.Compact(names), kinds.Unusable)
}
