// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/go-openapi/jsonpointer"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
)

// Apply returns the value that a patch makes of doc, which it may change, as the library does that Cluster API uses.
// That one keeps the text of every object within another, and looks at all members of an object for each that is set: a
// patch of 1 MiB takes gigabytes, and minutes. Here, the memory is that of the values, which m counts, and the time is
// bounded by Guard.Step.
//
// Like the library, it takes negative indices, which count from the end of a list, and tests a member that does not
// exist as null. Unlike it, an empty name in a path is that of a member, as in RFC 6901.
func Apply(doc any, t hooksv1alpha1.PatchType, patch []byte, m *Meter) (any, error) {
	changes, err := m.Guard.Parse(patch)
	if err != nil {
		return nil, err
	}
	return ApplyParsed(doc, t, changes, m)
}

// ApplyParsed is Apply of a patch that has been parsed. Values of the patch become part of the result, and so do those
// of doc that are Raw, unless the patch gets to them.
func ApplyParsed(doc any, t hooksv1alpha1.PatchType, changes any, m *Meter) (any, error) {
	if t == hooksv1alpha1.PatchType_PATCH_TYPE_JSON_MERGE_PATCH {
		return m.merge(doc, changes, 0, false)
	}
	p := patcher{root: doc, meter: m}
	if err := p.apply(changes); err != nil {
		return nil, err
	}
	return p.root, nil
}

// Within reports whether a parsed patch changes nothing but the places, which are JSON pointers of members without
// escapes, and removes none of them.
func Within(t hooksv1alpha1.PatchType, changes any, places []string) bool {
	if t == hooksv1alpha1.PatchType_PATCH_TYPE_JSON_MERGE_PATCH {
		return mergesWithin(changes, "", places)
	}
	in := func(path any, orAt bool) bool {
		text, ok := path.(string)
		return ok && slices.ContainsFunc(places, func(place string) bool {
			rest, ok := strings.CutPrefix(text, place)
			return ok && (rest == "" && orAt || strings.HasPrefix(rest, "/"))
		})
	}
	operations, ok := changes.([]any)
	return ok && !slices.ContainsFunc(operations, func(operation any) bool {
		o, _ := operation.(map[string]any)
		return o["op"] != "test" && !in(o["path"], o["op"] != "remove") || o["op"] == "move" && !in(o["from"], false)
	})
}

// mergesWithin is Within of a merge patch of what is at a pointer.
func mergesWithin(changes any, at string, places []string) bool {
	if slices.Contains(places, at) {
		return changes != nil
	}
	above := slices.ContainsFunc(places, func(place string) bool { return strings.HasPrefix(place, at+"/") })
	members, ok := changes.(map[string]any)
	if !above || !ok {
		return false
	}
	for name, value := range members {
		if !mergesWithin(value, at+"/"+jsonpointer.Escape(name), places) {
			return false
		}
	}
	return true
}

// ErrNoText is the error of a JSON patch without a text, which Cluster API refuses. Extensions send one where nothing
// changes, so it says what to write there.
var ErrNoText = errors.New(`it is empty: if nothing changes, leave out the patch and its type, or write [] ` +
	`("W10=" in JSON)`)

// Empty reports whether a patch changes nothing, whatever the object.
func Empty(t hooksv1alpha1.PatchType, patch []byte) bool {
	operations := t == hooksv1alpha1.PatchType_PATCH_TYPE_JSON_PATCH
	merge := t == hooksv1alpha1.PatchType_PATCH_TYPE_JSON_MERGE_PATCH
	switch string(bytes.TrimSpace(patch)) {
	case "":
		return operations || merge
	case "[]", "null":
		return operations
	case "{}":
		return merge
	}
	return false
}

// patcher applies a JSON patch (RFC 6902) to root.
type patcher struct {
	root   any
	meter  *Meter
	copied int // bytes of text
	moved  int // elements of lists since Step was called last
}

