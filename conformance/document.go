// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"bytes"
	"encoding/json"
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	infrastructurev1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
)

// The values of status.
const (
	success = "Success"
	failure = "Failure"
)

// document holds the members of answers, of any hook, that checks read. Unlike the messages of the contract it accepts
// wrong values, so that the check that is about a member finds them.
type document struct {
	Kind              *string `json:"kind"`
	APIVersion        *string `json:"apiVersion"`
	Status            string  `json:"status"`
	Message           string  `json:"message"`
	RetryAfterSeconds int64   `json:"retryAfterSeconds"`

	Handlers  []announced          `json:"handlers"`
	Items     []patchItem          `json:"items"`
	Variables []variableDefinition `json:"variables"`

	ControlPlaneUpgrades []step `json:"controlPlaneUpgrades"`
	WorkersUpgrades      []step `json:"workersUpgrades"`

	MachinePatch                       *patch `json:"machinePatch"`
	InfrastructureMachinePatch         *patch `json:"infrastructureMachinePatch"`
	BootstrapConfigPatch               *patch `json:"bootstrapConfigPatch"`
	MachineSetPatch                    *patch `json:"machineSetPatch"`
	InfrastructureMachineTemplatePatch *patch `json:"infrastructureMachineTemplatePatch"`
	BootstrapConfigTemplatePatch       *patch `json:"bootstrapConfigTemplatePatch"`
}

// announced is a handler as Discovery answers it.
type announced struct {
	Name           string      `json:"name"`
	RequestHook    requestHook `json:"requestHook"`
	TimeoutSeconds *int64      `json:"timeoutSeconds"`
	FailurePolicy  *string     `json:"failurePolicy"`
	// ClusterAPIVersion is a field that has no form in JSON: render spells it so.
	ClusterAPIVersion string `json:"clusterApiVersion"`
}

type requestHook struct {
	APIVersion string `json:"apiVersion"`
	Hook       string `json:"hook"`
}

type patchItem struct {
	UID string `json:"uid"`
	patch
}

type patch struct {
	PatchType string `json:"patchType"`
	Patch     []byte `json:"patch"`
}

type variableDefinition struct {
	Name   string `json:"name"`
	Schema struct {
		OpenAPIV3Schema json.RawMessage `json:"openAPIV3Schema"`
	} `json:"schema"`
	DeprecatedV1Beta1Metadata struct {
		Labels      map[string]string `json:"labels"`
		Annotations map[string]string `json:"annotations"`
	} `json:"deprecatedV1Beta1Metadata"`
}

type step struct {
	Version string `json:"version"`
}

func (d *document) read(body []byte) error {
	if err := json.Unmarshal(body, d); err != nil {
		return fmt.Errorf("read answer: %w", err)
	}
	return nil
}

// enumNames are the values of enums in the mandated JSON. Other values are rendered as numbers, so that checks find
// them.
var enumNames = map[protoreflect.FullName]map[protoreflect.EnumNumber]string{
	hooksv1alpha1.ResponseStatus(0).Descriptor().FullName(): {0: "", 1: success, 2: failure},
	hooksv1alpha1.FailurePolicy(0).Descriptor().FullName():  {0: "", 1: "Ignore", 2: "Fail"},
	hooksv1alpha1.PatchType(0).Descriptor().FullName():      {0: "", 1: jsonPatchType, 2: jsonMergePatchType},

	infrastructurev1alpha1.Phase(0).Descriptor().FullName():         {0: "", 1: "Provisioning", 2: "Ready", 3: "Failed"},
	infrastructurev1alpha1.DeletionState(0).Descriptor().FullName(): {0: "", 1: "Deleting", 2: "Gone"},
}

// render returns a message in the form of the mandated JSON, even one with wrong values, which package codec refuses.
func render(m proto.Message) []byte {
	data, err := json.Marshal(object(m.ProtoReflect()))
	if err != nil {
		return []byte(fmt.Sprintf("%q", err.Error()))
	}
	return data
}

func object(m protoreflect.Message) any {
	if m.Descriptor().Name() == "RawExtension" || m.Descriptor().Name() == "JSON" {
		raw := m.Get(m.Descriptor().Fields().ByName("raw")).Bytes()
		if !json.Valid(raw) {
			return "not JSON: " + string(raw)
		}
		return json.RawMessage(raw)
	}
	out := map[string]any{}
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		switch {
		case fd.IsMap():
			entries := map[string]any{}
			v.Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
				entries[k.String()] = value(fd.MapValue(), v)
				return true
			})
			out[fd.JSONName()] = entries
		case fd.IsList():
			list := []any{}
			for i := range v.List().Len() {
				list = append(list, value(fd, v.List().Get(i)))
			}
			out[fd.JSONName()] = list
		default:
			out[fd.JSONName()] = value(fd, v)
		}
		return true
	})
	return out
}

func value(fd protoreflect.FieldDescriptor, v protoreflect.Value) any {
	switch fd.Kind() {
	case protoreflect.MessageKind:
		return object(v.Message())
	case protoreflect.EnumKind:
		if name, ok := enumNames[fd.Enum().FullName()][v.Enum()]; ok {
			return name
		}
		return fmt.Sprint(v.Enum())
	}
	return v.Interface() // encoding/json writes bytes in base64
}

// parse reads any JSON, numbers as they are written.
func parse(data []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	return v, nil
}
