// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hooktest

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/contract/jsonpatch"
	"github.com/hookgate/hookgate/internal/contract/subject"
)

const (
	cluster = `{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster",
		"metadata": {"name": "cluster", "namespace": "default"}, "spec": {}}`
	holder = `{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "namespace": "default", "name": "cluster",
		"fieldPath": "spec.infrastructureRef"}`
	builtin = `{"name": "builtin", "value": {"cluster": {"name": "cluster", "namespace": "default"}}}`
	machine = `{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "%s", "metadata": {"name": "machine",
		"namespace": "default", "labels": {"cluster.x-k8s.io/cluster-name": "cluster"}}, "spec": {"clusterName": "cluster"}}`
)

// filled has what a request is filled with, by the names of its members.
func filled(member string) string {
	switch member {
	case "cluster":
		return cluster
	case "fromKubernetesVersion", "fromControlPlaneKubernetesVersion", "fromWorkersKubernetesVersion":
		return `"v1.35.0"`
	case "toKubernetesVersion", "kubernetesVersion":
		return `"v1.36.0"`
	case "variables":
		return `[` + builtin + `]`
	case "machine":
		return fmt.Sprintf(machine, "Machine")
	case "machineSet":
		return fmt.Sprintf(machine, "MachineSet")
	}
	return ""
}

// Complete returns a request of a hook of Cluster API with what it lacks: the Cluster "cluster" in the namespace
// "default", an upgrade from v1.35.0 to v1.36.0, the variable builtin, the uid and the holder of items, and of updates
// in place the Machine or MachineSet, of which desired is like current where it says nothing else. Objects are merged,
// and null removes a member. Requests of other groups stay as they are.
func Complete(h *catalog.Hook, request []byte) ([]byte, error) {
	if len(request) == 0 {
		request = []byte("{}")
	}
	parsed, err := parsed(request)
	given, ok := parsed.(map[string]any)
	if err != nil || !ok || h.Group != hook.Group {
		return request, err
	}
	out := map[string]any{}
	fields := h.Request.Descriptor().Fields()
	for i := range fields.Len() {
		if err := fill(out, fields.Get(i)); err != nil {
			return nil, err
		}
	}
	if err := completeLists(given, fields.ByName("items")); err != nil {
		return nil, err
	}
	desired, both := given["desired"]
	if current := out["current"]; current != nil && both { // desired is over current
		delete(given, "desired")
		if out["desired"], err = merged(current, given["current"]); err != nil {
			return nil, err
		}
		given["desired"] = desired
	} else if current != nil {
		out["desired"] = current
		given["desired"] = given["current"]
	}
	all, err := merged(out, given)
	if err != nil {
		return nil, err
	}
	return jsonpatch.Append(nil, all), nil
}

// fill adds a member that requests are filled with.
func fill(out map[string]any, field protoreflect.FieldDescriptor) error {
	name := field.JSONName()
	value := filled(name)
	if name == "current" || name == "desired" {
		within := field.Message().Fields().Get(0).JSONName() // machine or machineSet
		value = `{"` + within + `":` + filled(within) + `}`
	}
	if value == "" {
		return nil
	}
	var err error
	out[name], err = parsed([]byte(value))
	return err
}

// completeLists completes the elements of the lists in a request. Its items, if it can have any, are of the field.
func completeLists(given map[string]any, field protoreflect.FieldDescriptor) error {
	if variables, ok := given["variables"].([]any); ok {
		at := len(variables)
		for i := range variables {
			if v, ok := variables[i].(map[string]any); ok && v["name"] == subject.Builtin {
				at = i
			}
		}
		if at == len(variables) {
			variables = append(variables, map[string]any{})
		}
		if err := complete(variables, at, builtin); err != nil {
			return err
		}
		given["variables"] = variables
	}
	items, _ := given["items"].([]any)
	for i := range items {
		least := `{"holderReference":` + holder + `}`
		if field != nil && field.Message().Fields().ByName("uid") != nil {
			least = fmt.Sprintf(`{"uid":"%d",%s`, i+1, least[1:])
		}
		if err := complete(items, i, least); err != nil {
			return err
		}
	}
	return nil
}

// complete merges an element of a list into what it has at least.
func complete(list []any, i int, least string) error {
	base, err := parsed([]byte(least))
	if err != nil {
		return err
	}
	list[i], err = merged(base, list[i])
	return err
}

func parsed(text []byte) (any, error) { return jsonpatch.Guard{}.Parse(text) }

// merged returns a copy of base with a merge patch, which may be nil.
func merged(base, patch any) (any, error) {
	fresh, err := parsed(jsonpatch.Append(nil, base))
	if err != nil || patch == nil {
		return fresh, err
	}
	return jsonpatch.ApplyParsed(fresh, hooksv1alpha1.PatchType_PATCH_TYPE_JSON_MERGE_PATCH, patch, &jsonpatch.Meter{})
}

// unknownMember returns the first member of a request, by name, that the contract does not have, or nothing.
func unknownMember(m protoreflect.Message) (found string) {
	note := func(name string) {
		if found == "" || name < found {
			found = name
		}
	}
	m.Range(func(field protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case field.Name() == "unknown_members":
			v.Map().Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool {
				note(fmt.Sprintf("%s has no member %q", m.Descriptor().Name(), k.String()))
				return true
			})
		case field.Message() == nil || field.IsMap():
		case field.IsList():
			for i := range v.List().Len() {
				if name := unknownMember(v.List().Get(i).Message()); name != "" {
					note(name)
				}
			}
		default:
			if name := unknownMember(v.Message()); name != "" {
				note(name)
			}
		}
		return true
	})
	return found
}

// decoded returns the request that a case gives.
func (r *Runner) decoded(h *catalog.Hook, given *Given) (proto.Message, error) {
	complete := func() ([]byte, error) { return Complete(h, given.Request) }
	if given.RequestFile != "" {
		complete = func() ([]byte, error) { return r.Read(given.RequestFile) }
	}
	body, err := complete()
	if err != nil {
		return nil, err
	}
	request := h.Request.New().Interface()
	if err := r.Codec.Decode(body, request); err != nil {
		return nil, fmt.Errorf("the request cannot be read as %s: %w", request.ProtoReflect().Descriptor().Name(), err)
	}
	if unknown := unknownMember(request.ProtoReflect()); unknown != "" && given.RequestFile == "" {
		return nil, fmt.Errorf("given.request: %s", unknown)
	}
	return request, nil
}
