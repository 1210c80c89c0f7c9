// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"encoding/json"
	"maps"
	"slices"

	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/contract/jsonpatch"
)

// memberMetadata is the name in v1beta1 of deprecatedV1Beta1Metadata. The contract follows v1beta2.
const memberMetadata = "metadata"

// withBothMetadata gives each variable its metadata under both names. Everything else in variables is the same in both
// versions: schemas differ only in their Go types, and required is always written.
// What that takes is counted by m.
func withBothMetadata(
	resp *hooksv1alpha1.DiscoverVariablesResponse, m *jsonpatch.Meter,
) (*hooksv1alpha1.DiscoverVariablesResponse, error) {
	var variables []*hooksv1alpha1.ClusterClassVariable
	for i, v := range resp.GetVariables() {
		both, err := variableWithBoth(v, m)
		if e := tooLarge(err); e != nil && e.Kind == hook.TooLarge {
			return nil, hook.Errorf(hook.BadResponse, "convert the metadata of variables: %s", e.Message)
		} else if e != nil {
			return nil, e
		}
		if err != nil {
			return nil, hook.Errorf(hook.BadResponse, "convert variable %q: metadata is not valid in %s: labels "+
				"and annotations must have strings as values", text.Cut(v.GetName(), limits.QuotedBytes), V1Beta1).WithCause(err)
		}
		if both == v {
			continue
		}
		if variables == nil {
			variables = slices.Clone(resp.GetVariables())
		}
		variables[i] = both
	}
	if variables == nil {
		return resp, nil
	}
	to := shallow(resp.ProtoReflect()).Interface().(*hooksv1alpha1.DiscoverVariablesResponse)
	to.Variables = variables
	return to, nil
}

// variableWithBoth returns v itself if it has no metadata or has it under both names, and a copy otherwise.
func variableWithBoth(
	v *hooksv1alpha1.ClusterClassVariable, m *jsonpatch.Meter,
) (*hooksv1alpha1.ClusterClassVariable, error) {
	old, hub := v.GetUnknownMembers()[memberMetadata].GetRaw(), v.GetDeprecatedV1Beta1Metadata()
	copied := func() *hooksv1alpha1.ClusterClassVariable {
		return shallow(v.ProtoReflect()).Interface().(*hooksv1alpha1.ClusterClassVariable)
	}
	switch {
	case old != nil && hub == nil:
		if err := m.Values(old); err != nil {
			return v, err
		}
		metadata, err := metadataOf(old)
		if err != nil || metadata == nil {
			return v, err
		}
		to := copied()
		to.DeprecatedV1Beta1Metadata = metadata
		return to, nil
	case old == nil && hub != nil:
		if err := m.Text(proto.Size(hub)); err != nil {
			return v, err
		}
		raw, err := hubMetadata(hub)
		if err != nil {
			return v, err
		}
		to := copied()
		members := make(map[string]*hooksv1alpha1.JSON, len(v.GetUnknownMembers())+1)
		maps.Copy(members, v.GetUnknownMembers())
		members[memberMetadata] = &hooksv1alpha1.JSON{Raw: raw}
		to.UnknownMembers = members
		return to, nil
	}
	return v, nil
}

// metadataOf decodes the metadata of v1beta1. It returns nil if that is empty.
func metadataOf(raw []byte) (*hooksv1alpha1.ClusterClassVariableMetadata, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil || len(members) == 0 {
		return nil, err
	}
	to := &hooksv1alpha1.ClusterClassVariableMetadata{}
	for name, value := range members {
		var err error
		switch name {
		case "labels":
			err = json.Unmarshal(value, &to.Labels)
		case "annotations":
			err = json.Unmarshal(value, &to.Annotations)
		default:
			if to.UnknownMembers == nil {
				to.UnknownMembers = map[string]*hooksv1alpha1.JSON{}
			}
			to.UnknownMembers[name] = &hooksv1alpha1.JSON{Raw: value}
		}
		if err != nil {
			return nil, err
		}
	}
	return to, nil
}

// hubMetadata encodes metadata of v1beta2 as v1beta1 has it.
func hubMetadata(from *hooksv1alpha1.ClusterClassVariableMetadata) ([]byte, error) {
	members := map[string]any{}
	if len(from.GetLabels()) > 0 {
		members["labels"] = from.GetLabels()
	}
	if len(from.GetAnnotations()) > 0 {
		members["annotations"] = from.GetAnnotations()
	}
	for name, value := range from.GetUnknownMembers() {
		members[name] = json.RawMessage(value.GetRaw())
	}
	return jsonpatch.Compose(members)
}
