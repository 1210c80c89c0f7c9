// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookrule

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hookgate/hookgate/api/v1alpha1"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/contract/jsonscan"
)

// What objects can have as their apiVersion and kind.
var (
	groupVersion = regexp.MustCompile(
		`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/[a-z]([-a-z0-9]*[a-z0-9])?$`)
	kindName = regexp.MustCompile(`^[a-zA-Z]([-a-zA-Z0-9]*[a-zA-Z0-9])?$`)
)

// selector selects items of requests as the patches of a ClusterClass do.
type selector struct {
	apiVersion, kind string
	match            *v1alpha1.HookRuleMatchResources // nil for all
}

// selector notes the mistakes of a selector, among them that it selects nothing.
func (in *compilation) selector(from *v1alpha1.HookRuleItemSelector, path *field.Path) selector {
	if at := path.Child("apiVersion"); from.APIVersion != "" && !groupVersion.MatchString(from.APIVersion) {
		in.errs = append(in.errs, field.Invalid(at, text.Cut(from.APIVersion, limits.QuotedBytes),
			"must be a group and a version, as in infrastructure.cluster.x-k8s.io/v1beta2"))
	}
	switch at := path.Child("kind"); {
	case from.Kind == "":
		in.errs = append(in.errs, field.Required(at, "must be the kind of the templates"))
	case !kindName.MatchString(from.Kind):
		in.errs = append(in.errs, field.Invalid(at, text.Cut(from.Kind, limits.QuotedBytes),
			"must be the kind of the templates, as in KubeadmControlPlaneTemplate"))
	}
	if m := from.MatchResources; m != nil {
		at := path.Child("matchResources")
		if !m.ControlPlane && !m.InfrastructureCluster && m.MachineDeploymentClass == nil && m.MachinePoolClass == nil {
			in.errs = append(in.errs, field.Invalid(at, field.OmitValueType{},
				"selects nothing: must have one of controlPlane, infrastructureCluster, machineDeploymentClass and "+
					"machinePoolClass"))
		}
		in.classes(m.MachineDeploymentClass, at.Child("machineDeploymentClass"))
		in.classes(m.MachinePoolClass, at.Child("machinePoolClass"))
	}
	return selector{from.APIVersion, from.Kind, from.MatchResources}
}

// classes notes the mistakes in the names of classes of workers.
func (in *compilation) classes(from *v1alpha1.HookRuleWorkerClass, path *field.Path) {
	if from == nil {
		return
	}
	at := path.Child("names")
	if len(from.Names) == 0 {
		in.errs = append(in.errs, field.Required(at, "selects nothing without the name of a class; * stands for all"))
	}
	for i := range in.bounded(len(from.Names), at) {
		name := from.Names[i]
		within := strings.TrimSuffix(strings.TrimPrefix(name, "*"), "*")
		switch {
		case name == "", len(name) > limits.RuleClassBytes:
			in.errs = append(in.errs, field.Invalid(at.Index(i), text.Cut(name, limits.QuotedBytes),
				fmt.Sprintf("must have 1 to %d characters", limits.RuleClassBytes)))
		case strings.Contains(within, "*"), name != "*" && len(name)-len(within) == 2:
			in.errs = append(in.errs, field.Invalid(at.Index(i), name,
				"must have one * at most, at the beginning or at the end"))
		}
	}
}

// item is an item of a request of GeneratePatches or of ValidateTopology.
type item interface {
	GetHolderReference() *hooksv1alpha1.HolderReference
	GetObject() *hooksv1alpha1.RawExtension
	GetVariables() []*hooksv1alpha1.Variable
}

// selects reports whether s selects an item.
func (s *selector) selects(i item) (bool, error) {
	for _, member := range []struct{ name, want string }{{"kind", s.kind}, {"apiVersion", s.apiVersion}} {
		value, err := jsonscan.Lookup(i.GetObject().GetRaw(), member.name)
		if err != nil {
			return false, fmt.Errorf("object: %w", err)
		}
		if got, _ := jsonscan.String(value); got != member.want && member.want != "" {
			return false, nil
		}
	}
	if s.match == nil {
		return true, nil
	}
	holder := i.GetHolderReference()
	switch path := holder.GetFieldPath(); {
	case holder.GetKind() == "Cluster" && path == "spec.infrastructureRef":
		return s.match.InfrastructureCluster, nil
	case holder.GetKind() == "Cluster" && path == "spec.controlPlaneRef",
		// The names that contracts of control planes have for the template of their machines.
		path == "spec.machineTemplate.infrastructureRef", path == "spec.machineTemplate.spec.infrastructureRef":
		return s.match.ControlPlane, nil
	case path != "spec.template.spec.bootstrap.configRef" && path != "spec.template.spec.infrastructureRef":
		return false, nil
	}
	switch holder.GetKind() {
	case "MachineDeployment":
		return selectsClass(s.match.MachineDeploymentClass, i, "machineDeployment")
	case "MachinePool":
		return selectsClass(s.match.MachinePoolClass, i, "machinePool")
	}
	return false, nil
}

// selectsClass reports whether the class of the workers is one of those that are selected. Cluster API tells it in the
// builtin variables of the item.
func selectsClass(classes *v1alpha1.HookRuleWorkerClass, i item, worker string) (bool, error) {
	if classes == nil {
		return false, nil
	}
	for _, v := range slices.Backward(i.GetVariables()) {
		if v.GetName() != builtin {
			continue
		}
		value, err := jsonscan.Lookup(v.GetValue().GetRaw(), worker, "class")
		if err != nil {
			return false, fmt.Errorf("variable builtin: %w", err)
		}
		class, ok := jsonscan.String(value)
		return ok && slices.ContainsFunc(classes.Names, func(name string) bool {
			if end, open := strings.CutPrefix(name, "*"); open {
				return strings.HasSuffix(class, end)
			}
			if start, open := strings.CutSuffix(name, "*"); open {
				return strings.HasPrefix(class, start)
			}
			return name == class
		}), nil
	}
	return false, nil
}
