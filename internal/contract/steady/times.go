// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package steady

import "strings"

// moment reads a time that begins with a digit: as RFC 3339, Go, its log and HTTP write it, or a time of day. A date
// alone is none.
func (r *reader) moment() bool {
	return r.try(r.dateTime) || r.try(r.basic) || r.try(r.dayMonth) || r.try(r.timeOfDay)
}

// namedMoment reads a time that begins with the name of a day or a month.
func (r *reader) namedMoment() bool {
	weekday := r.try(r.weekday)
	return r.try(r.monthDay) || weekday && r.dayMonth()
}

// dateTime reads 2006-01-02T15:04:05.999Z, 2006/01/02 15:04:05, and 2006-01-02 15:04:05.999 -0700 MST m=+0.001.
func (r *reader) dateTime() bool {
	const between = "-/."
	if !r.digits(4, 4) || !r.one(between) || !r.digits(2, 2) || !r.one(between) || !r.digits(2, 2) {
		return false
	}
	if !r.one("Tt ") && !r.text(", ") || !r.digits(2, 2) || !r.minutes() {
		return false
	}
	r.seconds()
	r.zone()
	r.try(func() bool {
		return r.text(" m=") && r.one("+-") && r.digits(1, 12) && r.one(".") && r.digits(1, smallDigits)
	})
	return true
}

// basic reads 20060102T150405Z.
func (r *reader) basic() bool {
	if !r.digits(8, 8) || !r.one("T") || !r.digits(6, 6) {
		return false
	}
	r.fraction(".")
	r.one("Z")
	return r.ends()
}

// dayMonth reads 02 Jan 2006 15:04:05 MST, and 02-Jan-06 15:04.
func (r *reader) dayMonth() bool {
	if !r.digits(1, 2) || !r.one(" -") || !r.month() || !r.one(" -") || !r.digits(2, 4) {
		return false
	}
	r.one(",")
	if !r.one(" ") || !r.digits(1, 2) || !r.minutes() {
		return false
	}
	r.seconds()
	r.namedZone()
	return true
}

// monthDay reads Jan _2 15:04:05 MST 2006, and Jan 2, 2006, 15:04:05.
func (r *reader) monthDay() bool {
	if !r.month() || !r.spaces() || !r.digits(1, 2) {
		return false
	}
	r.one(",")
	if !r.one(" ") {
		return false
	}
	r.try(func() bool { return r.digits(4, 4) && (r.text(", ") || r.one(" ")) })
	if !r.digits(1, 2) || !r.minutes() || !r.seconds() {
		return false
	}
	r.namedZone()
	r.namedZone()
	r.try(func() bool { return r.one(" ") && r.digits(4, 4) && r.ends() })
	return true
}

// timeOfDay reads 15:04:05, 3:04PM and 15:04 UTC. Without either, 15:04 may be anything.
func (r *reader) timeOfDay() bool {
	if !r.digits(1, 2) || !r.minutes() {
		return false
	}
	exact := r.seconds()
	noon := r.try(func() bool { return r.maybe(" ") && r.anyOf([]string{"AM", "PM"}) })
	zone := r.zone()
	return exact || noon || zone
}

// minutes reads :04.
func (r *reader) minutes() bool { return r.one(":") && r.digits(2, 2) }

// seconds reads :05.999, if it is there.
func (r *reader) seconds() bool {
	if !r.try(r.minutes) {
		return false
	}
	r.fraction(".,")
	return true
}

// zone reads Z, UTC, GMT, or an offset, after which Go has a name, or the offset again.
func (r *reader) zone() bool {
	return r.try(func() bool {
		r.one(" ")
		if r.anyOf([]string{"Z", "z", "UTC", "GMT"}) {
			return true
		}
		if !r.offset() {
			return false
		}
		r.try(func() bool { return r.one(" ") && (r.try(r.abbreviation) || r.offset()) })
		return true
	})
}

// namedZone reads a zone, which may be an abbreviation, if there is one.
func (r *reader) namedZone() {
	if !r.zone() {
		r.try(func() bool { return r.one(" ") && r.abbreviation() })
	}
}

// offset reads -07:00, -0700 and -07.
func (r *reader) offset() bool {
	if !r.one("+-") || !r.digits(2, 2) {
		return false
	}
	r.try(func() bool { return r.maybe(":") && r.digits(2, 2) })
	return r.ends()
}

func (r *reader) abbreviation() bool {
	return r.run(func(c byte) bool { return c >= 'A' && c <= 'Z' }, 3, 5) && r.ends()
}

func (r *reader) spaces() bool { return r.one(" ") && r.maybe(" ") }

// weekday reads the name of a day, with what is before a date.
func (r *reader) weekday() bool {
	if !r.named("MonTueWedThuFriSatSun") {
		return false
	}
	r.one(",")
	return r.spaces()
}

func (r *reader) month() bool { return r.named("JanFebMarAprMayJunJulAugSepOctNovDec") }

// named reads a word that begins with one of the names of three letters, and is not much longer.
func (r *reader) named(names string) bool {
	const short, longest = 3, 9 // Wednesday, September
	from := r.at
	if !r.run(isLetter, short, longest) || !r.ends() {
		return false
	}
	return strings.Index(names, r.s[from:from+short])%short == 0
}
