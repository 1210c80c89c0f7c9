// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package answerdiff compares two answers to a request. Patches are compared by what they make of the objects.
package answerdiff

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/jsonpatch"
	"github.com/hookgate/hookgate/internal/contract/redact"
	"github.com/hookgate/hookgate/internal/kinds/handlerchain"
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
	// Guard bounds the work. The zero value adds no bound to those of a single object. Release, which may be nil, is
	// called with what was reserved for an object that has been compared.
	Guard   jsonpatch.Guard
	Release func(bytes int64)
}

// Compare returns what differs between two answers to a request: values of the answers, and what their patches make of
// the objects. What is built for it is counted before. An error is one of the first answer, or, if it is a *hook.Error
// of kind TooLarge, or of the Guard, says that the answers cannot be compared.
func (c *Comparer) Compare(request, was, now proto.Message) ([]Difference, error) {
	before, err := handlerchain.After(request, was, c.guard(jsonpatch.Copies/2, nil))
	if err != nil {
		return nil, fmt.Errorf("the patches cannot be applied: %w", err)
	}
	after, err := handlerchain.After(request, now, c.guard(jsonpatch.Copies/2, nil))
	if bounded := (*hook.Error)(nil); errors.As(err, &bounded) {
		return nil, err
	}
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
		more, err := c.differences(o.JSON, after[i].JSON)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.Name, err)
		}
		found = c.add(found, o, more)
	}
	return found, nil
}

// differences returns what differs between two texts, of each of which there is one Go value.
func (c *Comparer) differences(before, after []byte) ([]handlerchain.Difference, error) {
	var reserved int64
	found, err := handlerchain.DifferencesWithin(before, after, c.guard(jsonpatch.Copies, &reserved))
	if c.Release != nil {
		c.Release(reserved)
	}
	return found, err
}

// guard returns the Guard of work that makes so many times less copies than objects that are converted have. It adds
// what is reserved to sum, which may be nil.
func (c *Comparer) guard(less int64, sum *int64) jsonpatch.Guard {
	g := c.Guard
	if reserve := g.Reserve; reserve != nil {
		g.Reserve = func(bytes int64) error {
			err := reserve(bytes / less)
			if err == nil && sum != nil {
				*sum += bytes / less
			}
			return err
		}
	}
	return g
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
	more, err := c.differences(before, after)
	return c.add(nil, handlerchain.Object{}, more), err
}

// members returns the JSON of an answer.
func (c *Comparer) members(answer proto.Message, patches bool) ([]byte, error) {
	if patches {
		without := catalog.Shallow(answer.ProtoReflect())
		for fields, i := without.Descriptor().Fields(), 0; i < fields.Len(); i++ {
			if name := fields.Get(i).Name(); name == "items" || strings.HasSuffix(string(name), "_patch") {
				without.Clear(fields.Get(i))
			}
		}
		answer = without.Interface()
	}
	body, err := c.Codec.EncodeWithin(answer, math.MaxInt64, codec.Guard{Reserve: c.Guard.Reserve})
	if err != nil {
		return nil, err
	}
	return body.AppendTo(make([]byte, 0, body.Size())), nil
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
