// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookjob

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/registry"
)

// Kind is the kind of the objects.
const Kind = "HookJob"

// HandlerName is the name of the one handler of a HookJob, so that its registered name is job.<name>.
const HandlerName = "job"

// Description describes the kind.
var Description = kinds.Kind{
	Name: Kind, Shown: shownKind(),
	Wanted: "Jobs that answer hooks", Instead: "use spec.namespaceSelector to choose namespaces",
	New:        func() kinds.Object { return &v1alpha1.HookJob{} },
	NewList:    func() runtime.Object { return &v1alpha1.HookJobList{} },
	Closes:     kinds.ClosesHook(HandlerName),
	InCluster:  true,
	Condition:  kinds.Verdict.ReadyCondition,
	Conditions: func(o kinds.Object) *[]metav1.Condition { return &o.(*v1alpha1.HookJob).Status.Conditions },
}

// Rules returns the rules of the kind. registered returns what is registered, or nil where that is not known.
func (c *Compiler) Rules(registered func() *registry.Snapshot) kinds.Rules {
	compile := kinds.Compiler(c.Compile)
	return kinds.Rules{
		Kind: Description, Compile: compile, Admit: kinds.AdmitLocal(Kind, HandlerName, compile, registered),
	}
}
