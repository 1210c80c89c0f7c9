// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/internal/base/limits"
)

func TestExpressionAtTheLimit(t *testing.T) {
	for name, filler := range map[string]string{"ASCII": "x", "CodePoints": "ü"} {
		most := `"" != "` + strings.Repeat(filler, 4096-len(`"" != ""`)) + `"`
		if c, errs := compiler(t).Compile([]Condition{{Name: "a", Expression: most}}); len(errs) != 0 || c == nil {
			t.Errorf("%s: 4096 characters: %v", name, errs)
		}
		_, errs := compiler(t).Compile([]Condition{{Name: "a", Expression: most + " "}})
		const want = "expression code point size exceeds limit: size: 4097, limit 4096"
		if len(errs) != 1 || !strings.Contains(errs[0].Error(), want) {
			t.Errorf("%s: 4097 characters: %v", name, errs)
		}
	}
}

// TestMistakesTakeLittleMemory compiles expressions that fill their limit and are wrong at their end. CEL's own text of
// such a mistake takes megabytes.
func TestMistakesTakeLittleMemory(t *testing.T) {
	c := compiler(t)
	for name, expression := range map[string]string{
		"One":  strings.Repeat(" ", limits.ConditionCharacters-1) + "'",
		"Many": strings.Repeat(" ", limits.ConditionCharacters/2) + strings.Repeat("$", limits.ConditionCharacters/2),
		"Type": strings.Repeat(" ", limits.ConditionCharacters-len("1+'a'")) + "1+'a'",
	} {
		compileMemory.Check(t, len(expression), func() {
			if _, errs := c.Compile([]Condition{{Name: "a", Expression: expression}}); len(errs) != 1 {
				t.Errorf("%s: %d errors, want 1", name, len(errs))
			}
		})
	}
}

// TestCostAtTheLimit looks through texts: of the largest one whose cost is the limit, and of one that costs one more.
func TestCostAtTheLimit(t *testing.T) {
	c := compiled(t, `request.contains('x')`)
	cost := func(n int) error {
		got, err := c.Match(t.Context(), decoded(`"`+strings.Repeat("y", n)+`x"`))
		if err == nil && !got {
			t.Errorf("a text of %d characters does not match", n+1)
		}
		return err
	}
	// One for the variable, one for the function, and one for each ten characters.
	const most = 10*(CostLimit-1) - 2
	if err := cost(most); err != nil {
		t.Errorf("a cost of %d: %v", CostLimit, err)
	}
	if err := cost(most + 1); !errors.Is(err, ErrCost) {
		t.Errorf("a cost of %d: got %v, want %v", CostLimit+1, err, ErrCost)
	}
}

// Five conditions that cost half of CostLimit each cost TotalCostLimit together. What comes after them may cost nothing.
func TestTotalCostAtTheLimit(t *testing.T) {
	const half = `request.contains('x')`
	for name, tc := range map[string]struct {
		after string
		more  int // characters that a condition reads beyond the limit
		match bool
		text  string
	}{
		"AtTheLimit": {after: "true", match: true},
		"OneBeyond":  {after: "true", more: 1, text: `match condition "e": the expression costs too much for this request`},
		// It would decide, if there were anything left to find it out.
		"FalseBeyond": {after: "false", more: 1, text: `match condition "e": the expression costs too much for this request`},
		"FalseAfter":  {after: "false"},
		"AnyCost":     {after: "request != ''", text: `match condition "f": the expression costs too much for this request`},
	} {
		c := compiled(t, half, half, half, half, half, tc.after)
		// One for the variable, one for the function, and one for each ten characters.
		got, err := c.Match(t.Context(), decoded(`"`+strings.Repeat("y", 10*(CostLimit/2-1)-2+tc.more)+`x"`))
		if got != tc.match || (err == nil) != (tc.text == "") || err != nil && (!errors.Is(err, ErrCost) || err.Error() != tc.text) {
			t.Errorf("%s: got %t, %v", name, got, err)
		}
	}
}

// TestNumbersOfDifferentTypes compares literals: where the types are known only when the request is, CEL compares
// them anyway.
func TestNumbersOfDifferentTypes(t *testing.T) {
	for _, expression := range []string{`1 < 1.5`, `2u > 1`, `size(request.list) >= 2.5`, `1.0 <= 1u`} {
		if got, err := compiled(t, expression).Match(t.Context(), decoded(request)); !got || err != nil {
			t.Errorf("%s: got %t, %v", expression, got, err)
		}
	}
}

