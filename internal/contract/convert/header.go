// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"errors"
	"fmt"
	"strings"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/contract/jsonscan"
)

// header holds the apiVersion and kind of an object.
type header struct {
	apiVersion, kind string
}

// headerOf reads no further than it has to, because objects that are not converted should not be scanned twice.
func headerOf(b []byte) (h header, err error) {
	s := jsonscan.Scanner{Text: b}
	i := jsonscan.Space(b, 0)
	if s.At(i) != '{' {
		return h, errors.New("it is not an object")
	}
	found := 0
	for first := true; found < 2; first = false {
		start, more, err := s.Next(i, first, '}')
		if err != nil || !more {
			return h, err
		}
		end, value, err := s.Name(start)
		if err != nil {
			return h, err
		}
		name, into := b[start+1:end-1], (*string)(nil)
		switch string(name) {
		case "apiVersion":
			into = &h.apiVersion
		case "kind":
			into = &h.kind
		}
		if into != nil && s.At(value) != '"' {
			return h, errors.New(string(name) + " is not a string")
		}
		if i, err = s.Value(value, 1); err != nil {
			return h, err
		}
		if into != nil {
			if i-value > limits.QuotedBytes {
				return h, fmt.Errorf("its %s has more than %d bytes", name, limits.QuotedBytes)
			}
			*into = unquote(b[value:i])
			found++
		}
	}
	return h, nil
}

// source returns the version of the object, or "" if there is nothing to convert: no object, or one of the wanted
// version. unstated is the version of an object that states neither version nor kind. at names the object in errors.
func source(t []byte, k *kind, at, to, unstated string) (string, error) {
	if i := jsonscan.Space(t, 0); i == len(t) || string(t[i:]) == "null" {
		return "", nil
	}
	h, err := headerOf(t)
	if err != nil {
		return "", hook.Errorf(hook.InvalidRequest, "convert %s to %s: %s", at, to, err.Error())
	}
	if h.apiVersion == "" && h.kind == "" && unstated != "" {
		if unstated == to {
			return "", nil
		}
		return unstated, nil
	}
	g, v, found := strings.Cut(h.apiVersion, "/")
	switch {
	case h.apiVersion == "":
		return "", hook.Errorf(hook.InvalidRequest,
			"convert %s to %s: the object has no apiVersion", at, to)
	case !found || g != group:
		return "", hook.Errorf(hook.InvalidRequest, "convert %s to %s: its apiVersion is %q, not one of group %s",
			at, to, h.apiVersion, group)
	case v == to:
		return "", nil
	case h.kind != k.name:
		return "", hook.Errorf(hook.InvalidRequest, "convert %s to %s: its kind is %q, not %s", at, to, h.kind, k.name)
	}
	if from, _ := k.sides(v); from == nil {
		return "", hook.Errorf(hook.Conversion,
			"convert %s to %s: the object has version %s, but only versions %s and %s of group %s can be converted",
			at, to, shortened(v), V1Beta1, V1Beta2, group)
	}
	return v, nil
}
