// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

// keywords finds many words in a text in one pass, in any case: the automaton of Aho and Corasick, with all its steps
// in one table. Most texts have none of the words, and need no regular expression.
type keywords struct {
	classes [256]uint8 // of bytes that no word tells apart
	width   int        // the number of classes
	next    []uint16   // the state after a state and a class
	found   [][]uint16 // the words that end in a state
}

func fold(c byte) byte {
	if 'A' <= c && c <= 'Z' {
		return c | 0x20
	}
	return c
}

// newKeywords returns the automaton of words in lower case, which it calls by their indexes.
func newKeywords(words []string) *keywords {
	k := &keywords{width: 1}
	for _, w := range words {
		for i := range len(w) {
			if k.classes[w[i]] == 0 {
				k.classes[w[i]] = uint8(k.width)
				k.width++
			}
		}
	}
	for c := byte('A'); c <= 'Z'; c++ {
		k.classes[c] = k.classes[fold(c)]
	}
	k.addState()
	for n, w := range words {
		state := 0
		for i := range len(w) {
			to := &k.next[state*k.width+int(k.classes[w[i]])]
			if *to == 0 {
				*to = uint16(len(k.found))
				k.addState()
			}
			state = int(k.next[state*k.width+int(k.classes[w[i]])])
		}
		k.found[state] = append(k.found[state], uint16(n))
	}
	k.link()
	return k
}

func (k *keywords) addState() {
	k.next = append(k.next, make([]uint16, k.width)...)
	k.found = append(k.found, nil)
}

// link adds the steps that leave a word for another that begins within it.
func (k *keywords) link() {
	shorter := make([]uint16, len(k.found)) // the state of the longest end of a state's text that is another state's
	queue := make([]uint16, 0, len(k.found))
	for c := range k.width {
		if to := k.next[c]; to != 0 {
			queue = append(queue, to)
		}
	}
	for len(queue) > 0 {
		state := int(queue[0])
		queue = queue[1:]
		back := int(shorter[state])
		k.found[state] = append(k.found[state], k.found[back]...)
		for c := range k.width {
			to := &k.next[state*k.width+c]
			if *to == 0 {
				*to = k.next[back*k.width+c]
				continue
			}
			shorter[*to] = k.next[back*k.width+c]
			queue = append(queue, *to)
		}
	}
}

// hit is where a word ends.
type hit struct{ word, end int }

// any reports whether a text has one of the words from the given one on, or one before them.
func (k *keywords) any(text []byte, from int) (has, before bool) {
	state := 0
	for _, c := range text {
		if state = int(k.next[state*k.width+int(k.classes[c])]); k.found[state] == nil {
			continue
		}
		for _, n := range k.found[state] {
			if int(n) >= from {
				return true, before
			}
		}
		before = true
	}
	return false, before
}

// all returns all places of all words.
func (k *keywords) all(text string) (hits []hit) {
	state := 0
	for i := range len(text) {
		state = int(k.next[state*k.width+int(k.classes[text[i]])])
		for _, n := range k.found[state] {
			hits = append(hits, hit{int(n), i + 1})
		}
	}
	return hits
}
