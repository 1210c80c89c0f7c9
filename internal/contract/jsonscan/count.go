// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package jsonscan

// Counts says what a decoder of a text allocates for, and how long the text is when it is indented.
type Counts struct {
	// Values is about the number of values, and Objects that of objects among them.
	Values, Objects int
	// Indented is about the length of the text with each value on a line of its own, indented by two spaces a level.
	Indented int
}

// Count counts what is in a text, which need not be valid JSON. It allocates nothing.
func Count(text []byte) Counts {
	c := Counts{Values: 1, Indented: len(text)}
	depth := 0
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{', '[':
			if text[i] == '{' {
				c.Objects++
			}
			depth++
			c.Values++
			c.Indented += 1 + 2*depth
		case '}', ']':
			depth = max(depth-1, 0)
			c.Indented += 1 + 2*depth
		case ',':
			c.Values++
			c.Indented += 1 + 2*depth
		case ':':
			c.Indented++
		case '"':
			for i++; i < len(text) && text[i] != '"'; i++ {
				if text[i] == '\\' {
					i++
				}
			}
		}
	}
	return c
}
