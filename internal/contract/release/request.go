// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"errors"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/contract/jsonpatch"
)

// Reduced is a request as a release could have sent it, with the state needed to carry over the answer.
type Reduced struct {
	// Message is the reduced request, or the original message if there was nothing to take out.
	Message proto.Message
	// Lost are the paths of the members of Cluster API's objects that were taken out, sorted and without duplicates. The
	// labels and annotations that Cluster API adds to templates are not among them.
	Lost []string

	release string
	guard   jsonpatch.Guard
	items   map[string]*item // what was reduced, by uid: of the first item with it, as Cluster API finds it
}

// item is an object of a request.
type item struct {
	whole, seen []byte // as it was sent, and as the handler got it
	holder      *hooksv1alpha1.HolderReference
}

// Concerns reports whether requests of a hook have had something added since a release. None is added since "".
func Concerns(release, hookName string) bool {
	return release != "" && len(catalog.Gained(hookName, release)) > 0
}

// Request takes out of a request of a hook what releases after the given one have added. It does not change req.
//
// Its errors are of kind InvalidRequest if an object is not JSON, TooLarge if it has more than limits.ObjectElements
// elements, or one of the Guard.
func Request(g jsonpatch.Guard, release, hookName string, req proto.Message) (Reduced, error) {
	r := Reduced{Message: req, release: release, guard: g}
	if release == "" {
		return r, nil
	}
	var lost []string
	for _, c := range catalog.Gained(hookName, release) {
		for _, path := range c.Members {
			removed, err := r.member(path)
			if err != nil {
				return Reduced{}, err
			}
			if removed && strings.Contains(path, ".") {
				lost = append(lost, path)
			}
		}
		if c.Templates != catalog.NoTemplates {
			if err := r.templates(c.Templates); err != nil {
				return Reduced{}, err
			}
		}
	}
	slices.Sort(lost)
	r.Lost = slices.Compact(lost)
	return r, nil
}

// own makes Message a copy whose fields may be set, and returns it.
func (r *Reduced) own(of protoreflect.Message) protoreflect.Message {
	c := catalog.Shallow(of)
	if unknown := of.GetUnknown(); len(unknown) > 0 {
		c.SetUnknown(unknown)
	}
	r.Message = c.Interface()
	return c
}

// member takes a member out of the message, or out of an object in it. It reports whether it was there.
func (r *Reduced) member(path string) (bool, error) {
	m := r.Message.ProtoReflect()
	first, rest, nested := strings.Cut(path, ".")
	field := m.Descriptor().Fields().ByJSONName(first)
	switch {
	case field == nil || !m.Has(field):
		return false, nil
	case !nested:
		r.own(m).Clear(field)
		return true, nil
	}
	object, ok := m.Get(field).Message().Interface().(*hooksv1alpha1.RawExtension)
	if !ok || !named(object.GetRaw(), rest) {
		return false, nil
	}
	meter := jsonpatch.Meter{Guard: r.guard}
	v, err := meter.Parse(object.GetRaw())
	if err != nil {
		return false, malformed(err, first)
	}
	if !remove(v, strings.Split(rest, ".")) {
		return false, nil
	}
	r.own(m).Set(field, protoreflect.ValueOfMessage((&hooksv1alpha1.RawExtension{
		Raw: jsonpatch.Append(nil, v),
	}).ProtoReflect()))
	return true, meter.Flush()
}

// named reports whether the text of an object may have the last member of a path: most Clusters have none, and need not
// be read.
func named(text []byte, path string) bool {
	name := path[strings.LastIndexByte(path, '.')+1:]
	return strings.Contains(string(text), `"`+name+`"`) || strings.Contains(string(text), `\u`)
}

// remove removes the member at a path. It reports whether the member was there.
func remove(v any, path []string) bool {
	name, every := strings.CutSuffix(path[0], "[*]")
	o, _ := v.(map[string]any)
	within, ok := o[name]
	switch list, isList := within.([]any); {
	case !ok:
		return false
	case every:
		removed := false
		for _, element := range list {
			removed = isList && remove(element, path[1:]) || removed
		}
		return removed
	case len(path) == 1:
		delete(o, name)
		return true
	}
	if !remove(within, path[1:]) {
		return false
	}
	// Releases that lack what is in it lack the object, too. Others are sent empty.
	if inner, ok := within.(map[string]any); ok && len(inner) == 0 && name == "rollout" {
		delete(o, name)
	}
	return true
}