var (
	errNoSuchPlace = errors.New("there is no such place")
	errUnequal     = errors.New("the value differs")
	errCopies      = fmt.Errorf("it copies more than %d MiB", limits.BodyBytes>>20)
)

// moveStep is the number of elements of lists that are moved between two calls of Step.
const moveStep = 1 << 20

func (p *patcher) apply(patch any) error {
	operations, ok := patch.([]any)
	if !ok && patch != nil {
		return errors.New("it is not a list of operations")
	}
	for i, operation := range operations {
		o, _ := operation.(map[string]any)
		if err := p.operation(o); err != nil {
			path, _ := o["path"].(string)
			return fmt.Errorf("operation %d at %q: %w", i, text.Cut(path, limits.QuotedBytes), err)
		}
	}
	return nil
}

func (p *patcher) operation(o map[string]any) error {
	path, ok := o["path"].(string)
	if !ok {
		return errors.New("it has no path")
	}
	value, hasValue := o["value"]
	from, hasFrom := o["from"].(string)
	switch o["op"] {
	case "add", "replace":
		if !hasValue {
			return errors.New("it has no value")
		}
		if o["op"] == "add" {
			return p.add(path, value)
		}
		return p.replace(path, value)
	case "remove":
		_, err := p.remove(path)
		return err
	case "test":
		return p.test(path, value)
	case "move", "copy":
		if !hasFrom {
			return errors.New("it has no from")
		}
		if o["op"] == "copy" {
			return p.copy(from, path)
		}
		moved, err := p.remove(from)
		if err != nil {
			return err
		}
		return p.add(path, moved)
	}
	return errors.New("it is not an operation of RFC 6902")
}

// place is a member of an object or an element of a list, which may not exist.
type place struct {
	object map[string]any
	list   []any
	isList bool
	key    string
}

// container is the last object or list in root that a path leads to, with the place in it that the path names.
type container struct {
	place
	at place // of the container itself; zero for root
}

// find returns the container that a path leads to, which is not empty.
func (p *patcher) find(path string) (container, error) {
	_, rest, ok := strings.Cut(path, "/")
	if !ok {
		return container{}, errNoSuchPlace
	}
	in, c := p.root, container{}
	for level := 0; ; level++ {
		if raw, ok := in.(Raw); ok {
			var err error
			if in, err = p.meter.Open(raw, level); err != nil {
				return container{}, err
			}
			p.set(&c, in)
		}
		part, after, more := strings.Cut(rest, "/")
		if strings.Contains(part, "~") {
			part = jsonpointer.Unescape(part)
		}
		c.place = place{key: part}
		if c.object, ok = in.(map[string]any); !ok {
			c.list, c.isList = in.([]any)
		}
		if !ok && !c.isList {
			return c, errNoSuchPlace
		}
		if !more {
			return c, nil
		}
		var err error
		if in, err = c.get(); err != nil {
			return c, err
		}
		c.at, rest = c.place, after
	}
}

// set puts a value in the place of a container.
func (p *patcher) set(c *container, v any) {
	if c.at.object == nil && !c.at.isList {
		p.root = v
		return
	}
	c.at.put(v)
}

// index returns the index of the element that c.key names.
func (c *place) index() (int, error) {
	i, err := strconv.Atoi(c.key)
	if err != nil {
		return 0, errNoSuchPlace
	}
	if i < 0 {
		i += len(c.list)
	}
	if i < 0 || i >= len(c.list) {
		return 0, errNoSuchPlace
	}
	return i, nil
}

func (c *place) get() (any, error) {
	if c.isList {
		i, err := c.index()
		if err != nil {
			return nil, err
		}
		return c.list[i], nil
	}
	v, ok := c.object[c.key]
	if !ok {
		return nil, errNoSuchPlace
	}
	return v, nil
}

// put replaces a value that get has returned.
func (c *place) put(v any) {
	if !c.isList {
		c.object[c.key] = v
	} else if i, err := c.index(); err == nil {
		c.list[i] = v
	}
}

