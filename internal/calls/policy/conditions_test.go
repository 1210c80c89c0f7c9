// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/hookgate/hookgate/internal/base/limits"
)

func compiler(t testing.TB) *Compiler {
	t.Helper()
	c, err := NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// compiled returns conditions named by their place: a, b and so on.
func compiled(t testing.TB, expressions ...string) *Conditions {
	t.Helper()
	var conditions []Condition
	for i, e := range expressions {
		conditions = append(conditions, Condition{Name: string(rune('a' + i)), Expression: e})
	}
	c, errs := compiler(t).Compile(conditions)
	for _, err := range errs {
		t.Fatal(err)
	}
	return c
}

func decoded(text string) *Request { return NewRequest([]byte(text), Guard{}) }

const request = `{"settings":{"region":"north"},"big":9007199254740993,"part":0.5,"none":null,"list":[1,2,3],
	"cluster":{"metadata":{"name":"c1","labels":{"tier":"gold"}},"spec":{"paused":true}}}`

func TestMatch(t *testing.T) {
	tests := map[string]struct {
		reason      string
		expressions []string
		want        bool
		kind        error
		text        string
	}{
		"True": {"what holds, matches", []string{`request.cluster.metadata.name == 'c1'`}, true, nil, ""},
		"False": {
			"what does not, does not", []string{`request.cluster.metadata.name == 'c2'`}, false, nil, "",
		},
		"All": {
			"all have to be true", []string{`true`, `request.settings.region == 'south'`}, false, nil, "",
		},
		"WholeNumbers": {
			"a whole number is exact, above 2^53 too", []string{`request.big == 9007199254740993`}, true, nil, "",
		},
		"WholeNumbersNot": {
			"its neighbour is another number", []string{`request.big == 9007199254740992`}, false, nil, "",
		},
		"Fractions": {"a fraction and a whole number compare", []string{`request.part < 1`}, true, nil, ""},
		"NumberTypes": {
			"so do numbers whose types differ when they are compiled", []string{`double(request.part) < 1 && 1u < 2`},
			true, nil, "",
		},
		"Null": {"null is a value", []string{`request.none == null`}, true, nil, ""},
		"Has": {
			"has() asks before reading", []string{`!has(request.cluster.metadata.annotations)`}, true, nil, "",
		},
		"Optional": {
			"an optional value has a default", []string{`request.?settings.?size.orValue('small') == 'small'`}, true,
			nil, "",
		},
		"Dynamic": {
			"a value that happens to be true is true", []string{`request.cluster.spec.paused`}, true, nil, "",
		},
		"Macro": {
			"macros work on lists and maps",
			[]string{`request.list.exists(i, i == 2) && request.settings.all(k, k != '')`}, true, nil, "",
		},
		"Regex": {
			"regular expressions work", []string{`request.cluster.metadata.name.matches('^c[0-9]$')`}, true, nil, "",
		},
		"Missing": {
			"a member that is not there fails", []string{`request.cluster.spec.size > 1`}, false, ErrEvaluation,
			`match condition "a": the expression fails for this request: no such key: size`,
		},
		"NotBool": {
			"a value that is no bool fails", []string{`request.cluster.metadata.name`}, false, ErrNotBool,
			`match condition "a": the expression is neither true nor false for this request`,
		},
		"FalseBeforeError": {
			"one that is false decides, whatever else fails", []string{`request.nothing == 1`, `false`}, false, nil, "",
		},
		"FirstError": {
			"the first that fails is named", []string{`true`, `request.nothing == 1`, `request.list`}, false,
			ErrEvaluation, `match condition "b": the expression fails for this request: no such key: nothing`,
		},
		"Cost": {
			"an expression that would take too long is given up", []string{
				`request.list.all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, [1,2,3,4,5,6,7,8,9,10].all(d, [1,2,3,4,5,6,7,8,9,10].all(e, [1,2,3,4,5,6,7,8,9,10].all(f, a+b+c+d+e+f > 0))))))`,
			},
			false, ErrCost, `match condition "a": the expression costs too much for this request`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := compiled(t, tc.expressions...)
			got, err := c.Match(t.Context(), decoded(request))
			if got != tc.want || !errors.Is(err, tc.kind) {
				t.Fatalf("%s: got %v, %v, want %v, %v", tc.reason, got, err, tc.want, tc.kind)
			}
			var evaluation *EvaluationError
			if tc.kind != nil && (!errors.As(err, &evaluation) || evaluation.Cause == nil || err.Error() != tc.text) {
				t.Errorf("%s: got %q (%v), want %q with a cause", tc.reason, err, evaluation, tc.text)
			}
		})
	}
}

func TestCompileErrorsNameThePosition(t *testing.T) {
	tests := map[string]struct {
		reason     string
		expression string
		want       string
	}{
		"Undeclared": {
			"only request is known", "request.a == 1 &&\n  object.b",
			"line 2, column 3: undeclared reference to 'object'",
		},
		"Syntax":  {"what does not parse", "request.a ==", "line 1, column 13: Syntax error"},
		"Types":   {"what cannot be", "1 + 'a' == 2", "line 1, column 3: found no matching overload for '_+_'"},
		"NotBool": {"what can never be true or false", "'yes'", "must be true or false, but is of type string"},
		"Regex": {
			"a literal that is not a regular expression", "'a'.matches('(')",
			"line 1, column 13: invalid matches argument",
		},
		"TooLong": {
			"the size is bounded", strings.Repeat(" ", limits.ConditionCharacters) + "true",
			"expression code point size exceeds limit",
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c, errs := compiler(t).Compile(
				[]Condition{{Name: "ok", Expression: "true"}, {Name: "bad", Expression: tc.expression}},
			)
			if c != nil || len(errs) != 1 || errs[0].Index != 1 || !strings.Contains(errs[0].Error(), tc.want) {
				t.Errorf("%s: got %v, %v, want error 1 with %q", tc.reason, c, errs, tc.want)
			}
		})
	}
	if c, errs := compiler(t).Compile(nil); c != nil || errs != nil {
		t.Errorf("no conditions are nil, got %v, %v", c, errs)
	}
}

func TestMatchEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	// Few enough steps for the limit of cost, and enough for the context to be looked at.
	c := compiled(
		t,
		`[1,2,3,4,5,6,7,8,9,10].all(a, [1,2,3,4,5,6,7,8,9,10].all(b, [1,2,3,4,5,6,7,8,9,10].all(c, request.list[0] + a + b + c > 0)))`,
	)
	if got, err := c.Match(ctx, decoded(request)); got || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, %v, want canceled", got, err)
	}
	if got, err := c.Match(t.Context(), decoded(request)); !got || err != nil {
		t.Errorf("without an end of the context it is true, got %v, %v", got, err)
	}
}

func TestMatchAtTheSameTime(t *testing.T) {
	c := compiled(t, `request.list.exists(i, i == 3)`, `request.cluster.metadata.name.startsWith('c')`)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			v := decoded(request)
			for range 100 {
				if got, err := c.Match(t.Context(), v); !got || err != nil {
					t.Errorf("got %v, %v", got, err)
					return
				}
			}
		})
	}
	wg.Wait()
}
