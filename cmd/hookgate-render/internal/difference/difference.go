// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package difference compares a render with the live objects, or with another render.
package difference

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/hookgate/hookgate/cmd/hookgate-render/internal/topology"
	"github.com/hookgate/hookgate/internal/kinds/handlerchain"
)

// Difference is a value of an object that differs. Where the path is empty, the whole object is new, or is gone.
type Difference struct {
	// Object says what the object is for, such as MachineDeployment/md-0/bootstrap.
	Object string `json:"object"`
	Kind   string `json:"kind"`
	Name   string `json:"name"`
	// Path is the JSON pointer of the value.
	Path string `json:"path,omitempty"`
	// Was and Now are the values; empty where there is none.
	Was json.RawMessage `json:"was,omitempty"`
	Now json.RawMessage `json:"now,omitempty"`
	// ChangedBy are the handlers and the patches of the ClusterClass that have set the value, in their order; those of the
	// other render where this one has none. Empty if it comes from the Cluster, the ClusterClass or a template.
	ChangedBy []string `json:"changedBy,omitempty"`
}

// Live returns what Cluster API has a say in of the live objects of a render, by role. It applies what it wants to
// them, and owns that: values that it neither wants nor owns, such as defaults, are not there.
func Live(now *topology.Render) (map[string]*unstructured.Unstructured, error) {
	projected := map[string]*unstructured.Unstructured{}
	for role, o := range now.Live {
		wanted := now.Object(role)
		if wanted == nil || wanted.GroupVersionKind().GroupKind() != o.GroupVersionKind().GroupKind() {
			projected[role] = o
			continue
		}
		owned, err := ownedBy(o, manager)
		if err != nil {
			return nil, fmt.Errorf("%s %q: %w", o.GetKind(), o.GetName(), err)
		}
		members, _ := project(o.Object, wanted.Object, owned).(map[string]any)
		projected[role] = &unstructured.Unstructured{Object: members}
	}
	return projected, nil
}

// Objects returns the objects of a render, by role.
func Objects(r *topology.Render) map[string]*unstructured.Unstructured {
	objects := map[string]*unstructured.Unstructured{}
	for i := range r.Objects {
		objects[r.Objects[i].Role] = r.Objects[i].Unstructured
	}
	return objects
}

// Compare returns what differs between the objects before, by role, and a render. other is the render that made those
// before; nil if none did.
func Compare(before map[string]*unstructured.Unstructured, now, other *topology.Render) ([]Difference, error) {
	var found []Difference
	seen := map[string]bool{}
	for i := range now.Objects {
		x := &now.Objects[i]
		seen[x.Role] = true
		was := before[x.Role]
		if was == nil || was.GroupVersionKind().GroupKind() != x.GroupVersionKind().GroupKind() {
			if was != nil {
				found = append(found, gone(x.Role, was))
			}
			found = append(found, Difference{Object: x.Role, Kind: x.GetKind(), Name: x.GetName(), Now: textOf(x.Unstructured)})
			continue
		}
		values, err := handlerchain.Differences(relevant(x.Role, was.Object), relevant(x.Role, x.Object))
		if err != nil {
			return nil, fmt.Errorf("%s %q: %w", x.GetKind(), x.GetName(), err)
		}
		for _, d := range values {
			by := now.ChangedBy(x.Role, d.Pointer)
			if len(by) == 0 && other != nil {
				by = other.ChangedBy(x.Role, d.Pointer)
			}
			found = append(found, Difference{
				Object: x.Role, Kind: x.GetKind(), Name: x.GetName(), Path: d.Pointer,
				Was: json.RawMessage(d.Got), Now: json.RawMessage(d.Want), ChangedBy: by,
			})
		}
	}
	var left []string
	for role := range before {
		if !seen[role] {
			left = append(left, role)
		}
	}
	slices.Sort(left)
	for _, role := range left {
		found = append(found, gone(role, before[role]))
	}
	return found, nil
}

func gone(role string, o *unstructured.Unstructured) Difference {
	return Difference{Object: role, Kind: o.GetKind(), Name: o.GetName(), Was: textOf(o)}
}

// relevant returns the JSON of what is compared of an object: its version, its labels and annotations, and its spec. Of
// a Cluster, the topology is what was asked for, and not made by Cluster API.
func relevant(role string, object map[string]any) []byte {
	compared := map[string]any{"apiVersion": object["apiVersion"]}
	metadata, _ := object["metadata"].(map[string]any)
	kept := map[string]any{}
	for _, name := range []string{"labels", "annotations"} {
		if m, _ := metadata[name].(map[string]any); len(m) > 0 {
			kept[name] = m
		}
	}
	compared["metadata"] = kept
	if spec, _ := object["spec"].(map[string]any); len(spec) > 0 {
		if role == topology.RoleCluster {
			clone := make(map[string]any, len(spec))
			for k, v := range spec {
				if k != "topology" {
					clone[k] = v
				}
			}
			spec = clone
		}
		compared["spec"] = spec
	}
	body, _ := json.Marshal(compared) // it is made of JSON
	return body
}

func textOf(o *unstructured.Unstructured) json.RawMessage {
	body, _ := json.Marshal(o.Object) // it is made of JSON
	return body
}

// SpecOf reports whether one of the differences is in the spec of an object, and not in its metadata alone.
func SpecOf(all []Difference, role string) bool {
	return slices.ContainsFunc(all, func(d Difference) bool {
		return d.Object == role && (d.Path == "" || strings.HasPrefix(d.Path, "/spec"))
	})
}
