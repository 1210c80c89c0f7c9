// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonpatch

import (
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/contract/jsonscan"
)

const (
	// Copies is how many Go values there are of an object while it is converted: decoded, converted, converted back, and
	// written. One that is patched has fewer.
	Copies = 4
	// MemberCost is what a member of an object takes, in bytes, besides its value.
	MemberCost = 256
	// meterStep is the number of bytes that are reserved at once.
	meterStep = 64 << 10
	// largeText is the number of bytes of a text from which it is heavy work.
	largeText = 256 << 10
)

// Guard bounds the work on the objects of one request and its answer beyond the fixed limits. The zero value adds no
// bound.
type Guard struct {
	// Step is called before each quarter of a MiB or so of an object is decoded. It may wait, and its error ends the
	// work.
	Step func() error
	// Reserve is called with a number of bytes before that many are allocated for an object. Its error, a *hook.Error,
	// ends the work. A few KiB are allocated without it.
	Reserve func(bytes int64) error
}

// step calls Step.
func (g Guard) step() error {
	if g.Step == nil {
		return nil
	}
	return g.Step()
}

// Meter counts what the work on one object allocates, before it does. The zero value counts elements alone.
type Meter struct {
	Guard    Guard
	elements int
	pointers int // bytes
	bytes    int // to be allocated and not reserved yet
}

// Text counts the text of an object, which is copied once for each of its values.
func (m *Meter) Text(bytes int) error { return m.add(bytes) }

// Element counts an element of a list, an entry of a map, or an unknown member.
func (m *Meter) Element(bytes int) error {
	if m.elements++; m.elements > limits.ObjectElements {
		return hook.Errorf(hook.TooLarge, "it has more than %d list elements, map entries and unknown members in total",
			limits.ObjectElements)
	}
	return m.add(bytes)
}

// Pointer counts a JSON pointer that is made: those of the members of an object have all names above them, so that they
// may be much longer together than its text.
func (m *Meter) Pointer(bytes int) error {
	if m.pointers += bytes; m.pointers > limits.ObjectPointers {
		return hook.Errorf(hook.TooLarge, "the JSON pointers to its members are larger than %d MiB in total",
			limits.ObjectPointers>>20)
	}
	return m.add(bytes)
}

func (m *Meter) add(bytes int) error {
	if m.bytes += Copies * bytes; m.bytes < meterStep {
		return nil
	}
	return m.Flush()
}

// Flush reserves what is counted and not reserved yet, for work on many small objects.
func (m *Meter) Flush() error {
	if m.bytes == 0 || m.Guard.Reserve == nil {
		return nil
	}
	bytes := m.bytes
	m.bytes = 0
	return m.Guard.Reserve(int64(bytes))
}

// Values counts the values in a text that is built as a whole. Text that is no JSON is not built.
func (m *Meter) Values(text []byte) error {
	s := jsonscan.Scanner{Text: text}
	for i := 0; i < len(text); {
		switch text[i] {
		case '"':
			end, err := s.SkipString(i)
			if err != nil {
				return nil //nolint:nilerr // who builds it will say so
			}
			i = end
			continue
		case ',', '{', '[':
			if err := m.Element(MemberCost); err != nil {
				return err
			}
		}
		i++
	}
	return m.Text(len(text))
}
