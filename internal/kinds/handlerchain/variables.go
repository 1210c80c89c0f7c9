// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package handlerchain

import (
	"fmt"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/contract/jsonpatch"
)

// Variables returns the union of the variables that handlers have answered to DiscoverVariables, in the order of the
// answers. The error, if it is not a *hook.Error, is of two handlers that define one variable differently, and names
// them and the first difference. names are those of the handlers.
func Variables(
	names []string, answers []*hooksv1alpha1.DiscoverVariablesResponse, g jsonpatch.Guard,
) ([]*hooksv1alpha1.ClusterClassVariable, error) {
	type definition struct {
		variable *hooksv1alpha1.ClusterClassVariable
		handler  string
	}
	var all []*hooksv1alpha1.ClusterClassVariable
	found := map[string]definition{}
	for i, answer := range answers {
		for _, v := range answer.GetVariables() {
			other, ok := found[v.GetName()]
			if !ok {
				found[v.GetName()] = definition{v, names[i]}
				all = append(all, v)
				continue
			}
			one, err := variableTree(other.variable, g)
			if err != nil {
				return nil, fmt.Errorf("handler %q: %w", other.handler, err)
			}
			two, err := variableTree(v, g)
			if err != nil {
				return nil, fmt.Errorf("handler %q: %w", names[i], err)
			}
			differ, err := differences(nil, "", one, two, &jsonpatch.Meter{Guard: g})
			if err != nil {
				return nil, err
			}
			if len(differ) > 0 {
				return nil, fmt.Errorf("handlers %q and %q define variable %q differently: %s is not the same",
					other.handler, names[i], text.Cut(v.GetName(), limits.QuotedBytes), text.Cut(differ[0], limits.QuotedBytes))
			}
		}
	}
	return all, nil
}

// variableTree returns the JSON of a variable as a value of jsonpatch.
func variableTree(v *hooksv1alpha1.ClusterClassVariable, g jsonpatch.Guard) (map[string]any, error) {
	tree := map[string]any{"required": v.GetRequired()}
	add := func(to map[string]any, name string, raw []byte) error {
		m := jsonpatch.Meter{Guard: g}
		value, err := m.Parse(raw)
		if err == nil {
			err = m.Flush()
		}
		if err != nil {
			return fmt.Errorf("variable %q: %s: %w", text.Cut(v.GetName(), limits.QuotedBytes), name, err)
		}
		to[name] = value
		return nil
	}
	schema, metadata := map[string]any{}, map[string]any{}
	for _, part := range []struct {
		to   map[string]any
		from map[string]*hooksv1alpha1.JSON
	}{
		{tree, v.GetUnknownMembers()},
		{schema, v.GetSchema().GetUnknownMembers()},
		{schema, map[string]*hooksv1alpha1.JSON{"openAPIV3Schema": v.GetSchema().GetOpenApiV3Schema()}},
		{metadata, v.GetDeprecatedV1Beta1Metadata().GetUnknownMembers()},
	} {
		for name, raw := range part.from {
			if len(raw.GetRaw()) == 0 {
				continue
			}
			if err := add(part.to, name, raw.GetRaw()); err != nil {
				return nil, err
			}
		}
	}
	labels, annotations := v.GetDeprecatedV1Beta1Metadata().GetLabels(), v.GetDeprecatedV1Beta1Metadata().GetAnnotations()
	for name, texts := range map[string]map[string]string{"labels": labels, "annotations": annotations} {
		if len(texts) > 0 {
			metadata[name] = valuesOf(texts)
		}
	}
	tree["schema"], tree["metadata"] = schema, metadata
	return tree, nil
}

func valuesOf(texts map[string]string) map[string]any {
	values := make(map[string]any, len(texts))
	for name, t := range texts {
		values[name] = t
	}
	return values
}