// templates takes the labels and annotations of Cluster API out of those templates of the request that t has.
func (r *Reduced) templates(t catalog.Templates) error {
	switch req := r.Message.(type) {
	case *hooksv1alpha1.GeneratePatchesRequest:
		items := slices.Clone(req.GetItems())
		first := make(map[string]int, len(items))
		for i, of := range slices.Backward(items) {
			first[of.GetUid()] = i
		}
		for i, of := range items {
			seen, err := r.template(t, of.GetObject().GetRaw(), of.GetHolderReference())
			if err != nil {
				return err
			}
			if seen == nil {
				continue
			}
			if r.items == nil {
				r.items = map[string]*item{}
			}
			if first[of.GetUid()] == i {
				r.items[of.GetUid()] = &item{whole: of.GetObject().GetRaw(), seen: seen, holder: of.GetHolderReference()}
			}
			items[i] = &hooksv1alpha1.GeneratePatchesRequestItem{
				Uid: of.GetUid(), HolderReference: of.GetHolderReference(), Object: &hooksv1alpha1.RawExtension{Raw: seen},
				Variables: of.GetVariables(), UnknownMembers: of.GetUnknownMembers(),
			}
		}
		if !slices.Equal(items, req.GetItems()) {
			next, _ := r.own(req.ProtoReflect()).Interface().(*hooksv1alpha1.GeneratePatchesRequest)
			next.Items = items
		}
	case *hooksv1alpha1.ValidateTopologyRequest:
		items := slices.Clone(req.GetItems())
		for i, of := range items {
			seen, err := r.template(t, of.GetObject().GetRaw(), of.GetHolderReference())
			if err != nil {
				return err
			}
			if seen != nil {
				items[i] = &hooksv1alpha1.ValidateTopologyRequestItem{
					HolderReference: of.GetHolderReference(), Object: &hooksv1alpha1.RawExtension{Raw: seen},
					Variables: of.GetVariables(), UnknownMembers: of.GetUnknownMembers(),
				}
			}
		}
		if !slices.Equal(items, req.GetItems()) {
			next, _ := r.own(req.ProtoReflect()).Interface().(*hooksv1alpha1.ValidateTopologyRequest)
			next.Items = items
		}
	}
	return nil
}

// template returns a template without the labels and annotations of Cluster API, or nil if it has none of them, or is
// none of t.
func (r *Reduced) template(
	t catalog.Templates, whole []byte, holder *hooksv1alpha1.HolderReference,
) ([]byte, error) {
	ofOne := isOfOne(holder)
	if ofOne != (t == catalog.TemplatesOfOne) || len(whole) == 0 {
		return nil, nil
	}
	path := []string{"metadata"}
	if ofOne {
		path = []string{"spec", "template", "metadata"}
	}
	m := jsonpatch.Meter{Guard: r.guard}
	if err := m.Text(len(whole)); err != nil {
		return nil, err
	}
	v, err := m.OpenTo(whole, path...)
	if err != nil {
		return nil, malformed(err, "an object of the request")
	}
	above, metadata := at(v, path)
	if metadata == nil {
		return nil, nil
	}
	all := ofOne && holder.GetFieldPath() == controlPlaneRef && !isKubeadm(v)
	changed := false
	for _, of := range []struct {
		name string
		keys []string
	}{{"labels", catalog.TopologyLabels}, {"annotations", catalog.TopologyAnnotations}} {
		opened, err := m.Open(metadata[of.name], len(path)+1)
		if err != nil {
			return nil, malformed(err, "an object of the request")
		}
		entries, ok := opened.(map[string]any)
		if !ok {
			continue
		}
		metadata[of.name] = entries
		before := len(entries)
		for _, key := range of.keys {
			delete(entries, key)
		}
		if all {
			clear(entries)
		}
		if len(entries) < before {
			changed = true
			if len(entries) == 0 {
				delete(metadata, of.name)
			}
		}
	}
	if !changed {
		return nil, nil
	}
	if ofOne && len(metadata) == 0 {
		delete(above, "metadata")
	}
	return jsonpatch.Append(nil, v), m.Flush()
}

// controlPlaneRef is where a Cluster names its control plane.
const controlPlaneRef = "spec.controlPlaneRef"

// isOfOne reports whether a template is one of which Cluster API makes one object.
func isOfOne(h *hooksv1alpha1.HolderReference) bool {
	group, _, _ := strings.Cut(h.GetApiVersion(), "/")
	return group == "cluster.x-k8s.io" && (h.GetKind() == "Cluster" || h.GetKind() == "MachinePool")
}

// isKubeadm reports whether a template is of Cluster API's own control plane, whose types have spec.template.metadata
// in all releases. In others, the labels and annotations of the topology cannot be told from those of the template, and
// all are taken out.
func isKubeadm(v any) bool {
	o, _ := v.(map[string]any)
	kind, _ := o["kind"].(jsonpatch.Raw)
	return string(kind) == `"KubeadmControlPlaneTemplate"`
}

// at returns the object at a path, and the one around it, or nil.
func at(v any, path []string) (above, object map[string]any) {
	object, _ = v.(map[string]any)
	for _, name := range path {
		above = object
		object, _ = object[name].(map[string]any)
	}
	return above, object
}

// malformed returns the error of an object that cannot be read.
func malformed(err error, what string) error {
	if e, ok := errors.AsType[*hook.Error](err); ok {
		return e
	}
	return hook.Errorf(hook.InvalidRequest, "%s cannot be read as JSON", what).WithCause(err)
}
