// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"
	"math"
	"math/bits"
	"strconv"
	"strings"

	"github.com/google/cel-go/common/operators"
	"github.com/google/cel-go/common/overloads"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	kubernetes "k8s.io/apiserver/pkg/cel"
)

// What functions do, counted in bytes that are looked at, ten of which are a step.
const (
	// elementLook is what it takes to look at an element, besides its text.
	elementLook = 8
	// elementBytes is the memory of an element of a list that a function returns, with that of growing the list.
	elementBytes = 64
	// textBytes is the memory that a function takes for each byte of a text: it has four for each character, or a part
	// that it quotes.
	textBytes = 8
	// partBytes is the same where each byte may become a part of a version or of a query.
	partBytes = 64
	// verbLook is what format does for a verb: %f finds out how numbers are written in a language.
	verbLook = 1000
	// formatStates is the size of the regular expressions of formats.
	formatStates = 64
	// A regular expression that is no literal is compiled for each call. compileLook is what a character of it takes,
	// and repeats how often a part of it may be repeated.
	compileLook = 100
	repeats     = 1000
	stateBytes  = 128
)

// cost is what a call takes: bytes that are looked at, and bytes that are allocated.
type cost struct{ look, bytes int }

// pay notes the cost of a call before it is made.
func (r *Request) pay(c cost) {
	if c.look < 0 || c.bytes < 0 { // an overflow
		c = cost{look: math.MaxInt}
	}
	r.spend(c.look)
	r.take(c.bytes)
}

// spend notes that so many bytes are looked at.
func (r *Request) spend(look int) {
	if r.spent += uint64(look / 10); r.spent > r.limit {
		r.abort(fmt.Errorf("%w: more than %d", ErrCost, r.limit))
	}
}

// costOf returns the cost of the calls of a function with arguments in which no list is of the request.
func costOf(function string) func(r *Request, args []ref.Val) cost {
	if special, ok := costs()[function]; ok {
		return special
	}
	// Other functions look at all of their arguments, and make something of them that is about as large.
	return func(r *Request, args []ref.Val) cost { return textCost(r.size(args...)) }
}

func textCost(look int) cost { return cost{look, textBytes * look} }

// costs are the functions whose costs are not those of costOf.
func costs() map[string]func(r *Request, args []ref.Val) cost {
	compare := func(r *Request, args []ref.Val) cost { return cost{look: r.nested(args...)} }
	parts := func(r *Request, args []ref.Val) cost { n := r.size(args...); return cost{n, partBytes * n} }
	regex := func(_ *Request, args []ref.Val) cost { return regexCost(args) }
	pairs := func(r *Request, args []ref.Val) cost {
		a, b := args[0], args[len(args)-1]
		look := product(r.size(a), elements(b)) + product(r.size(b), elements(a))
		return cost{look / elementLook, elementBytes * elements(a)} // an element is compared in no time
	}
	sorted := func(r *Request, args []ref.Val) cost {
		n := elements(args[0])
		return cost{product(r.size(args...), bits.Len(uint(n))+1), elementBytes * n}
	}
	search := func(r *Request, args []ref.Val) cost {
		n := r.size(args...)
		if s, ok := args[0].(types.String); ok && len(args) > 1 {
			return cost{n + product(len(s), textLen(args[1]))/elementLook, textBytes * n}
		}
		return cost{look: n}
	}
	return map[string]func(r *Request, args []ref.Val) cost{
		operators.Equals: compare, operators.NotEquals: compare, operators.In: compare, "includes": compare,
		overloads.Matches: regex, "find": regex, "findAll": regex,
		"quantity": quantityCost, "isQuantity": quantityCost,
		"semver": parts, "isSemver": parts, "url": parts, "isURL": parts, "getQuery": parts,
		"sets.contains": pairs, "sets.equivalent": pairs, "sets.intersects": pairs, "distinct": pairs,
		"sort": sorted, "@sortByAssociatedKeys": sorted,
		"indexOf": search, "lastIndexOf": search,
		"replace":     replaceCost,
		"split":       splitCost,
		"join":        joinCost,
		"format":      formatCost,
		"flatten":     flattenCost,
		"validate":    func(r *Request, args []ref.Val) cost { return textCost(product(r.size(args...), formatStates)) },
		"lists.range": rangeCost,
		"cel.@mapInsert": func(r *Request, args []ref.Val) cost {
			n := 1
			if len(args) == 2 {
				n = elements(args[1])
			}
			return cost{product(n, elementLook), product(n, keyCost)}
		},
	}
}

// quantityCost is the cost of a number that may have any number of digits, or an exponent that gives it as many: to
// work with them takes time with the square of their number.
func quantityCost(r *Request, args []ref.Val) cost {
	s, _ := args[0].(types.String)
	digits := int64(r.size(args...))
	if i := strings.LastIndexAny(string(s), "eE"); i >= 0 {
		// Without an exponent, as in 2Ei, it is 0, and beyond an int64 the largest one.
		exponent, _ := strconv.ParseInt(string(s[i+1:]), 10, 64)
		exponent = min(max(exponent, -math.MaxInt32), math.MaxInt32)
		digits += max(exponent, -exponent)
	}
	return cost{product(int(digits), int(digits)), textBytes * int(digits)}
}

