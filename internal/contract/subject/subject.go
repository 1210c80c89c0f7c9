// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package subject reads what a request is about: the objects, their namespaces and labels, and the Cluster.
package subject

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strings"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	infrastructurev1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/infrastructure/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/contract/jsonscan"
)

// aboutCluster is a request about a Cluster.
type aboutCluster interface {
	GetCluster() *hooksv1alpha1.RawExtension
}

// aboutMachine is a request of the hooks that accompany a Machine. It has the Cluster of the Machine, too.
type aboutMachine interface {
	GetMachine() *hooksv1alpha1.RawExtension
}

// aboutSubject is a request about infrastructure.
type aboutSubject interface {
	GetSubject() *infrastructurev1alpha1.Subject
}

// Check returns an error if a request lacks the object that its hook is about.
func Check(req proto.Message) error {
	if r, ok := req.(aboutSubject); ok {
		if r.GetSubject().GetExternalId() == "" {
			return hook.Errorf(hook.InvalidRequest, "subject.externalId: required")
		}
		return nil
	}
	member, object := objectOf(req)
	if member == "" {
		return nil
	}
	raw := bytes.TrimLeft(object.GetRaw(), " \t\r\n")
	if len(raw) == 0 || bytes.Equal(raw, []byte("null")) {
		return hook.Errorf(hook.InvalidRequest, "%s: required", member)
	}
	if raw[0] != '{' {
		return hook.Errorf(hook.InvalidRequest, "%s: want a Kubernetes object", member)
	}
	return nil
}

// Namespaces returns the namespaces of the objects that a request is about, in order, each once. If req is an
// partial, skipped has those of its missing items. An error means that it is not certain which namespace is meant.
func Namespaces(req proto.Message, skipped []string) (namespaces []string, err error) {
	known := map[string]struct{}{} // there may be as many as items
	add := func(n string) {
		if _, ok := known[n]; !ok {
			known[n] = struct{}{}
			namespaces = append(namespaces, n)
		}
	}
	if r, ok := req.(aboutSubject); ok {
		add(r.GetSubject().GetNamespace())
	} else if member, object := objectOf(req); member != "" {
		value, ambiguous := jsonscan.Lookup(object.GetRaw(), "metadata", "namespace")
		if ambiguous != nil {
			err = hook.Errorf(hook.InvalidRequest, "%s.%s", member, ambiguous)
		}
		n, _ := jsonscan.String(value)
		add(n)
	}
	n, item := Items(req)
	for i := range n {
		add(item(i).GetHolderReference().GetNamespace())
	}
	return append(namespaces, skipped...), err
}

// Item is a template of a request, and the object that uses it.
type Item interface {
	GetHolderReference() *hooksv1alpha1.HolderReference
	GetObject() *hooksv1alpha1.RawExtension
}

// Items returns the number of items of a request, which may be of different namespaces, and what returns one of them.
func Items(req proto.Message) (n int, item func(i int) Item) {
	switch r := req.(type) {
	case *hooksv1alpha1.GeneratePatchesRequest:
		return len(r.GetItems()), func(i int) Item { return r.GetItems()[i] }
	case *hooksv1alpha1.ValidateTopologyRequest:
		return len(r.GetItems()), func(i int) Item { return r.GetItems()[i] }
	}
	return 0, nil
}

// Cluster returns the Cluster that a request is about, or an empty name.
func Cluster(req proto.Message) (namespace, name string) {
	at := func(object interface{ GetRaw() []byte }, path ...string) string {
		value, _ := jsonscan.Lookup(object.GetRaw(), path...)
		s, _ := jsonscan.String(value)
		return s
	}
	switch r := req.(type) {
	case aboutSubject:
		s := r.GetSubject()
		return s.GetNamespace(), cmp.Or(at(s.GetCluster(), "metadata", "name"), s.GetClusterName())
	case aboutTopology:
		builtin := variable(r, Builtin)
		return at(builtin, "cluster", "namespace"), at(builtin, "cluster", "name")
	}
	switch member, object := objectOf(req); member {
	case "":
		return "", ""
	case "cluster":
		return at(object, "metadata", "namespace"), at(object, "metadata", "name")
	default:
		return at(object, "metadata", "namespace"), at(object, "spec", "clusterName")
	}
}

// Object returns the object that a request is about: the Machine or MachineSet of hooks about one, or else the Cluster.
// The kind depends on the hook alone, and is empty if the hook is about no object of Cluster API.
func Object(req proto.Message) (kind, namespace, name string) {
	member, object := objectOf(req)
	_, ofTopology := req.(aboutTopology)
	switch {
	case member == "cluster", ofTopology:
		kind = "Cluster"
	case strings.HasSuffix(member, "machineSet"):
		kind = "MachineSet"
	case member != "":
		kind = "Machine"
	default:
		return "", "", ""
	}
	if namespace, name = Cluster(req); kind != "Cluster" {
		value, _ := jsonscan.Lookup(object.GetRaw(), "metadata", "name")
		name, _ = jsonscan.String(value)
	}
	return kind, namespace, name
}

// OfMachine reports whether a request is about a Machine or a MachineSet.
func OfMachine(req proto.Message) bool {
	_, object := machine(req)
	return object != nil
}

// objectOf returns the Machine, MachineSet or Cluster that a request has as an object, and the member that it is, or
// nil for other requests.
func objectOf(req proto.Message) (member string, object *hooksv1alpha1.RawExtension) {
	if member, object = machine(req); member != "" {
		return member, object
	}
	if r, ok := req.(aboutCluster); ok {
		return "cluster", r.GetCluster()
	}
	return "", nil
}

