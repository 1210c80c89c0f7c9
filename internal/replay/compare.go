// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package replay

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/codec"
	"github.com/hookgate/hookgate/internal/handlerchain"
	"github.com/hookgate/hookgate/internal/jsonpatch"
	"github.com/hookgate/hookgate/internal/limits"
	"github.com/hookgate/hookgate/internal/recording"
	"github.com/hookgate/hookgate/internal/text"
)

// Difference is a value of an answer, or of an object that its patches have changed, that is not as it was recorded.
type Difference struct {
	// Object names the object of the request that patches change; empty for a value of the answer itself.
	Object string `json:"object,omitempty"`
	// Path is the JSON pointer of the value in the object, or in the answer.
	Path string `json:"path"`
	// Recorded and Now are the values, as JSON, cut if they are long. They are empty where the value does not exist.
	Recorded string `json:"recorded,omitempty"`
	Now      string `json:"now,omitempty"`
}

// comparison compares two answers to a request.
type comparison struct {
	codec  *codec.Codec
	ignore recording.Patterns
}

// differences returns what differs between the answers to a request: values of the answers, and what their patches make
// of the objects. An error is one of the recorded answer.
func (c *comparison) differences(request, recorded, now proto.Message) ([]Difference, error) {
	before, err := handlerchain.After(request, recorded, jsonpatch.Guard{})
	if err != nil {
		return nil, fmt.Errorf("the recorded patches cannot be applied: %w", err)
	}
	after, err := handlerchain.After(request, now, jsonpatch.Guard{})
	if err != nil {
		problem := cut("the patches cannot be applied: " + err.Error())
		return []Difference{{Now: problem}}, nil //nolint:nilerr // it is a difference
	}
	found, err := c.answers(recorded, now, before != nil)
	if err != nil {
		return nil, err
	}
	if statusOf(recorded) != statusOf(now) {
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
		found = c.add(found, o.Name, more)
	}
	return found, nil
}

func statusOf(answer proto.Message) catalog.Status {
	status, _ := catalog.StatusOf(answer)
	return status
}

// answers returns what differs between two answers, without patches if these are compared by what they do.
func (c *comparison) answers(recorded, now proto.Message, patches bool) ([]Difference, error) {
	was, err := c.members(recorded, patches)
	if err != nil {
		return nil, err
	}
	is, err := c.members(now, patches)
	if err != nil {
		return nil, err
	}
	more, err := handlerchain.Differences(was, is)
	return c.add(nil, "", more), err
}

// members returns the JSON of an answer.
func (c *comparison) members(answer proto.Message, patches bool) ([]byte, error) {
	body, err := c.codec.Append(nil, answer)
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
func (c *comparison) add(to []Difference, object string, more []handlerchain.Difference) []Difference {
	for _, d := range more {
		if !c.ignore.Matches(d.Pointer) {
			to = append(to, Difference{Object: object, Path: d.Pointer, Recorded: cut(d.Got), Now: cut(d.Want)})
		}
	}
	return to
}

func cut(value string) string { return text.Cut(value, limits.CellBytes) }
