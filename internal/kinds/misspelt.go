// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"errors"
	"fmt"
	"reflect"
	"strings"

	"sigs.k8s.io/json"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
)

// FieldError returns a strict error of sigs.k8s.io/json about what was decoded into an object. If the error is that the
// type of the object does not know a field, it says which field was probably meant.
func FieldError(err error, into any) error {
	at, ok := errors.AsType[json.FieldError](err)
	if !ok {
		return err
	}
	of, rest, within := reflect.TypeOf(into), at.FieldPath(), true
	for within {
		for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		var step string
		step, rest, within = strings.Cut(rest, ".")
		switch of.Kind() {
		case reflect.Map:
			of = of.Elem() // step is a key, or, if the key has a dot, a part of it: what follows is then not found
			continue
		case reflect.Struct:
		default:
			return err
		}
		name, _, _ := strings.Cut(step, "[")
		known := map[string]reflect.Type{}
		names := fieldsOf(of, known)
		if next, ok := known[name]; ok { // if it is the last step, the object has the field twice
			of = next
			continue
		}
		if meant := text.Nearest(text.Cut(name, limits.QuotedBytes), names); meant != "" && !within {
			return fmt.Errorf("%w: did you mean %q?", err, meant)
		}
		return err
	}
	return err
}

// fieldsOf returns the names of the fields of a struct in JSON, in their order, and adds their types to known.
func fieldsOf(of reflect.Type, known map[string]reflect.Type) (names []string) {
	for f := range of.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			names = append(names, fieldsOf(f.Type, known)...)
		case f.IsExported() && name != "" && name != "-":
			names = append(names, name)
			known[name] = f.Type
		}
	}
	return names
}
