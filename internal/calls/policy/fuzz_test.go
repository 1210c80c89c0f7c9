// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/cel-go/common/types"
	kubejson "sigs.k8s.io/json"

	"github.com/hookgate/hookgate/internal/base/alloctest"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/contract/jsonscan"
	"github.com/hookgate/hookgate/test/samples"
)

// expressions are conditions that read all kinds of values.
var expressions = []string{
	`true`, `request.cluster.metadata.name == 'c1'`, `request.big == 9007199254740993`, `request.part < 1`,
	`!has(request.cluster.metadata.annotations)`, `request.?settings.?size.orValue('small') == 'small'`,
	`request.list.exists(i, i == 2) && request.settings.all(k, k != '')`,
	`request.cluster.metadata.name.matches('^c[0-9]$')`,
	`request.list.map(a, request.list.map(b, a + b)).size() > 2`, `request.list.filter(a, a > 1u) == [2, 3]`,
	`string(request.list) + string(request.part) != ''`, `timestamp('2026-01-01T00:00:00Z') > timestamp(request.none)`,
	`request.cluster.spec.replicas * 2 in [1, 2, 3] ? request.a : request.b`,
	`{'a': request.cluster.metadata.name}.map(k, k)[0].contains('a')`, `duration(request.wait) < duration('1h')`,
}

// matchMemory bounds evaluations. CostLimit bounds their steps, each of which may allocate some values.
var matchMemory = alloctest.Bound{Base: 1 << 30, PerByte: 1 << 10}

// compileMemory bounds the compilation of an expression, which builds tables of the grammar as it needs them.
var compileMemory = alloctest.Bound{Base: 16 << 20, PerByte: 16 << 10}

// match evaluates conditions for a request, and checks how they may fail.
func match(t *testing.T, c *Conditions, size int, request *Request) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	var err error
	matchMemory.Check(t, size, func() { _, err = c.Match(ctx, request) })
	var evaluation *EvaluationError
	if err != nil && !errors.As(err, &evaluation) {
		t.Errorf("got %v, want an error of the evaluation, within 2 min", err)
	}
}

// FuzzConditions compiles expressions, and evaluates those that compile.
func FuzzConditions(f *testing.F) {
	for _, e := range expressions {
		f.Add(e)
	}
	for _, e := range calls {
		f.Add(e)
	}
	for _, e := range costly {
		f.Add(e)
	}
	c := compiler(f)
	value := decoded(`{"short":"ab","text":"x\u00fcb","numbers":[3,1,2],` + librarySample[1:len(librarySample)-1] + `,` + request[1:])
	f.Fuzz(func(t *testing.T, expression string) {
		var conditions *Conditions
		var errs []*CompileError
		compileMemory.Check(t, len(expression), func() {
			conditions, errs = c.Compile([]Condition{{Name: "a", Expression: expression}})
		})
		switch {
		case len(errs) == 0:
			if utf8.RuneCountInString(expression) > limits.ConditionCharacters {
				t.Errorf("%d characters were compiled", utf8.RuneCountInString(expression))
			}
			match(t, conditions, len(request), value)
		case conditions != nil || len(errs) != 1 || errs[0].Message == "":
			t.Errorf("conditions %v, errors %v", conditions, errs)
		}
	})
}

// FuzzRequest evaluates conditions for requests, and compares their values with those of the same JSON decoded as a
// whole.
func FuzzRequest(f *testing.F) {
	for _, body := range []string{
		request, string(samples.S()), `{}`, `null`, `[1,{"a":[]}]`, `{"list":[1.5,"a",{"b":null}],"wait":"1s","none":"x"}`,
		`{"a":1,"b":{"c":"\u00e4\ud800"},"\u0061":2}`, " {\"a\" : [ ] }\n",
	} {
		f.Add([]byte(body))
	}
	c := compiled(f, expressions...)
	f.Fuzz(func(t *testing.T, body []byte) {
		s := jsonscan.Scanner{Text: body}
		end, err := s.Value(jsonscan.Space(body, 0), 0)
		if err != nil || s.End(end) != nil {
			return // the codec refuses it
		}
		r := NewRequest(body, Guard{})
		for i := range c.conditions {
			match(t, &Conditions{conditions: c.conditions[i : i+1]}, len(body), r)
		}
		var whole any
		if err := kubejson.UnmarshalCaseSensitivePreserveInts(body, &whole); err != nil {
			return // a number beyond float64
		}
		if r.begin(t.Context()); len(body) < 1<<10 && types.Equal(r.root, types.DefaultTypeAdapter.NativeToValue(whole)) != types.True {
			t.Errorf("%s: not equal to what it is decoded to", body)
		}
	})
}
