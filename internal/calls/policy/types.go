// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"google.golang.org/protobuf/reflect/protoreflect"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1beta1 "sigs.k8s.io/cluster-api/api/core/v1beta1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
)

// Types are the types of the requests of hooks as JSON shows them: what their protobuf says, and in it Cluster API's
// objects in all their versions. Other objects, labels, settings and variables may have any member. Types are safe for
// concurrent use.
type Types struct {
	base  *cel.Env
	types *provider
	hubs  []*catalog.Hook
	// requests are made when they are first asked for.
	requests map[hook.GroupHook]func() (*cel.Env, error)
	items    map[hook.GroupHook]*types.Type // of the hooks whose requests have items
}

// NewTypes returns the types of the requests of all hooks.
func NewTypes(hooks *catalog.Catalog) (*Types, error) {
	registry, err := types.NewRegistry()
	if err != nil {
		return nil, fmt.Errorf("set up types: %w", err)
	}
	p := &provider{Provider: registry, objects: map[string]map[string]*types.Type{}}
	t := &Types{types: p, requests: map[hook.GroupHook]func() (*cel.Env, error){}, items: map[hook.GroupHook]*types.Type{}}
	if t.base, err = cel.NewEnv(append(options(), cel.CustomTypeProvider(p))...); err != nil {
		return nil, fmt.Errorf("set up CEL: %w", err)
	}
	for _, h := range hooks.Hubs() {
		if h.Singleton() {
			continue // a discovery is about no object that a policy could select
		}
		request := p.request(h.Request.Descriptor())
		if items := h.Request.Descriptor().Fields().ByName("items"); items != nil {
			t.items[h.GroupHook()] = p.single(items)
		}
		t.hubs = append(t.hubs, h)
		t.requests[h.GroupHook()] = sync.OnceValues(func() (*cel.Env, error) {
			return t.base.Extend(cel.Variable(variable, request))
		})
	}
	return t, nil
}

// variable returns the type of a variable of a rule.
func (t *Types) variable(h hook.GroupHook, name string) *types.Type {
	if item, ok := t.items[h]; ok && name == ItemVariable {
		return item
	}
	if name == NowVariable {
		return types.TimestampType
	}
	return types.DynType
}

// Check returns the mistakes in conditions for requests of a hook. Hooks that are not in the catalog have none.
func (t *Types) Check(c *Conditions, h hook.GroupHook) []*CompileError {
	var errs []*CompileError
	for i := range c.all() {
		if m := c.conditions[i].check(t, h); m != nil {
			errs = append(errs, &CompileError{Index: i, Message: fmt.Sprintf("in a request of %s: %s", h.Hook, m)})
		}
	}
	return errs
}

// CheckAny returns the mistakes in conditions that suit the requests of no hook at all: for each of them, the mistake
// for the hook that it suits for longest.
func (t *Types) CheckAny(c *Conditions) []*CompileError {
	var errs []*CompileError
	for i := range c.all() {
		var last *diagnostics
		var of *catalog.Hook
		for _, h := range t.hubs {
			m := c.conditions[i].check(t, h.GroupHook())
			if m == nil {
				last = nil
				break
			}
			if last == nil || m.after(last) {
				last, of = m, h
			}
		}
		if last != nil {
			errs = append(errs, &CompileError{
				Index: i, Message: fmt.Sprintf("does not suit the requests of any hook; in a request of %s: "+
					"%s", of.Hook, last),
			})
		}
	}
	return errs
}

// checked is a hook whose request a condition was checked against.
type checked struct {
	types *Types
	hook  hook.GroupHook
}

// check returns the mistakes in a condition for requests of a hook, which it keeps: verdicts on policies are made
// often.
func (c *condition) check(t *Types, h hook.GroupHook) *diagnostics {
	if known, ok := c.checked.Load(checked{t, h}); ok {
		return known.(*diagnostics) //nolint:forcetypeassert // see below
	}
	var m *diagnostics
	if request, ok := t.requests[h]; ok {
		if env, err := request(); err == nil { // it fails for no hook that a catalog takes
			_, m = compileAs(env, c.Expression, Bool)
		}
	}
	c.checked.Store(checked{t, h}, m)
	return m
}

// provider provides the types of objects.
type provider struct {
	types.Provider
	objects map[string]map[string]*types.Type // by name, the types of their members
}

// FindStructType returns the type of an object.
func (p *provider) FindStructType(name string) (*types.Type, bool) {
	if _, ok := p.objects[name]; ok {
		return types.NewTypeTypeWithParam(types.NewObjectType(name)), true
	}
	return p.Provider.FindStructType(name)
}

// FindStructFieldType returns the type of a member.
func (p *provider) FindStructFieldType(object, member string) (*types.FieldType, bool) {
	if members, ok := p.objects[object]; ok {
		t, ok := members[member]
		return &types.FieldType{Type: t}, ok
	}
	return p.Provider.FindStructFieldType(object, member)
}

// request returns the type of the requests of a hook.
func (p *provider) request(d protoreflect.MessageDescriptor) *types.Type {
	t := p.message(d)
	p.objects[string(d.FullName())]["kind"] = types.StringType
	p.objects[string(d.FullName())]["apiVersion"] = types.StringType
	return t
}

