// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/cel-go/cel"
	kubernetes "k8s.io/apiserver/pkg/cel/library"
)

// countedByCEL returns the program of an expression whose cost CEL counts and limits, as Kubernetes does.
func countedByCEL(t testing.TB, expression string, options ...cel.ProgramOption) cel.Program {
	t.Helper()
	c := compiler(t)
	ast, wrong := compileAs(c.conditions, expression, Bool)
	if wrong != nil {
		t.Fatal(wrong)
	}
	program, err := c.conditions.Program(ast, append(options, cel.EvalOptions(cel.OptOptimize))...)
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// CEL counts a call after it was made, and not what is in nested values: it evaluates, for a thousandth of CostLimit,
// what costs more than CostLimit here. If this fails because CEL counts more, meter.go and cost.go may no longer be
// needed; see ARCHITECTURE.md.
func TestCELCountsTooLittle(t *testing.T) {
	million := `[1]` + strings.Repeat(".map(a, [a, a, a, a, a, a, a, a])", 7) // 8^7 parts
	for name, expression := range map[string]string{
		"Number": `isQuantity('1e-100000')`, // 1e-10000000 takes 11 s and costs 2
		"Equal":  million + ` == ` + million,
		"Format": `'%s'.format([` + million[:strings.LastIndex(million, ".map")] + `]) != ''`,
	} {
		program := countedByCEL(t, expression, cel.CostTracking(&kubernetes.CostEstimator{}), cel.CostLimit(CostLimit))
		_, details, err := program.Eval(map[string]any{variable: map[string]any{}})
		if err != nil || *details.ActualCost() > CostLimit/1000 {
			t.Errorf("%s: CEL counts %d, %v", name, *details.ActualCost(), err)
		}
		if _, err := compiled(t, expression).Match(t.Context(), decoded(`{}`)); !errors.Is(err, ErrCost) {
			t.Errorf("%s: got %v, want %v", name, err, ErrCost)
		}
	}
}

// BenchmarkCounting compares evaluations of two nested loops without and with CEL's count, whose time grows faster than
// the number of steps, and with the meter of this package.
func BenchmarkCounting(b *testing.B) {
	for _, n := range []int{100, 200} {
		numbers := make([]any, n)
		for i := range numbers {
			numbers[i] = i
		}
		expression := `request.numbers.all(i, request.numbers.all(j, i + j >= 0))`
		in := map[string]any{variable: map[string]any{"numbers": numbers}}
		for name, program := range map[string]cel.Program{
			"none": countedByCEL(b, expression),
			"CEL":  countedByCEL(b, expression, cel.CostTracking(&kubernetes.CostEstimator{})),
		} {
			b.Run(fmt.Sprintf("numbers=%d/by=%s", n, name), func(b *testing.B) {
				for b.Loop() {
					if _, _, err := program.Eval(in); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		c, body := compiled(b, expression), "{\"numbers\":["+strings.Trim(strings.Repeat("1,", n), ",")+"]}"
		b.Run(fmt.Sprintf("numbers=%d/by=meter", n), func(b *testing.B) {
			request := decoded(body)
			for b.Loop() {
				if _, err := c.Match(b.Context(), request); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
