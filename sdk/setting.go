// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"encoding/json"
	"reflect"
	"strconv"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
)

// Scalar is a type that the text of a setting can have.
type Scalar interface {
	string | bool | int | int64 | float64
}

// Setting returns a setting of a request. If the request does not have it, Setting returns the default, or without one
// an error. The errors are Failures, and do not quote the value, which may be a secret.
func Setting[T Scalar](in proto.Message, name string, byDefault ...T) (T, error) {
	var value T
	text, ok := "", false
	if f := in.ProtoReflect().Descriptor().Fields().ByName("settings"); f != nil && f.IsMap() {
		v := in.ProtoReflect().Get(f).Map().Get(protoreflect.ValueOfString(name).MapKey())
		if ok = v.IsValid(); ok {
			text = v.String()
		}
	}
	switch {
	case !ok && len(byDefault) > 0:
		return byDefault[0], nil
	case !ok:
		return value, Failf("setting %q is not set", name)
	}
	var err error
	want := "text"
	switch v := reflect.ValueOf(&value).Elem(); v.Kind() {
	case reflect.Bool:
		want = "true or false"
		if text != "true" && text != "false" {
			err = strconv.ErrSyntax
		}
		v.SetBool(text == "true")
	case reflect.Int, reflect.Int64:
		want = "an integer"
		var i int64
		i, err = strconv.ParseInt(text, 10, v.Type().Bits())
		v.SetInt(i)
	case reflect.Float64:
		want = "a number"
		var f float64
		if f, err = strconv.ParseFloat(text, 64); err == nil && !json.Valid([]byte(text)) {
			err = strconv.ErrSyntax // NaN, or hexadecimal
		}
		v.SetFloat(f)
	default:
		v.SetString(text)
	}
	if err != nil {
		var none T
		return none, Failf("setting %q: want %s", name, want)
	}
	return value, nil
}
