// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"reflect"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/jsonscan"
	"github.com/hookgate/hookgate/internal/limits"
)

const (
	// values is how many Go values there are of an object while it is converted: decoded, converted, converted back, and
	// written.
	values = 4
	// entryCost and memberCost are what the entry of a map and an unknown member take, in bytes, besides their values.
	entryCost  = 64
	memberCost = 256
	// meterStep is the number of bytes that are reserved at once.
	meterStep = 64 << 10
	// largeText is the number of bytes of a text from which it is heavy work.
	largeText = 256 << 10
)

// Guard bounds the conversion of one request and its answer beyond the fixed limits. The zero value adds no bound.
type Guard struct {
	// Step is called before each quarter of a MiB or so of an object is decoded. It may wait, and its error ends the
	// conversion.
	Step func() error
	// Reserve is called with a number of bytes before that many are allocated for an object. Its error, a *hook.Error,
	// ends the conversion. A few KiB are allocated without it.
	Reserve func(bytes int64) error
}

// step calls Step.
func (g Guard) step() error {
	if g.Step == nil {
		return nil
	}
	return g.Step()
}

// meter counts what the conversion of one object allocates, before it does.
type meter struct {
	guard    Guard
	elements int
	bytes    int // to be allocated and not reserved yet
}

// text counts the text of an object, which is copied once for each of its values.
func (m *meter) text(bytes int) error { return m.add(bytes) }

// element counts an element of a list, an entry of a map, or an unknown member.
func (m *meter) element(bytes int) error {
	if m.elements++; m.elements > limits.ObjectElements {
		return hook.Errorf(hook.TooLarge, "it has more than %d elements in lists and maps, and unknown members",
			limits.ObjectElements)
	}
	return m.add(bytes)
}

func (m *meter) add(bytes int) error {
	if m.bytes += values * bytes; m.bytes < meterStep || m.guard.Reserve == nil {
		return nil
	}
	bytes, m.bytes = m.bytes, 0
	return m.guard.Reserve(int64(bytes))
}

// cost is what a value of the type takes, in bytes, without what it refers to.
func cost(t reflect.Type) int {
	n := int(t.Size())
	if t.Kind() == reflect.Pointer {
		n += cost(t.Elem())
	}
	return n
}

// values counts the values in a text that is built as a whole. Text that is no JSON is not built.
func (m *meter) values(text []byte) error {
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
			if err := m.element(memberCost); err != nil {
				return err
			}
		}
		i++
	}
	return m.text(len(text))
}