func (p *patcher) get(path string) (any, error) {
	if path == "" {
		return p.root, nil
	}
	c, err := p.find(path)
	if err != nil {
		return nil, err
	}
	return c.get()
}

func (p *patcher) add(path string, value any) error {
	if path == "" {
		p.root = value
		return nil
	}
	c, err := p.find(path)
	if err != nil {
		return err
	}
	if !c.isList {
		c.object[c.key] = value
		return nil
	}
	if c.key == "-" {
		p.set(&c, append(c.list, value))
		return nil
	}
	i, err := strconv.Atoi(c.key)
	if err == nil && i < 0 {
		i += len(c.list) + 1
	}
	if err != nil || i < 0 || i > len(c.list) {
		return errNoSuchPlace
	}
	p.set(&c, slices.Insert(c.list, i, value))
	return p.move(len(c.list) - i)
}

func (p *patcher) replace(path string, value any) error {
	if path == "" {
		p.root = value
		return nil
	}
	c, err := p.find(path)
	if err == nil {
		_, err = c.get()
	}
	if err != nil {
		return err
	}
	c.put(value)
	return nil
}

func (p *patcher) remove(path string) (any, error) {
	if path == "" {
		return nil, errNoSuchPlace
	}
	c, err := p.find(path)
	if err != nil {
		return nil, err
	}
	removed, err := c.get()
	if err != nil {
		return nil, err
	}
	if !c.isList {
		delete(c.object, c.key)
		return removed, nil
	}
	i, err := c.index()
	if err != nil {
		return nil, err
	}
	moved := len(c.list) - i
	p.set(&c, slices.Delete(c.list, i, i+1))
	return removed, p.move(moved)
}

func (p *patcher) test(path string, want any) error {
	got, put := p.root, func(v any) { p.root = v }
	if path != "" {
		c, err := p.find(path)
		if err != nil {
			return err
		}
		if got, err = c.get(); err != nil && c.isList {
			return err
		}
		if put = c.put; err != nil {
			put = func(any) {}
		}
	}
	got, err := p.meter.Read(got)
	if err != nil {
		return err
	}
	put(got) // the next operation may be a test, too
	if !Equal(got, want) {
		return errUnequal
	}
	return nil
}

func (p *patcher) copy(from, path string) error {
	v, err := p.get(from)
	if err != nil {
		return err
	}
	if v, err = p.copyOf(v); err != nil {
		return err
	}
	return p.add(path, v)
}

// copyOf returns a copy of a value: a few operations that copy what the ones before have copied would otherwise double
// the object each time.
func (p *patcher) copyOf(v any) (any, error) {
	if err := p.meter.Element(MemberCost); err != nil {
		return nil, err
	}
	switch v := v.(type) {
	case string:
		return v, p.count(len(v))
	case Raw:
		return v, p.count(len(v))
	case map[string]any:
		to := make(map[string]any, len(v))
		for name, value := range v {
			if err := p.count(len(name)); err != nil {
				return nil, err
			}
			c, err := p.copyOf(value)
			if err != nil {
				return nil, err
			}
			to[name] = c
		}
		return to, nil
	case []any:
		to := make([]any, 0, len(v))
		for _, value := range v {
			c, err := p.copyOf(value)
			if err != nil {
				return nil, err
			}
			to = append(to, c)
		}
		return to, nil
	}
	return v, nil
}

// count counts the text of copied values.
func (p *patcher) count(bytes int) error {
	if p.copied += bytes; p.copied > limits.BodyBytes {
		return errCopies
	}
	return p.meter.Text(bytes)
}

// move counts the elements that were moved to make room, or to fill it.
func (p *patcher) move(elements int) error {
	if p.moved += elements; p.moved < moveStep {
		return nil
	}
	p.moved = 0
	return p.meter.Guard.step()
}
