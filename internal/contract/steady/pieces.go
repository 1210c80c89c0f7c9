// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package steady

import (
	"slices"
	"strings"
	"time"
)

// piece is a part of a text.
type piece struct {
	text string
	as   string // the placeholder; empty for what stays
	done bool   // of progress
}

// pieces returns the parts of a text.
func pieces(s string) []piece {
	var all []piece
	kept := 0     // where what stays begins
	counted := -1 // where a number is that grows with each call
	for i := 0; i < len(s); {
		if !isWord(s[i]) {
			i++
			continue
		}
		word := reader{s, i}
		word.run(isWord, 1, len(s))
		to, as, done := match(s, i, word.at, i == counted)
		if to == i {
			counted, i = max(counted, numbered(s, i, word.at)), word.at
			continue
		}
		for to < len(s) && isWord(s[to]) && isWord(s[to-1]) {
			to++ // the rest of the word
		}
		if i > kept {
			all = append(all, piece{text: s[kept:i]})
		}
		all = append(all, piece{text: s[i:to], as: as, done: done})
		i, kept = to, to
	}
	if kept < len(s) {
		all = append(all, piece{text: s[kept:]})
	}
	return all
}

// match returns the end of what begins with a word and changes, or shows progress; where it begins for neither. grows
// says that a number there grows with each call.
func match(s string, from, end int, grows bool) (to int, as string, done bool) {
	word, first := s[from:end], s[from]
	inName := from > 1 && strings.IndexByte("-._", s[from-1]) >= 0 && (isWord(s[from-2]) || s[from-2] == '>')
	r := reader{s, from}
	digit, named := isDigit(first), first >= 'A' && first <= 'Z'
	isTime := digit && r.try(r.moment) || named && r.try(r.namedMoment)
	switch {
	case isTime && isMoment(s, from, r.at, inName):
		return r.at, aTime, false
	case isHex(first) && !isTime && r.try(r.id):
		return r.at, anID, false
	case isTime:
		return from, "", false // a part of the address of a network interface
	case digit && !inName && r.try(r.durations):
		return r.at, aDuration, false
	case digit && !inName && r.try(r.progress):
		return r.at, "", true
	case digit && !inName && r.try(r.times), digit && r.try(r.large), grows && digit && isNumber(word):
		return max(r.at, end), aNumber, false
	case isID(word):
		return end, anID, false
	case isClientPort(s, from, word):
		return end, aPort, false
	}
	return from, "", false
}

// isMoment reports whether what reads as a time is not a part of something else: of the name of an object, or of the
// address of a network interface.
func isMoment(s string, from, to int, inName bool) bool {
	more := to+1 < len(s) && s[to] == ':' && isWord(s[to+1])
	return !more && (from == 0 || s[from-1] != ':') && (!inName || to-from >= len(time.DateTime))
}

// id reads a UUID or a pointer.
func (r *reader) id() bool {
	if r.try(func() bool { return r.one("0") && r.one("xX") && r.run(isHex, 4, len(r.s)) && r.ends() }) {
		return true
	}
	for i, n := range []int{8, 4, 4, 4, 12} {
		if i > 0 && !r.one("-") || !r.run(isHex, n, n) {
			return false
		}
	}
	return r.ends()
}

// The units of durations, after a number with or without a space, and those that only follow a number at once, as Go
// and kubectl write them.
var (
	unitWords = []string{
		"nanoseconds", "nanosecond", "microseconds", "microsecond", "milliseconds", "millisecond", "seconds", "second",
		"secs", "sec", "minutes", "minute", "mins", "min", "hours", "hour", "hrs", "hr", "days", "day", "weeks", "week",
		"ms", "s", "h",
	}
	goUnits = []string{"ns", "us", "µs", "μs", "ms", "s", "m", "h", "d", "w", "y"}
)

// durations reads a duration, or several that are joined, or how much of one has passed.
func (r *reader) durations() bool {
	if r.try(func() bool { return r.number() && r.of() && r.duration() }) {
		return true
	}
	if !r.duration() {
		return false
	}
	joined := func() bool { return (r.text(", ") || r.text(" and ") || r.text(" ")) && r.duration() }
	for range 5 {
		r.try(joined)
	}
	return true
}

