// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

var (
	unescape = strings.NewReplacer("~1", "/", "~0", "~")
	escape   = strings.NewReplacer("~", "~0", "/", "~1")
)

// parsePointer returns the names of a JSON pointer (RFC 6901).
func parsePointer(pointer string) ([]string, error) {
	if pointer == "" {
		return nil, nil
	}
	if pointer[0] != '/' {
		return nil, fmt.Errorf("%q is not a JSON pointer, such as /spec/version", pointer)
	}
	names := strings.Split(pointer[1:], "/")
	for i, name := range names {
		if strings.Contains(strings.NewReplacer("~0", "", "~1", "").Replace(name), "~") {
			return nil, fmt.Errorf("%q is not a JSON pointer: ~ is ~0, and / in a name ~1", pointer)
		}
		names[i] = unescape.Replace(name)
	}
	return names, nil
}

// plainOf returns a value as it is in JSON: a copy of maps, lists, strings, booleans, nil and json.Number.
func plainOf(value any) (any, error) {
	text, err := marshal(value)
	if err != nil {
		return nil, err
	}
	var out any
	return out, decode(text, &out)
}

// marshal returns the JSON of a value, in which < and & are as they are.
func marshal(value any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), err
}

// set returns node with the value at a place.
func set(node any, at []string, value any) (any, error) {
	if len(at) == 0 {
		return value, nil
	}
	name, rest := at[0], at[1:]
	var err error
	switch n := node.(type) {
	case nil:
		child, err := set(nil, rest, value)
		return map[string]any{name: child}, err
	case map[string]any:
		n[name], err = set(n[name], rest, value)
		return n, err
	case []any:
		if name == "-" || name == strconv.Itoa(len(n)) {
			child, err := set(nil, rest, value)
			return append(n, child), err
		}
		i, ok := index(name, len(n))
		if !ok {
			return nil, fmt.Errorf("a list of %d has no element %q", len(n), name)
		}
		n[i], err = set(n[i], rest, value)
		return n, err
	}
	return nil, fmt.Errorf("%q is to be set in a value that is not an object", name)
}

// remove returns node without the value at a place.
func remove(node any, at []string) any {
	if len(at) == 0 {
		return nil
	}
	name, rest := at[0], at[1:]
	switch n := node.(type) {
	case map[string]any:
		if child, ok := n[name]; ok && len(rest) > 0 {
			n[name] = remove(child, rest)
		} else {
			delete(n, name)
		}
	case []any:
		if i, ok := index(name, len(n)); ok && len(rest) > 0 {
			n[i] = remove(n[i], rest)
		} else if ok {
			return slices.Delete(n, i, i+1)
		}
	}
	return node
}

// index returns the index of an element that a list of this length has.
func index(name string, length int) (int, bool) {
	i, err := strconv.Atoi(name)
	return i, err == nil && strconv.Itoa(i) == name && i >= 0 && i < length
}
