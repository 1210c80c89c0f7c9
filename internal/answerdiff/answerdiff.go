// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package answerdiff compares two answers to a request. Patches are compared by what they make of the objects.
package answerdiff

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/codec"
	"github.com/hookgate/hookgate/internal/handlerchain"
	"github.com/hookgate/hookgate/internal/jsonpatch"
	"github.com/hookgate/hookgate/internal/limits"
	"github.com/hookgate/hookgate/internal/redact"
)

// Difference is a value of an answer, or of an object that its patches have changed, that differs.
type Difference struct {
	// Object names the object of the request that patches change, and UID is the one of its item; both are empty for a
	// value of the answer itself.
	Object, UID string
	// Path is the JSON pointer of the value in the object, or in the answer.
	Path string
	// Before and After are the values, as JSON, cut if they are long. They are empty where the value does not exist.
	Before, After string
}

// Comparer compares answers.
type Comparer struct {
	Codec *codec.Codec
	// Ignore reports whether the value at a JSON pointer may differ. Nil ignores nothing.
	Ignore func(pointer string) bool
}

// Compare returns what differs between two answers to a request: values of the answers, and what their patches make of
// the objects. An error is one of the first answer.
func (c *Comparer) Compare(request, was, now proto.Message) ([]Difference, error) {
	before, err := handlerchain.After(request, was, jsonpatch.Guard{})
	if err != nil {
		return nil, fmt.Errorf("the patches cannot be applied: %w", err)
	}
	after, err := handlerchain.After(request, now, jsonpatch.Guard{})
	if err != nil {
		problem := redact.Cut("the patches cannot be applied: "+err.Error(), limits.CellBytes)
		return []Difference{{After: problem}}, nil //nolint:nilerr // it is a difference
	}
	found, err := c.answers(was, now, before != nil)
	if err != nil {
		return nil, err
	}
	if statusOf(was) != statusOf(now) {
		return found, nil // a Failure has no patches
	}
	for i, o := range before {
		if !o.Changed && !after[i].Changed {
			continue
		}
		more, err := handlerchain.Differences(o.JSON, after[i].JSON)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.Name, err)
		}
		found = c.add(found, o, more)
	}
	return found, nil
}

func statusOf(answer proto.Message) catalog.Status {
	status, _ := catalog.StatusOf(answer)
	return status
}

// answers returns what differs between two answers, without patches if these are compared by what they do.
func (c *Comparer) answers(was, now proto.Message, patches bool) ([]Difference, error) {
	before, err := c.members(was, patches)
	if err != nil {
		return nil, err
	}
	after, err := c.members(now, patches)
	if err != nil {
		return nil, err
	}
	more, err := handlerchain.Differences(before, after)
	return c.add(nil, handlerchain.Object{}, more), err
}

// members returns the JSON of an answer.
func (c *Comparer) members(answer proto.Message, patches bool) ([]byte, error) {
	body, err := c.Codec.Append(nil, answer)
	if err != nil || !patches {
		return body, err
	}
	v, err := jsonpatch.Guard{}.Parse(body)
	if err != nil {
		return nil, err
	}
	if members, ok := v.(map[string]any); ok {
		for name := range members {
			if name == "items" || strings.HasSuffix(name, "Patch") {
				delete(members, name)
			}
		}
	}
	return jsonpatch.Append(nil, v), nil
}

// add adds differences, but for those that may be.
func (c *Comparer) add(to []Difference, object handlerchain.Object, more []handlerchain.Difference) []Difference {
	for _, d := range more {
		if c.Ignore == nil || !c.Ignore(d.Pointer) {
			to = append(to, Difference{
				Object: object.Name, UID: object.UID, Path: d.Pointer,
				Before: redact.Value(d.Pointer, d.Got, limits.CellBytes), After: redact.Value(d.Pointer, d.Want, limits.CellBytes),
			})
		}
	}
	return to
}