func TestOneErrorForEachCondition(t *testing.T) {
	_, errs := compiler(t).Compile(
		[]Condition{{Name: "a", Expression: "x"}, {Name: "b", Expression: "true"}, {Name: "c", Expression: "y || z"}},
	)
	if len(errs) != 2 || errs[0].Index != 0 || errs[1].Index != 2 {
		t.Fatalf("got %v", errs)
	}
	want := "line 1, column 1: undeclared reference to 'y' (in container ''); " +
		"line 1, column 6: undeclared reference to 'z' (in container '')"
	if errs[1].Error() != want {
		t.Errorf("got  %s\nwant %s", errs[1], want)
	}
}

// Two conditions that fail in different ways: the first one in order is the error, unless one is false.
func TestTwoFailures(t *testing.T) {
	const fails, notBool, costs = `request.nothing == 1`, `request.list`, `request.text.contains('x')`
	value := decoded(`{"list":[],"text":"` + strings.Repeat("y", 11*CostLimit) + `"}`)
	for name, tc := range map[string]struct {
		expressions []string
		want        error
		text        string
	}{
		"NotBoolFirst": {
			[]string{notBool, fails}, ErrNotBool,
			`match condition "a": the expression is neither true nor false for this request`,
		},
		"FailsFirst": {
			[]string{"true", fails, notBool}, ErrEvaluation,
			`match condition "b": the expression fails for this request: no such key: nothing`,
		},
		"CostFirst": {
			[]string{costs, fails}, ErrCost, `match condition "a": the expression costs too much for this request`,
		},
		"CostLast": {
			[]string{notBool, costs}, ErrNotBool,
			`match condition "a": the expression is neither true nor false for this request`,
		},
		"FalseLast":  {[]string{costs, notBool, fails, "false"}, nil, ""},
		"FalseFirst": {[]string{"false", costs, notBool, fails}, nil, ""},
	} {
		got, err := compiled(t, tc.expressions...).Match(t.Context(), value)
		if got || !errors.Is(err, tc.want) || err != nil && err.Error() != tc.text {
			t.Errorf("%s: got %t, %v, want %s", name, got, err, tc.text)
		}
	}
}

// A context that is done decides where a condition fails, but takes nothing away from one that was evaluated.
func TestContextThatIsDone(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tc := range map[string]struct {
		expressions []string
		match       bool
		err         error
	}{
		"Error": {[]string{`request.nothing == 1`, "false"}, false, context.Canceled},
		"False": {[]string{"false", `request.nothing == 1`}, false, nil},
		"True":  {[]string{"true"}, true, nil},
	} {
		got, err := compiled(t, tc.expressions...).Match(ctx, decoded(`{}`))
		if got != tc.match || !errors.Is(err, tc.err) || (err == nil) != (tc.err == nil) {
			t.Errorf("%s: got %t, %v, want %t, %v", name, got, err, tc.match, tc.err)
		}
	}
}

// What literal lists cost is known when an expression is compiled.
func TestCostAtCompileTime(t *testing.T) {
	ten := "[1,2,3,4,5,6,7,8,9,10]"
	nested := func(levels int) string {
		return strings.Repeat(ten+".map(i, ", levels) + "i" + strings.Repeat(")", levels) + ".size() > 0"
	}
	for expression, want := range map[string]string{
		nested(3):                            "",
		nested(6):                            "costs at least 16666653, but the limit is 1000000: use shorter lists, or nest fewer of them",
		"lists.range(1000000000).size() > 0": "costs at least 1000000013",
		"lists.range(request.a.size()).all(i, i < 5)":                     "",
		"lists.range(request.a.size()).map(i, string(i)).join(',') != ''": "",
		"request.a.all(a, request.a.all(b, request.a.all(c, c > b)))":     "",
	} {
		_, errs := compiler(t).Compile([]Condition{{Name: "a", Expression: expression}})
		if got := fmt.Sprint(errs); want == "" && len(errs) > 0 || !strings.Contains(got, want) {
			t.Errorf("%s: got %s, want %q", expression, got, want)
		}
	}
}
