// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"encoding/json"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/contract/subject"
)

// Machines says what a change at a path of the item of a GeneratePatches request with a UID does to Machines; nothing
// if it does nothing to them, or cannot be known. A template that changes replaces the Machines made of it, unless they
// can be updated in place.
func Machines(request proto.Message, uid, path string) string {
	r, ok := request.(*hooksv1alpha1.GeneratePatchesRequest)
	if !ok || uid == "" {
		return ""
	}
	for _, item := range r.GetItems() {
		if item.GetUid() == uid {
			return machinesOf(r, item, path)
		}
	}
	return ""
}

func machinesOf(
	r *hooksv1alpha1.GeneratePatchesRequest, item *hooksv1alpha1.GeneratePatchesRequestItem, path string,
) string {
	holder := item.GetHolderReference()
	if !strings.HasPrefix(path, "/spec/template/spec") && path != "" {
		return "" // metadata of templates changes no Machine
	}
	var member, of string
	switch {
	case holder.GetKind() == "MachineDeployment":
		member, of = "machineDeployment", "MachineDeployment "+holder.GetName()
	case holder.GetKind() == "MachinePool":
		member, of = "machinePool", "MachinePool "+holder.GetName()
	case holder.GetKind() != "Cluster": // the Machines of a control plane
		member, of = "controlPlane", holder.GetKind()+" "+holder.GetName()
	case holder.GetFieldPath() == "spec.controlPlaneRef" &&
		strings.HasPrefix(path, "/spec/template/spec/kubeadmConfigSpec"):
		member, of = "controlPlane", "the control plane"
	default: // the infrastructure of the Cluster, or how the control plane is managed
		return ""
	}
	n, known := replicas(member, item.GetVariables(), r.GetVariables())
	switch {
	case !known:
		return "replaces the Machines of " + of
	case n == 1:
		return "replaces 1 Machine of " + of
	case n == 0:
		return ""
	}
	return fmt.Sprintf("replaces %d Machines of %s", n, of)
}

// replicas returns the replicas of a control plane, a MachineDeployment or a pool, from the variable builtin: of an
// item, or else of the whole request.
func replicas(member string, of ...[]*hooksv1alpha1.Variable) (n int64, known bool) {
	for _, variables := range of {
		for _, v := range variables {
			if v.GetName() != subject.Builtin {
				continue
			}
			var builtin map[string]json.RawMessage
			var with struct {
				Replicas *int64 `json:"replicas"`
			}
			if json.Unmarshal(v.GetValue().GetRaw(), &builtin) == nil &&
				json.Unmarshal(builtin[member], &with) == nil && with.Replicas != nil {
				return *with.Replicas, true
			}
		}
	}
	return 0, false
}