func replaceCost(r *Request, args []ref.Val) cost {
	n := r.size(args...)
	s, ok := args[0].(types.String)
	if !ok || len(args) < 3 {
		return textCost(n)
	}
	from, _ := args[1].(types.String)
	n += product(strings.Count(string(s), string(from)), textLen(args[2]))
	return cost{n, n}
}

func splitCost(r *Request, args []ref.Val) cost {
	n := r.size(args...)
	s, ok := args[0].(types.String)
	if !ok || len(args) < 2 {
		return textCost(n)
	}
	separator, _ := args[1].(types.String)
	parts := 1 + strings.Count(string(s), string(separator))
	return cost{n + product(parts, elementLook), product(parts, elementBytes)}
}

func joinCost(r *Request, args []ref.Val) cost {
	n := r.size(args...)
	if len(args) > 1 {
		n += product(elements(args[0]), textLen(args[1]))
	}
	return cost{n, 2 * n} // the text grows as it is written
}

func rangeCost(_ *Request, args []ref.Val) cost {
	n, _ := args[0].(types.Int)
	return cost{product(int(max(0, n)), elementLook), product(int(max(0, n)), elementBytes)}
}

// flattenCost looks at all elements as often as they are nested: each list makes one of its elements.
func flattenCost(r *Request, args []ref.Val) cost {
	w := walk{r: r, all: true}
	w.add(args[0], 1)
	return textCost(w.look)
}

// formatCost looks at all that is formatted, as often as it is nested in lists and objects: each of them makes a text
// of its elements.
func formatCost(r *Request, args []ref.Val) cost {
	w := walk{r: r, all: true}
	w.add(args[1], 1)
	n := w.look + product(strings.Count(fmt.Sprint(args[0].Value()), "%"), verbLook)
	return cost{n, textBytes * n}
}

// matchCost is the cost of a regular expression with so many states for a text: each character may be looked at once
// for each state.
func matchCost(text ref.Val, states int) cost {
	n := textLen(text)
	return cost{product(n, states), product(n, elementBytes)}
}

// regexCost is the cost of a regular expression that is compiled first.
func regexCost(args []ref.Val) cost {
	pattern, _ := args[1].(types.String)
	states := len(pattern) + product(repeats, strings.Count(string(pattern), "{"))
	c := matchCost(args[0], 1+states)
	return cost{c.look + product(states, compileLook), c.bytes + product(states, stateBytes)}
}

// product returns a product that is not negative, or the largest number if it overflows.
func product(a, b int) int {
	over, p := bits.Mul64(uint64(a), uint64(b))
	if over > 0 || p > math.MaxInt32*elementLook {
		return math.MaxInt32 * elementLook
	}
	return int(p)
}

func textLen(v ref.Val) int {
	s, _ := v.(types.String)
	return len(s)
}

// elements returns the number of elements of a list or a map.
func elements(v ref.Val) int {
	if s, ok := v.(traits.Sizer); ok && v.Type() != types.StringType && v.Type() != types.BytesType {
		if n, ok := s.Size().(types.Int); ok {
			return int(n)
		}
	}
	return 0
}

// size returns what it takes to look at all of some values: the length of their texts, and elementLook for each
// element. Lists and objects of the request are one element: they are counted as they are read.
func (r *Request) size(values ...ref.Val) int {
	w := walk{r: r}
	for _, v := range values {
		w.add(v, 1)
	}
	return w.look
}

// nested is size without texts that are values themselves.
func (r *Request) nested(values ...ref.Val) int {
	w := walk{r: r}
	for _, v := range values {
		if elements(v) > 0 {
			w.add(v, 1)
		}
	}
	return w.look
}

// walk looks at all parts of values. What is in several of them is looked at as often, as functions do.
type walk struct {
	r    *Request
	all  bool // whether lists and objects of the request are looked at, and each level counts what is in it
	look int
}

func (w *walk) add(v ref.Val, level int) {
	n := elementLook
	switch v := v.(type) {
	case types.String:
		n += len(v)
	case types.Bytes:
		n += len(v)
	case kubernetes.URL:
		n += len(v.Host) + len(v.Path) + len(v.RawQuery) + len(v.Opaque) + len(v.Fragment)
	case kubernetes.Semver:
		for _, p := range v.Pre {
			n += elementLook + len(p.VersionStr)
		}
		for _, b := range v.Build {
			n += elementLook + len(b)
		}
	}
	if w.all {
		n *= level
	}
	if w.look += n; uint64(w.look/10) > w.r.limit-min(w.r.spent, w.r.limit) {
		w.r.spend(w.look)
	}
	switch v := v.(type) {
	case *types.Optional:
		if v.HasValue() {
			w.add(v.GetValue(), level)
		}
	case *object, *list:
		if !w.all {
			return
		}
	}
	switch v := v.(type) {
	case traits.Lister:
		for it := v.Iterator(); it.HasNext() == types.True; {
			w.add(it.Next(), level+1)
		}
	case traits.Mapper:
		for it := v.Iterator(); it.HasNext() == types.True; {
			key := it.Next()
			w.add(key, level+1)
			if value, ok := v.Find(key); ok {
				w.add(value, level+1)
			}
		}
	}
}
