// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"encoding/json"
	"errors"
	"reflect"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// Variable returns a variable of an item: its own, or else that of the request. The path is a name, or a place in the
// value as Cluster API's inline patches have it: "proxy.noProxy[0]", "builtin.controlPlane.version". Of builtin, the
// item has some members and the request others; Variable sees all of them.
//
// If there is no such variable, Variable returns the default, or without one an error. One of another type than T is an
// error in any case. The errors are Failures.
func Variable[T any](item *Item, path string, byDefault ...T) (T, error) {
	var out, none T
	value, ok, err := item.variable(path)
	switch {
	case err != nil:
		return none, err
	case !ok && len(byDefault) > 0:
		return byDefault[0], nil
	case !ok:
		return none, Failf("variable %q is not set", path)
	}
	t := reflect.TypeFor[T]()
	text, err := json.Marshal(value)
	if value == nil && t.Kind() != reflect.Pointer && t.Kind() != reflect.Interface {
		err = errNull
	}
	if err == nil {
		err = decode(text, &out)
	}
	if err != nil {
		return none, Failf("variable %q is not %s", path, nameOf(t.Kind()))
	}
	return out, nil
}

var errNull = errors.New("null")

// nameOf returns what JSON calls a value of a kind.
func nameOf(k reflect.Kind) string {
	switch k {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "a boolean"
	case reflect.Float32, reflect.Float64:
		return "a number"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Map, reflect.Struct:
		return "an object of the wanted form"
	}
	if k >= reflect.Int && k <= reflect.Uint64 {
		return "an integer"
	}
	return "of the wanted form"
}

// builtin is the variable that Cluster API sets itself.
const builtin = "builtin"

// variable returns the value at a path, and whether there is one.
func (item *Item) variable(path string) (value any, ok bool, err error) {
	at, err := steps(path)
	if err != nil {
		return nil, false, err
	}
	name, _ := at[0].(string)
	// The variables of the item come last, because they win.
	for _, m := range []protoreflect.Message{item.patches.request, item.message} {
		raw, found := rawVariable(m, name)
		if !found {
			continue
		}
		var v any
		if err := decode(raw, &v); err != nil {
			return nil, false, invalidf("variable %q: %v", name, err)
		}
		if ok && name == builtin {
			v = merged(value, v)
		}
		value, ok = v, true
	}
	for i, step := range at[1:] {
		switch step := step.(type) {
		case string:
			object, _ := value.(map[string]any)
			value, ok = object[step]
		case int:
			list, isList := value.([]any)
			if ok && !isList {
				return nil, false, Failf("variable %q is not a list", pathTo(at[:i+1]))
			}
			if ok = step < len(list); ok {
				value = list[step]
			}
		}
		if !ok {
			return nil, false, nil
		}
	}
	return value, ok, nil
}

// rawVariable returns the value of a variable in a message that has some.
func rawVariable(m protoreflect.Message, name string) (raw []byte, found bool) {
	f := m.Descriptor().Fields().ByName("variables")
	if f == nil || !f.IsList() || f.Message() == nil {
		return nil, false
	}
	for i := range m.Get(f).List().Len() {
		v := m.Get(f).List().Get(i).Message()
		if v.Get(v.Descriptor().Fields().ByName("name")).String() == name {
			value := v.Get(v.Descriptor().Fields().ByName("value")).Message()
			raw, found = value.Get(value.Descriptor().Fields().ByName("raw")).Bytes(), true
		}
	}
	return raw, found
}

// merged returns a with the members of b, which win. Objects are merged, too.
func merged(a, b any) any {
	x, okX := a.(map[string]any)
	y, okY := b.(map[string]any)
	if !okX || !okY {
		return b
	}
	for name, value := range y {
		x[name] = merged(x[name], value)
	}
	return x
}