// machine returns the Machine or MachineSet that a request is about, and the member that it is, or nil for other
// requests.
func machine(req proto.Message) (member string, object *hooksv1alpha1.RawExtension) {
	switch r := req.(type) {
	case *hooksv1alpha1.CanUpdateMachineRequest:
		return "current.machine", r.GetCurrent().GetMachine()
	case *hooksv1alpha1.CanUpdateMachineSetRequest:
		return "current.machineSet", r.GetCurrent().GetMachineSet()
	case *hooksv1alpha1.UpdateMachineRequest:
		return "desired.machine", r.GetDesired().GetMachine()
	case aboutMachine:
		return "machine", r.GetMachine()
	}
	return "", nil
}

// MachineCluster returns the Cluster of the Machine or MachineSet that a request is about. An error means that it names
// none, or that it is not certain which.
func MachineCluster(req proto.Message) (namespace, name string, err error) {
	member, object := machine(req)
	at := func(path ...string) string {
		value, ambiguous := jsonscan.Lookup(object.GetRaw(), path...)
		if ambiguous != nil && err == nil {
			err = hook.Errorf(hook.InvalidRequest, "%s.%s", member, ambiguous)
		}
		text, _ := jsonscan.String(value)
		return text
	}
	namespace, name = at("metadata", "namespace"), at("spec", "clusterName")
	if err != nil {
		return "", "", err
	}
	if name == "" {
		return "", "", hook.Errorf(hook.InvalidRequest, "%s.spec.clusterName: required", member)
	}
	return namespace, name, nil
}

// Owner returns the KubeadmControlPlane or MachineDeployment whose Machines a request to update them in place is about,
// or an empty name. Cluster API removes owner references from the objects of requests, and leaves the labels.
func Owner(req proto.Message) (apiVersion, kind, namespace, name string) {
	var label string
	switch req.(type) {
	case *hooksv1alpha1.CanUpdateMachineRequest:
		apiVersion, kind = "controlplane.cluster.x-k8s.io/v1beta2", "KubeadmControlPlane"
		label = clusterv1.MachineControlPlaneNameLabel
	case *hooksv1alpha1.CanUpdateMachineSetRequest:
		apiVersion, kind, label = clusterv1.GroupVersion.String(), "MachineDeployment", clusterv1.MachineDeploymentNameLabel
	default:
		return "", "", "", ""
	}
	member, object := machine(req)
	set, err := labelsIn(member, object)
	if err != nil {
		return "", "", "", ""
	}
	namespace, _ = Cluster(req)
	return apiVersion, kind, namespace, set[label]
}

// aboutTopology is a request about the topology of a Cluster, which is in its variables.
type aboutTopology interface {
	GetVariables() []*hooksv1alpha1.Variable
}

// variable returns the value of a variable of a request, or nil.
func variable(r aboutTopology, name string) *hooksv1alpha1.JSON {
	for _, v := range r.GetVariables() {
		if v.GetName() == name {
			return v.GetValue()
		}
	}
	return nil
}

// Builtin is the variable in which Cluster API passes its data about a Cluster.
const Builtin = "builtin"

// Labels returns the labels of the object that a request concerns, or nil. GeneratePatches and ValidateTopology
// concern a Cluster, whose labels are in the variable builtin; the labels of templates mean little.
func Labels(req proto.Message) (labels.Set, error) {
	switch r := req.(type) {
	case aboutSubject:
		return labelsOfSubject(r.GetSubject())
	case aboutTopology:
		return labelsAt(variable(r, Builtin).GetRaw(), "variable builtin: ", "cluster", "metadata", "labels")
	}
	if member, object := objectOf(req); member != "" {
		return labelsIn(member, object)
	}
	return nil, nil
}

// labelsOfSubject returns the labels of the Machine or MachinePool of a subject, or else of its Cluster. It returns nil
// if none of them exists any more.
func labelsOfSubject(s *infrastructurev1alpha1.Subject) (labels.Set, error) {
	switch {
	case s.GetMachine() != nil:
		return labelsIn("subject.machine", s.GetMachine())
	case s.GetMachinePool() != nil:
		return labelsIn("subject.machinePool", s.GetMachinePool())
	case s.GetCluster() != nil:
		return labelsIn("subject.cluster", s.GetCluster())
	}
	return nil, nil
}

// labelsIn returns the labels of an object, which is the given member of a request.
func labelsIn(member string, object *hooksv1alpha1.RawExtension) (labels.Set, error) {
	return labelsAt(object.GetRaw(), member+".", "metadata", "labels")
}

// labelsAt returns the labels at a path of an object, an empty set if there are none. prefix is the object's in errors.
func labelsAt(raw []byte, prefix string, path ...string) (labels.Set, error) {
	value, err := jsonscan.Lookup(raw, path...)
	if err != nil {
		return nil, hook.Errorf(hook.InvalidRequest, "%s%s", prefix, err)
	}
	set := labels.Set{}
	if value == nil {
		return set, nil
	}
	if err := json.Unmarshal(value, &set); err != nil {
		return nil, hook.Errorf(hook.InvalidRequest, "%s%s: want an object whose values are strings",
			prefix, strings.Join(path, ".")).WithCause(err)
	}
	if set == nil { // null
		set = labels.Set{}
	}
	return set, nil
}
