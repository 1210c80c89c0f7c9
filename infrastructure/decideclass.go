// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package infrastructure

import (
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	infrahooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/infrastructure/capacity"
	"github.com/hookgate/hookgate/infrastructure/parameters"
	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
)

// decideClass records what an extension announces.
func decideClass(
	c *infrav1.InfrastructureClass, a *infrahooksv1alpha1.DiscoverInfrastructureResponse, schemas *parameters.Cache,
) {
	setSynced(c)
	handlers, problems := chooseHandlers(c.Spec.Handlers, a.GetHandlers())
	announced := infrav1.ParameterSchemas{}
	for _, s := range []struct {
		kind string
		json *hooksv1alpha1.JSON
		at   **apiextensionsv1.JSON
	}{
		{"clusterParameters", a.GetClusterParameters(), &announced.Cluster},
		{"machineParameters", a.GetMachineParameters(), &announced.Machine},
		{"machinePoolParameters", a.GetMachinePoolParameters(), &announced.MachinePool},
	} {
		raw := s.json.GetRaw()
		if len(raw) == 0 {
			continue
		}
		if _, err := schemas.Compile(raw); err != nil {
			problems = append(problems, s.kind+": "+err.Error())
			if len(raw) > limits.ParameterSchemaBytes {
				continue // it has no room in the status
			}
		}
		*s.at = &apiextensionsv1.JSON{Raw: raw}
	}
	capacities, err := capacity.Decide(a.GetMachineCapacities())
	if err != nil {
		problems = append(problems, text.Printable(err.Error()))
	}
	c.Status.MachineCapacities = capacities
	if _, err := c.Spec.AllowedNamespaces.Allow("", nil); err != nil {
		problems = append(problems, err.Error())
	}
	c.Status.Handlers, c.Status.ProviderIDPrefix, c.Status.Schemas = handlers, a.GetProviderIdPrefix(), announced
	if len(problems) > 0 {
		set(c, infrav1.ReadyCondition, metav1.ConditionFalse, infrav1.ClassNotReadyReason,
			text.Join(problems, "; ", limits.ParameterProblems))
		return
	}
	set(c, infrav1.ReadyCondition, metav1.ConditionTrue, infrav1.ReadyReason, "")
}

// chooseHandlers returns the handler for each hook: the one that the class names, or the only one. Hooks of machine
// pools may have none.
func chooseHandlers(
	named infrav1.Handlers, announced []*hooksv1alpha1.ExtensionHandler,
) (chosen infrav1.Handlers, problems []string) {
	byHook := map[string][]string{}
	for _, h := range announced {
		if h.GetRequestHook().GetApiVersion() != hook.InfrastructureGroup+"/"+hook.InfrastructureVersion {
			continue
		}
		if h.GetFailurePolicy() == hooksv1alpha1.FailurePolicy_FAILURE_POLICY_IGNORE {
			problems = append(problems, fmt.Sprintf("handler %q: its failure policy must not be Ignore: without "+
				"an answer, the controllers cannot know what exists", h.GetName()))
			continue
		}
		name := h.GetRequestHook().GetHook()
		byHook[name] = append(byHook[name], h.GetName())
	}
	for _, h := range []struct {
		hook, member string
		named        infrav1.HandlerName
		chosen       *infrav1.HandlerName
		optional     bool
	}{
		{"ReconcileCluster", "reconcileCluster", named.ReconcileCluster, &chosen.ReconcileCluster, false},
		{"DeleteCluster", "deleteCluster", named.DeleteCluster, &chosen.DeleteCluster, false},
		{"ReconcileMachine", "reconcileMachine", named.ReconcileMachine, &chosen.ReconcileMachine, false},
		{"DeleteMachine", "deleteMachine", named.DeleteMachine, &chosen.DeleteMachine, false},
		{"ReconcileMachinePool", "reconcileMachinePool", named.ReconcileMachinePool, &chosen.ReconcileMachinePool, true},
		{"DeleteMachinePool", "deleteMachinePool", named.DeleteMachinePool, &chosen.DeleteMachinePool, true},
	} {
		names := slices.Sorted(slices.Values(byHook[h.hook]))
		switch {
		case h.named != "" &&
			!slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, string(h.named)) }):
			problems = append(problems, fmt.Sprintf("spec.handlers.%s: the extension has no handler %q for %s", h.member,
				h.named, h.hook))
		case h.named != "":
			*h.chosen = h.named
		case len(names) == 1:
			*h.chosen = infrav1.HandlerName(strings.ToLower(names[0]))
		case len(names) == 0 && !h.optional:
			problems = append(problems, fmt.Sprintf("the extension has no handler for %s", h.hook))
		case len(names) > 1:
			problems = append(problems, fmt.Sprintf("the extension has several handlers for %s: name one in "+
				"spec.handlers.%s", h.hook, h.member))
		}
	}
	if (chosen.ReconcileMachinePool == "") != (chosen.DeleteMachinePool == "") {
		problems = append(problems, "the extension needs handlers for both hooks of machine pools, or for none")
		chosen.ReconcileMachinePool, chosen.DeleteMachinePool = "", ""
	}
	return chosen, problems
}
