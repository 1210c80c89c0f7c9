// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package redact

import (
	_ "embed"
	"encoding/json"
	"math"
	"regexp"
	"strings"
	"sync"
)

// rulesJSON are the rules of gitleaks that recognize a secret by its text, as `make secret-rules` writes them. As a
// library, gitleaks would bring 170 packages and 6 MB, and needs nine seconds for 2 MiB.
//
//go:embed rules.json
var rulesJSON []byte

// rule is a rule of gitleaks.
type rule struct {
	Regex    string   `json:"regex"`
	Group    int      `json:"group"`
	Entropy  float64  `json:"entropy"`
	Keywords []string `json:"keywords"`

	compiled func() *regexp.Regexp
}

// matcher knows all words that a secret may be found by.
type matcher struct {
	words *keywords
	// kinds say what the words are of: a name, a shape, or a rule.
	kinds []kind
	rules []rule
}

type kind struct{ shape, rule int } // -1 for none; the word is a part of a name if it is of neither

// leastKeyword is the length of the shortest keyword that is looked for if a rule has longer ones.
const leastKeyword = 3

var theMatcher = sync.OnceValue(func() *matcher {
	var file struct {
		Rules []rule `json:"rules"`
	}
	if err := json.Unmarshal(rulesJSON, &file); err != nil {
		panic("redact: rules.json: " + err.Error()) // which a test reads
	}
	m := &matcher{rules: file.Rules}
	var all []string
	add := func(word string, k kind) {
		all = append(all, word)
		m.kinds = append(m.kinds, k)
	}
	for _, root := range nameRoots {
		add(root, kind{-1, -1})
	}
	for i := range shapes {
		for _, mark := range shapes[i].marks {
			add(mark, kind{i, -1})
		}
	}
	for i := range m.rules {
		r := &m.rules[i]
		r.compiled = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(r.Regex) })
		for _, word := range r.Keywords {
			if len(word) >= leastKeyword || len(r.Keywords) == 1 {
				add(strings.ToLower(word), kind{-1, i})
			}
		}
	}
	m.words = newKeywords(all)
	return m
})

// What a rule is tried on around one of its keywords, extended to white space.
const (
	windowBefore = 128
	windowBehind = 1 << 10
	windowEdge   = 256
)

// find returns the secrets of a rule in s, around the places of its keywords.
func (r *rule) find(s string, ends []int) (found []span) {
	done := 0
	for i := 0; i < len(ends); i++ {
		from, to := max(ends[i]-windowBefore, done), min(ends[i]+windowBehind, len(s))
		for i+1 < len(ends) && ends[i+1] < to {
			i++
			to = min(ends[i]+windowBehind, len(s))
		}
		for n := 0; from > done && n < windowEdge && !isSpace(s[from-1]); n++ {
			from--
		}
		for n := 0; to < len(s) && n < windowEdge && !isSpace(s[to]); n++ {
			to++
		}
		done = to
		for _, m := range r.compiled().FindAllStringSubmatchIndex(s[from:to], -1) {
			at := span{from + m[0], from + m[1]}
			for g := max(r.Group, 1); 2*g < len(m); g++ {
				if m[2*g] >= 0 && m[2*g+1] > m[2*g] {
					at = span{from + m[2*g], from + m[2*g+1]}
					break
				}
			}
			if secret := s[at.from:at.to]; r.isDistinct(secret) || entropy(secret) > r.Entropy {
				found = append(found, at)
			}
		}
	}
	return found
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

// isDistinct reports whether a secret has one of the words by which its rule is found: no other text looks like that.
func (r *rule) isDistinct(secret string) bool {
	secret = strings.ToLower(secret)
	for _, word := range r.Keywords {
		if len(word) > leastKeyword && strings.Contains(secret, strings.ToLower(word)) {
			return true
		}
	}
	return false
}

// entropy returns how many bits a byte of s has.
func entropy(s string) (bits float64) {
	var counts [256]int
	for i := range len(s) {
		counts[s[i]]++
	}
	for _, n := range counts {
		if n > 0 {
			p := float64(n) / float64(len(s))
			bits -= p * math.Log2(p)
		}
	}
	return bits
}

// spans returns the secrets that a text shows.
func (m *matcher) spans(s string) (found []span) {
	shaped := make([]bool, len(shapes))
	var ruled map[int][]int
	named := 0 // the end of the last name that was read
	for _, h := range m.words.all(s) {
		switch k := m.kinds[h.word]; {
		case k.shape >= 0:
			shaped[k.shape] = true
		case k.rule >= 0:
			if ruled == nil {
				ruled = map[int][]int{}
			}
			ruled[k.rule] = append(ruled[k.rule], h.end)
		case h.end > named:
			var values []span
			values, named = assigned(s, h.end)
			found = append(found, values...)
			if n := len(values); n > 0 && !strings.Contains(s[values[n-1].from:values[n-1].to], " ") {
				named = max(named, values[n-1].to)
			}
		}
	}
	for i, is := range shaped {
		if is {
			found = append(found, shapes[i].find(s)...)
		}
	}
	for i, ends := range ruled {
		found = append(found, m.rules[i].find(s, ends)...)
	}
	return append(found, tokens(s, false)...)
}