// message returns the type of a message. RawExtension and JSON are what they hold.
func (p *provider) message(d protoreflect.MessageDescriptor) *types.Type {
	name := string(d.FullName())
	if d.Fields().ByName("unknown_members") == nil {
		return types.DynType
	}
	if _, ok := p.objects[name]; !ok {
		members := map[string]*types.Type{}
		p.objects[name] = members
		for i := range d.Fields().Len() {
			if f := d.Fields().Get(i); catalog.InJSON(f) {
				members[f.JSONName()] = p.field(f)
			}
		}
	}
	return types.NewObjectType(name)
}

func (p *provider) field(f protoreflect.FieldDescriptor) *types.Type {
	switch {
	case f.IsMap():
		return types.NewMapType(types.StringType, p.single(f.MapValue()))
	case f.IsList():
		return types.NewListType(p.single(f))
	}
	return p.single(f)
}

func (p *provider) single(f protoreflect.FieldDescriptor) *types.Type {
	switch f.Kind() {
	case protoreflect.MessageKind:
		if versions, ok := objects[f.JSONName()]; ok && f.Message().Name() == "RawExtension" &&
			strings.HasPrefix(string(f.FullName()), "hookgate.") {
			return p.object(versions[0].Name(), versions...)
		}
		return p.message(f.Message())
	case protoreflect.StringKind, protoreflect.BytesKind, protoreflect.EnumKind:
		return types.StringType
	case protoreflect.BoolKind:
		return types.BoolType
	case protoreflect.FloatKind, protoreflect.DoubleKind:
		return types.DynType // JSON may have whole numbers
	}
	return types.IntType
}

// objects are the Cluster API objects in requests by the names of their members, in all versions: a caller may send any
// of them.
var objects = map[string][]reflect.Type{
	"cluster":     {reflect.TypeFor[clusterv1.Cluster](), reflect.TypeFor[clusterv1beta1.Cluster]()},
	"machine":     {reflect.TypeFor[clusterv1.Machine](), reflect.TypeFor[clusterv1beta1.Machine]()},
	"machineSet":  {reflect.TypeFor[clusterv1.MachineSet](), reflect.TypeFor[clusterv1beta1.MachineSet]()},
	"machinePool": {reflect.TypeFor[clusterv1.MachinePool](), reflect.TypeFor[clusterv1beta1.MachinePool]()},
}

// newer are the objects that have a version in Cluster API v1.15, where workers may be pinned to one: rules read it
// before the types here have it.
var newer = map[string]bool{
	"Cluster.spec.topology.workers.machineDeployments": true, "Cluster.spec.topology.workers.machinePools": true,
}

// texts are types that are strings in JSON.
var texts = map[reflect.Type]bool{
	reflect.TypeFor[metav1.Time]():      true,
	reflect.TypeFor[metav1.MicroTime](): true,
	reflect.TypeFor[metav1.Duration]():  true,
}

// object returns the type of what has one of several types of Go; dyn if they are different in JSON. Objects have the
// members of all of them.
func (p *provider) object(path string, versions ...reflect.Type) *types.Type {
	versions = slices.Clone(versions)
	var kind reflect.Kind
	for i, v := range versions {
		for v.Kind() == reflect.Pointer {
			v = v.Elem()
		}
		switch {
		case texts[v], v == reflect.TypeFor[[]byte]():
			v = reflect.TypeFor[string]()
		case reflect.PointerTo(v).Implements(reflect.TypeFor[json.Marshaler]()):
			return types.DynType
		}
		if i > 0 && v.Kind() != kind {
			return types.DynType
		}
		versions[i], kind = v, v.Kind()
	}
	elements := func() *types.Type {
		of := make([]reflect.Type, len(versions))
		for i, v := range versions {
			of[i] = v.Elem()
		}
		return p.object(path, of...)
	}
	switch kind {
	case reflect.Struct:
		if _, ok := p.objects[path]; !ok {
			p.objects[path] = map[string]*types.Type{}
			members := map[string][]reflect.Type{}
			for _, v := range versions {
				membersOf(v, members)
			}
			for name, of := range members {
				p.objects[path][name] = p.object(path+"."+name, of...)
			}
			if newer[path] {
				p.objects[path]["version"] = types.StringType
			}
		}
		return types.NewObjectType(path)
	case reflect.Map:
		return types.NewMapType(types.StringType, elements())
	case reflect.Slice:
		return types.NewListType(elements())
	case reflect.String:
		return types.StringType
	case reflect.Bool:
		return types.BoolType
	case reflect.Int, reflect.Int32, reflect.Int64:
		return types.IntType
	}
	return types.DynType
}

// membersOf adds the types of the members of a struct, as encoding/json names them.
func membersOf(v reflect.Type, members map[string][]reflect.Type) {
	for f := range v.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case name == "" && f.Anonymous:
			membersOf(f.Type, members)
		default:
			members[name] = append(members[name], f.Type)
		}
	}
}
