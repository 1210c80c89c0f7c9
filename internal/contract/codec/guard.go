// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"github.com/hookgate/hookgate/internal/base/limits"
)

// Guard bounds and watches the decoding of one body, beyond the fixed limits. The zero value adds no bound.
type Guard struct {
	// Step is called before each quarter of a MiB or so is read. It may wait, and its error ends the reading.
	Step func() error
	// Reserve is called with a number of bytes before that many are allocated for the message, besides the body. Its
	// error ends the decoding. A few KiB are allocated without it.
	Reserve func(bytes int64) error
	// Misspelt is called with the unknown members, of the first hundred, whose names are nearly those of known ones.
	Misspelt func(Misspelling)
}

// What elements cost besides their texts, in bytes: the entry of a map takes more than its two strings, because maps
// grow in steps, and a pointer in a list takes the room that the list keeps for more of them.
const (
	pointerCost = 24
	stringCost  = 32
	entryCost   = 96
	unknownCost = 256 // with the name in the set of those of the object
	// mapCost is what a map takes with its first entries, rawCost a RawExtension or a JSON without its text.
	mapCost = 240
	rawCost = 64
)

// meterStep is the number of bytes that are reserved at once, and that small messages need not reserve.
const meterStep = 64 << 10

// meter counts what a decoder allocates.
type meter struct {
	reserve  func(bytes int64) error
	elements int
	bytes    int // allocated and not reserved yet
}

// element counts an element that takes so many bytes.
func (m *meter) element(bytes int) error {
	if m.elements++; m.elements > limits.Elements {
		return ErrTooMany
	}
	return m.text(bytes)
}

// text counts so many bytes.
func (m *meter) text(bytes int) error {
	if m.bytes += bytes; m.bytes < meterStep {
		return nil
	}
	return m.flush()
}

func (m *meter) flush() error {
	bytes := m.bytes
	m.bytes = 0
	if m.reserve == nil {
		return nil
	}
	return m.reserve(int64(bytes))
}