func (r *reader) duration() bool {
	return r.try(r.goDuration) || r.try(func() bool { return r.number() && r.maybe(" ") && r.anyOf(unitWords) })
}

// goDuration reads 1m30.5s, and 3d4h.
func (r *reader) goDuration() bool {
	part := func() bool { return r.number() && r.unit() }
	if !part() {
		return false
	}
	for range len("ywdhms") {
		r.try(part)
	}
	return r.ends()
}

func (r *reader) unit() bool {
	return slices.ContainsFunc(goUnits, r.text)
}

// progress reads 3 of 10, 3/10 and 30 %.
func (r *reader) progress() bool {
	if !r.number() {
		return false
	}
	return r.try(func() bool { return r.maybe(" ") && r.one("%") }) ||
		r.of() && r.maybe("the ") && r.number() && r.ends()
}

func (r *reader) of() bool {
	return r.text(" of ") || r.text(" out of ") || r.try(func() bool { return r.maybe(" ") && r.one("/") && r.maybe(" ") })
}

// times reads how often something was done: 17 times, 17 attempts, 17th attempt.
func (r *reader) times() bool {
	if !r.digits(1, smallDigits) {
		return false
	}
	_ = r.text("st") || r.text("nd") || r.text("rd") || r.text("th")
	return r.one(" ") && r.anyOf([]string{
		"attempt", "attempts", "retry", "retries", "try", "tries", "time", "times", "call", "calls",
	})
}

// large reads a number that is too long for a count, such as one in seconds since 1970.
func (r *reader) large() bool {
	if !r.digits(smallDigits+1, len(r.s)) || !r.ends() {
		return false
	}
	r.fraction(".")
	return true
}

// growing are the names of numbers that grow with each call.
var growing = []string{
	"attempt", "attempts", "retry", "retries", "try", "tries", "request", "call", "poll", "iteration", "resourceVersion",
	"sequence", "seq", "goroutine", "pid", "nonce",
}

// numbered returns where the number is that a word is the name of: attempt 3, request #3, "resourceVersion": "3". It is
// -1 if the word is no such name.
func numbered(s string, from, end int) int {
	word := s[from:end]
	for _, name := range growing {
		if len(word) != len(name) || !strings.EqualFold(word, name) {
			continue
		}
		r := reader{s, end}
		_ = r.text(" number") || r.text(" no.") || r.text(" no") || r.text(" id")
		r.one(`"'`)
		if !r.run(func(c byte) bool { return strings.IndexByte(" =:#", c) >= 0 }, 1, 3) {
			return -1
		}
		r.one(`"'`)
		return r.at
	}
	return -1
}

// isID reports whether a word is one that no person chose: in base 16, or long and of many letters and digits.
func isID(word string) bool {
	const leastHex, leastAny = 8, 16
	if len(word) < leastHex {
		return false
	}
	digits, hex := 0, true
	for i := range len(word) {
		if isDigit(word[i]) {
			digits++
		}
		hex = hex && isHex(word[i])
	}
	letters := len(word) - digits
	return hex && digits > 0 && letters > 0 || len(word) >= leastAny && digits > 1 && letters > 1
}

// isClientPort reports whether a word is the port of an IP address, of those that systems choose for connections.
func isClientPort(s string, from int, word string) bool {
	const least = "32768"
	if len(word) != len(least) || word < least || !isNumber(word) || from < 2 || s[from-1] != ':' {
		return false
	}
	host := s[:from-1]
	if host[len(host)-1] == ']' || strings.HasSuffix(host, "localhost") {
		return true
	}
	number := len(host)
	for number > 0 && isDigit(host[number-1]) && len(host)-number < len("255") {
		number--
	}
	return number < len(host) && number > 1 && host[number-1] == '.' && isDigit(host[number-2])
}

func isNumber(word string) bool { return strings.Trim(word, "0123456789") == "" }

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func isHex(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }

func isLetter(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

func isWord(c byte) bool { return isDigit(c) || isLetter(c) }
