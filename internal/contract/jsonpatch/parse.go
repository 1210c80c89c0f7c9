// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/contract/jsonscan"
)

// Raw is the text of a value within another one that Open has returned. A handler patches a few members of an
// object: to build all others, and to write them again, would take many times as long as the rest of a call.
type Raw []byte

// openLevels is how deep in an object Open stops at the members: each level reads the text of those below it again.
const openLevels = 16

// Parse returns the value of a JSON text as encoding/json builds it, with numbers as they are written. It calls Step
// before each part of a large one.
func (g Guard) Parse(text []byte) (any, error) {
	return (&parser{Scanner: jsonscan.Scanner{Text: text}, guard: g}).parse()
}

// Parse is Guard.Parse of a text whose values m counts.
func (m *Meter) Parse(text []byte) (any, error) {
	if err := m.Text(len(text)); err != nil {
		return nil, err
	}
	return (&parser{Scanner: jsonscan.Scanner{Text: text}, guard: m.Guard, meter: m}).parse()
}

// Open returns the value of a Raw at a level of the object, from 0, with its members or elements Raw. It returns
// other values as they are.
func (m *Meter) Open(v any, level int) (any, error) {
	text, ok := v.(Raw)
	if !ok {
		return v, nil
	}
	p := &parser{Scanner: jsonscan.Scanner{Text: text}, guard: m.Guard, meter: m, raw: level < openLevels}
	return p.parse()
}

// OpenTo returns the object of a text as Open does, and opens the objects that a path of members leads to, which costs
// one pass over the text in place of one for each level.
func (m *Meter) OpenTo(text []byte, path ...string) (any, error) {
	p := &parser{Scanner: jsonscan.Scanner{Text: text}, guard: m.Guard, meter: m, raw: true, path: path}
	return p.parse()
}

// Read returns a value without anything Raw in it. It changes v.
func (m *Meter) Read(v any) (_ any, err error) {
	switch v := v.(type) {
	case Raw:
		return m.Parse(v)
	case map[string]any:
		for name, value := range v {
			if v[name], err = m.Read(value); err != nil {
				return nil, err
			}
		}
	case []any:
		for i, value := range v {
			if v[i], err = m.Read(value); err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// parser builds the value of a text.
type parser struct {
	jsonscan.Scanner
	guard Guard
	meter *Meter   // counts the values, if it is not nil
	raw   bool     // whether members and elements are Raw
	path  []string // of members that are not Raw, if they are objects
}

func (p *parser) parse() (any, error) {
	if len(p.Text) >= largeText {
		if err := p.guard.step(); err != nil {
			return nil, err
		}
		p.Step = p.guard.Step
	}
	v, end, err := p.value(jsonscan.Space(p.Text, 0), 0)
	if err == nil {
		err = p.End(end)
	}
	return v, err
}

// value builds the value that begins at i and has depth objects and lists around it.
func (p *parser) value(i, depth int) (v any, end int, err error) {
	switch p.At(i) {
	case '{':
		object := map[string]any{}
		for first := true; ; first = false {
			start, more, err := p.next(i, depth, first, '}')
			if err != nil || !more {
				return object, start, err
			}
			nameEnd, value, err := p.Name(start)
			if err != nil {
				return nil, value, err
			}
			name := unquoted(p.Text[start:nameEnd])
			if object[name], i, err = p.within(value, depth, name); err != nil {
				return nil, i, err
			}
		}
	case '[':
		list := []any{}
		for first := true; ; first = false {
			start, more, err := p.next(i, depth, first, ']')
			if err != nil || !more {
				return list, start, err
			}
			var element any
			if element, i, err = p.within(start, depth, ""); err != nil {
				return nil, i, err
			}
			list = append(list, element)
		}
	}
	if end, err = p.Value(i, depth); err != nil {
		return nil, end, err
	}
	switch text := p.Text[i:end]; text[0] {
	case '"':
		return unquoted(text), end, nil
	case 't', 'f':
		return text[0] == 't', end, nil
	case 'n':
		return nil, end, nil
	default:
		return json.Number(text), end, nil
	}
}

// unquoted returns the text of a valid string.
func unquoted(literal []byte) string {
	text := literal[1 : len(literal)-1]
	if bytes.IndexByte(text, '\\') >= 0 || !utf8.Valid(text) {
		text, _ = jsonscan.Unescape(text)
	}
	return string(text)
}

// next is Next for an object or list that has depth of them around it, and counts what is in it.
func (p *parser) next(i, depth int, first bool, end byte) (next int, more bool, err error) {
	if first && depth == limits.JSONDepth {
		_, err := p.Value(i, depth) // it says so
		return i, false, err
	}
	next, more, err = p.Next(i, first, end)
	if err == nil && more && p.meter != nil {
		err = p.meter.Element(MemberCost)
	}
	return next, more, err
}

// within builds a member, or an element, which has no name. Around a member that is built is its path.
func (p *parser) within(i, depth int, name string) (any, int, error) {
	if !p.raw || depth < len(p.path) && p.path[depth] == name && p.At(i) == '{' {
		return p.value(i, depth+1)
	}
	end, err := p.Value(i, depth+1)
	return Raw(p.Text[i:end:end]), end, err
}
