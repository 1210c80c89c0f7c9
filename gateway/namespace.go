// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"slices"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/hookgate/hookgate/codec"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/registry"
)

// Namespaces tells the labels of a namespace, the standard label kubernetes.io/metadata.name among them, also of one
// that it does not know. Implementations are safe for concurrent use and do not block: calls wait for them. Callers do not
// change the map.
type Namespaces interface {
	NamespaceLabels(name string) map[string]string
}

// scope is what a request is selected by: the namespaces of the objects that it is for. They are read when a selector asks
// for the first time, because most have nothing to ask. It belongs to one goroutine.
type scope struct {
	request    proto.Message
	source     Namespaces
	read       bool
	namespaces []string
}

// matches tells whether the namespaceSelector of the handler's ExtensionConfig matches every namespace of the request. A
// request that names no object, as those of DiscoverVariables, is matched by every selector: there is nothing to select by.
func (s *scope) matches(e *registry.Entry) bool {
	selector := e.Registration.NamespaceSelector
	if selector == nil || selector.Empty() {
		return true
	}
	if !s.read {
		s.namespaces, s.read = namespacesOf(s.request), true
	}
	for _, n := range s.namespaces {
		if !selector.Matches(labels.Set(s.source.NamespaceLabels(n))) {
			return false
		}
	}
	return true
}

// namespacesOf returns the namespaces of the objects that the request is for, in order, each once.
func namespacesOf(req proto.Message) []string {
	var namespaces []string
	add := func(n string) {
		if !slices.Contains(namespaces, n) {
			namespaces = append(namespaces, n)
		}
	}
	switch r := req.(type) {
	case interface {
		GetCluster() *hooksv1alpha1.RawExtension
	}:
		add(namespaceOf(r.GetCluster()))
	case *hooksv1alpha1.GeneratePatchesRequest:
		for _, item := range r.GetItems() {
			add(item.GetHolderReference().GetNamespace())
		}
	case *hooksv1alpha1.ValidateTopologyRequest:
		for _, item := range r.GetItems() {
			add(item.GetHolderReference().GetNamespace())
		}
	case *hooksv1alpha1.CanUpdateMachineRequest:
		add(namespaceOf(r.GetCurrent().GetMachine()))
	case *hooksv1alpha1.CanUpdateMachineSetRequest:
		add(namespaceOf(r.GetCurrent().GetMachineSet()))
	case *hooksv1alpha1.UpdateMachineRequest:
		add(namespaceOf(r.GetDesired().GetMachine()))
	}
	return namespaces
}

// namespaceOf reads metadata.namespace of an object.
func namespaceOf(object *hooksv1alpha1.RawExtension) string {
	value, ok := codec.Lookup(object.GetRaw(), "metadata", "namespace")
	if !ok {
		return ""
	}
	namespace, _ := codec.String(value)
	return namespace
}

// checkObjects refuses a request without the object that its hook is about.
func checkObjects(req proto.Message) error {
	switch r := req.(type) {
	case interface {
		GetCluster() *hooksv1alpha1.RawExtension
	}:
		return checkObject("cluster", r.GetCluster())
	case *hooksv1alpha1.CanUpdateMachineRequest:
		return checkObject("current.machine", r.GetCurrent().GetMachine())
	case *hooksv1alpha1.CanUpdateMachineSetRequest:
		return checkObject("current.machineSet", r.GetCurrent().GetMachineSet())
	case *hooksv1alpha1.UpdateMachineRequest:
		return checkObject("desired.machine", r.GetDesired().GetMachine())
	}
	return nil
}

func checkObject(member string, object *hooksv1alpha1.RawExtension) error {
	raw := bytes.TrimLeft(object.GetRaw(), " \t\r\n")
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return hook.Errorf(hook.InvalidRequest, "%s: required", member)
	}
	if raw[0] != '{' {
		return hook.Errorf(hook.InvalidRequest, "%s: want a Kubernetes object", member)
	}
	return nil
}
