// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package steady

import (
	"slices"
	"strings"
)

// reader reads a text from a place on. Each method moves it past what it names and reports whether that is there. A
// reader that has failed stays where it came to.
type reader struct {
	s  string
	at int
}

// try moves the reader past what f reads, or leaves it where it is.
func (r *reader) try(f func() bool) bool {
	from := r.at
	if f() {
		return true
	}
	r.at = from
	return false
}

// one reads a byte of a set.
func (r *reader) one(set string) bool {
	if r.at < len(r.s) && strings.IndexByte(set, r.s[r.at]) >= 0 {
		r.at++
		return true
	}
	return false
}

func (r *reader) text(t string) bool {
	if strings.HasPrefix(r.s[r.at:], t) {
		r.at += len(t)
		return true
	}
	return false
}

// maybe reads a text if it is there.
func (r *reader) maybe(t string) bool {
	r.text(t)
	return true
}

// anyOf reads one of the words.
func (r *reader) anyOf(words []string) bool {
	const longest = 12 // nanoseconds
	from := r.at
	return r.run(isLetter, 1, longest) && slices.Contains(words, r.s[from:r.at]) && r.ends()
}

// run reads from least to most bytes of a class, and no more of them than there are.
func (r *reader) run(class func(byte) bool, least, most int) bool {
	from := r.at
	for r.at < len(r.s) && r.at-from < most && class(r.s[r.at]) {
		r.at++
	}
	return r.at-from >= least
}

func (r *reader) digits(least, most int) bool { return r.run(isDigit, least, most) }

// number reads a small number, which may have a fraction.
func (r *reader) number() bool {
	if !r.digits(1, smallDigits) || r.at < len(r.s) && isDigit(r.s[r.at]) {
		return false
	}
	r.fraction(".")
	return true
}

// smallDigits is how many digits a number has at most that is a count of something: one in seconds since 1970 has more.
const smallDigits = 9

// fraction reads the fraction of a number, if there is one.
func (r *reader) fraction(points string) {
	r.try(func() bool { return r.one(points) && r.digits(1, smallDigits) })
}

// ends reports whether no word goes on here.
func (r *reader) ends() bool {
	return r.at >= len(r.s) || !isWord(r.s[r.at]) && r.s[r.at] != '_' || r.at > 0 && !isWord(r.s[r.at-1])
}
