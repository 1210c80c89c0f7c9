// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	unescape = strings.NewReplacer("~1", "/", "~0", "~")
	escape   = strings.NewReplacer("~", "~0", "/", "~1")
)

// parsePointer returns the names of a JSON pointer (RFC 6901) to something in an object.
func parsePointer(pointer string) ([]string, error) {
	if !pointerForm.MatchString(pointer) {
		return nil, fmt.Errorf("%q is not a JSON pointer such as /spec/version: write ~ as ~0, and / in a name as ~1",
			pointer)
	}
	names := strings.Split(pointer[1:], "/")
	for i, name := range names {
		names[i] = unescape.Replace(name)
	}
	return names, nil
}

var pointerForm = regexp.MustCompile(`^(/([^/~]|~0|~1)*)+$`)

// pointerTo returns the JSON pointer of names.
func pointerTo(names []string) string {
	var b strings.Builder
	for _, name := range names {
		b.WriteString("/" + escape.Replace(name))
	}
	return b.String()
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

// set sets the value at a place in an object.
func set(root map[string]any, at []string, value any) error {
	_, err := setIn(root, at, 0, value)
	return err
}

// setIn returns node with the value at a place, whose first names lead to node.
func setIn(node any, at []string, depth int, value any) (any, error) {
	if depth == len(at) {
		return value, nil
	}
	name := at[depth]
	var err error
	switch n := node.(type) {
	case nil:
		object := map[string]any{}
		object[name], err = setIn(nil, at, depth+1, value)
		return object, err
	case map[string]any:
		n[name], err = setIn(n[name], at, depth+1, value)
		return n, err
	case []any:
		if name == "-" || name == strconv.Itoa(len(n)) {
			child, err := setIn(nil, at, depth+1, value)
			return append(n, child), err
		}
		i, ok := index(name, len(n))
		if !ok {
			return n, fmt.Errorf("the list %q has no element %q", pointerTo(at[:depth]), name)
		}
		n[i], err = setIn(n[i], at, depth+1, value)
		return n, err
	}
	return node, fmt.Errorf("%q is neither an object nor a list", pointerTo(at[:depth]))
}

// remove returns node without the value at a place.
func remove(node any, at []string) any {
	name, last := at[0], len(at) == 1
	switch n := node.(type) {
	case map[string]any:
		if last {
			delete(n, name)
		} else if child, ok := n[name]; ok {
			n[name] = remove(child, at[1:])
		}
	case []any:
		switch i, ok := index(name, len(n)); {
		case ok && last:
			return slices.Delete(n, i, i+1)
		case ok:
			n[i] = remove(n[i], at[1:])
		}
	}
	return node
}

// index returns the index of an element that a list of this length has.
func index(name string, length int) (int, bool) {
	i, err := strconv.Atoi(name)
	return i, err == nil && strconv.Itoa(i) == name && i >= 0 && i < length
}
