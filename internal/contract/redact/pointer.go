// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-openapi/jsonpointer"

	"github.com/hookgate/hookgate/internal/base/limits"
)

// pattern is a JSON pointer, as its tokens. The token "*" stands for any one, and "**" for any number of them.
type pattern []string

const (
	anyOne  = "*"
	anyMany = "**"
)

// parsePattern returns the pattern that a text is.
func parsePattern(s string) (pattern, error) {
	switch {
	case s == "" || s[0] != '/':
		return nil, fmt.Errorf("%q: want a JSON pointer, such as /items/*/object/spec/password", s)
	case len(s) > limits.RecordPatternBytes:
		return nil, fmt.Errorf("a JSON pointer has more than %d bytes", limits.RecordPatternBytes)
	}
	p := pattern(strings.Split(s[1:], "/"))
	for i := range p {
		p[i] = jsonpointer.Unescape(p[i])
	}
	return p, nil
}

// Patterns are JSON pointers that may have the tokens * and **. The zero value matches nothing.
type Patterns []pattern

// ParsePatterns returns the patterns that the texts are.
func ParsePatterns(texts []string) (Patterns, error) {
	if len(texts) > limits.RecordPatterns {
		return nil, fmt.Errorf("%d JSON pointers, want at most %d", len(texts), limits.RecordPatterns)
	}
	var all Patterns
	var errs []error
	for _, s := range texts {
		p, err := parsePattern(s)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		all = append(all, p)
	}
	return all, errors.Join(errs...)
}

// Matches reports whether a pointer, or one above it, is one of the patterns.
func (p Patterns) Matches(pointer string) bool {
	at := p.start()
	for token := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if at = p.next(at, jsonpointer.Unescape(token)); at.whole {
			return true
		}
	}
	return false
}

// places are how far the patterns match the pointer of a value.
type places struct {
	// whole means that one of them matches the value, or one around it.
	whole bool
	open  []place
}

// place is the token of a pattern that is to match next.
type place struct{ pattern, token int }

// start returns the places of the value at the top.
func (p Patterns) start() (at places) {
	for i := range p {
		at.open = p.add(at.open, place{i, 0})
	}
	return at
}

// anywhere returns the places of a value that may be any in a text for which the patterns are.
func (p Patterns) anywhere() (at places) {
	for i := range p {
		for token := range p[i] {
			at.open = p.add(at.open, place{i, token})
		}
	}
	return at
}

// add adds a place, and those behind tokens that may match nothing.
func (p Patterns) add(open []place, to place) []place {
	if slices.Contains(open, to) {
		return open
	}
	open = append(open, to)
	if tokens := p[to.pattern]; tokens[to.token] == anyMany && to.token+1 < len(tokens) {
		open = p.add(open, place{to.pattern, to.token + 1})
	}
	return open
}

// next returns the places of the member or the element that token names.
func (p Patterns) next(at places, token string) (next places) {
	if at.whole || len(at.open) == 0 {
		return places{whole: at.whole}
	}
	for _, o := range at.open {
		tokens := p[o.pattern]
		want := tokens[o.token]
		if want == anyMany {
			if o.token+1 == len(tokens) {
				return places{whole: true}
			}
			next.open = p.add(next.open, o)
			continue
		}
		if want != anyOne && want != token {
			continue
		}
		if o.token+1 == len(tokens) {
			return places{whole: true}
		}
		next.open = p.add(next.open, place{o.pattern, o.token + 1})
	}
	return next
}
