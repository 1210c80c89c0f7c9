// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/google/cel-go/common/types"
	kubejson "sigs.k8s.io/json"

	"github.com/hookgate/hookgate/internal/base/alloctest"
	"github.com/hookgate/hookgate/internal/base/limits"
)

// bomb is a request of 4 MiB whose Cluster takes 50 times as much once it is decoded.
func bomb() []byte {
	return []byte(`{"cluster":{"spec":{"a":[{}` + strings.Repeat(",{}", 4<<20/3) +
		`]},"metadata":{"name":"c1","labels":{"tier":"gold"}}},"settings":{"region":"north"}}`)
}

// What an expression does not name takes no memory, however much of it there is.
func TestOnlyWhatIsNamedIsDecoded(t *testing.T) {
	body := bomb()
	for _, expression := range []string{
		`request.cluster.metadata.name == 'c1'`, `request.settings.region == 'north'`,
		`request.cluster.metadata.labels.exists(k, k == 'tier')`, `has(request.cluster.spec.a)`,
		`request.cluster.?spec.?b.orValue(1) == 1`, `request.cluster.spec.a.size() > 1000000`,
		`request.cluster.spec.a[0] == {}`, `'name' in request.cluster.metadata`,
		`request.cluster.spec.size() == 1`,
	} {
		c := compiled(t, expression)
		alloctest.Bound{Base: 64 << 10}.Check(t, 0, func() {
			reserve := func(n int64) error { return fmt.Errorf("%d bytes are reserved", n) }
			if got, err := c.Match(t.Context(), NewRequest(body, Guard{Reserve: reserve})); !got || err != nil {
				t.Errorf("%s: got %t, %v", expression, got, err)
			}
		})
	}
}

// What an expression makes of the request is reserved before: as much as is allocated, but for the first 64 KiB and what
// CEL takes for a step, and none when the memory is used up.
func TestWhatIsReadIsReserved(t *testing.T) {
	for name, tc := range map[string]struct {
		body, expression string
		garbage          uint64
	}{
		"Elements": {
			`{"list":[{}` + strings.Repeat(`,{}`, 20_000) + `]}`, `request.list.map(i, i).size() == 20001`, 20_000 * 600,
		},
		"Members": {
			`{"a":{"a":1` + strings.Repeat(`,"abcde":1`, 50_000) + `,"b":2}}`, `request.a.b == 2 && request.a.size() == 3`, 0,
		},
		"Text":    {`{"a":"` + strings.Repeat("x", 1<<20) + `"}`, `request.a + 'a' != ''`, 0},
		"Escapes": {`{"a":"\\n` + strings.Repeat("x", 1<<20) + `"}`, `request.a != ''`, 0},
	} {
		c := compiled(t, tc.expression)
		var reserved int
		evaluate := func() {
			reserved = 0
			r := NewRequest([]byte(tc.body), Guard{Reserve: func(n int64) error { reserved += int(n); return nil }})
			if got, err := c.Match(t.Context(), r); !got || err != nil {
				t.Errorf("%s: got %t, %v", name, got, err)
			}
		}
		evaluate()
		// The body is copied, and each step of a comprehension leaves garbage.
		alloctest.Bound{Base: 1<<20 + tc.garbage, PerByte: 1}.Check(t, reserved+len(tc.body), evaluate)
		full := errors.New("the memory is used up")
		r := NewRequest([]byte(tc.body), Guard{Reserve: func(int64) error { return full }})
		if got, err := c.Match(t.Context(), r); got || !errors.Is(err, full) {
			t.Errorf("%s: got %t, %v, want %v", name, got, err, full)
		}
	}
}

// A condition that is false, or true, whatever a failed one says, does not hide that the memory is used up.
func TestTheGuardEndsTheEvaluation(t *testing.T) {
	late := errors.New("it is late")
	const ten = `[1,2,3,4,5,6,7,8,9,10]`
	large := strings.Repeat("x", 1<<20)
	for _, tc := range []struct {
		text        string
		expressions []string
	}{
		{large, []string{`request.a == '' || true`}}, {large, []string{`request.a == ''`, `false`}},
		{large, []string{`[1, 2].exists(i, request.a == 'a' || i == 1)`}},
		{"", []string{ten + `.exists(i, ` + ten + `.exists(j, ` + ten + `.exists(k, request.a == string(i * j * k))))`}},
	} {
		r := NewRequest([]byte(`{"a":"`+tc.text+`"}`), Guard{Step: func() error { return late }})
		if got, err := compiled(t, tc.expressions...).Match(t.Context(), r); got || !errors.Is(err, late) {
			t.Errorf("%s: got %t, %v, want %v", tc.expressions, got, err, late)
		}
	}
}

// Looking through the request costs the same for each policy, whatever those before it have found.
func TestReadLimit(t *testing.T) {
	text := `{"x":"` + strings.Repeat("x", 1<<20) + `"}`
	body := []byte(`{"a":[` + text + strings.Repeat(","+text, 9) + `]}`)
	within := compiled(t, `[1,2,3,4,5,6,7,8,9].all(i, request.a.all(e, e.y != ''))`, `false`)
	within = &Conditions{conditions: within.conditions[1:]}
	looks := func(n int) *Conditions { // each time, through the list, and through each of its elements
		list := strings.Repeat("1,", n)
		return compiled(t, `[`+list+`1].all(i, request.a.all(e, !has(e.y)))`)
	}
	r := NewRequest(body, Guard{})
	for range 2 {
		if got, err := within.Match(t.Context(), r); got || err != nil {
			t.Errorf("got %t, %v", got, err)
		}
		if got, err := looks(8).Match(t.Context(), r); !got || err != nil {
			t.Errorf("190 MiB: got %t, %v", got, err)
		}
		got, err := looks(9).Match(t.Context(), r)
		const want = `match condition "a": the expression costs too much for this request`
		if got || !errors.Is(err, ErrCost) || err.Error() != want {
			t.Errorf("210 MiB: got %t, %v, want %s", got, err, want)
		}
	}
}

// An expression that makes too much of a small request costs too much, before it takes the memory of the gateway.
func TestMemoryLimit(t *testing.T) {
	var numbers []string
	for i := range 3000 {
		numbers = append(numbers, strconv.Itoa(i))
	}
	body := []byte(`{"a":[` + strings.Join(numbers, ",") + `]}`)
	for expression, want := range map[string]error{
		`request.a.all(a, a in request.a.filter(b, b == a))`: ErrCost,
		`request.a.all(a, a in request.a)`:                   ErrCost,
		`request.a.all(a, request.a.exists(b, b == 2999))`:   ErrCost,
		`request.a.exists(a, a == 2)`:                        nil,
	} {
		var reserved int64
		r := NewRequest(body, Guard{Reserve: func(n int64) error { reserved += n; return nil }})
		if _, err := compiled(t, expression).Match(t.Context(), r); !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", expression, err, want)
		}
		if reserved > MemoryLimit {
			t.Errorf("%s takes %d bytes", expression, reserved)
		}
	}
}

func TestObjectAtTheLimitOfMembers(t *testing.T) {
	c := compiled(t, `request.a.b == 1`)
	for n, want := range map[int]error{limits.Elements: nil, limits.Elements + 1: ErrTooMany} {
		r := NewRequest([]byte(`{"a":{`+strings.Repeat(`"a":1,`, n-1)+`"b":1}}`), Guard{})
		got, err := c.Match(t.Context(), r)
		if got != (want == nil) || !errors.Is(err, want) {
			t.Errorf("%d members: got %t, %v, want %v", n, got, err, want)
		}
	}
}

// A message is encoded as far as its members are selected.
func TestMessagesAreEncodedAsFarAsTheyAreSelected(t *testing.T) {
	for expression, want := range map[string]string{
		`request.a.b == 1 && request.a.c == 2 && !has(request.x)`: "a x",
		`request.exists(k, k == 'a') && request.a.b == 1`:         "<all>",
		`request.a.b == 1 && request.size() == 2`:                 "a <all>",
	} {
		var encoded []string
		r := NewMessage(func(member string) ([]byte, error) {
			switch member {
			case "":
				encoded = append(encoded, "<all>")
				return []byte(`{"kind":"K","a":{"b":1,"c":2}}`), nil
			case "a":
				encoded = append(encoded, member)
				return []byte(`{"kind":"K","a":{"b":1,"c":2}}`), nil
			}
			encoded = append(encoded, member)
			return []byte(`{"kind":"K"}`), nil
		}, Guard{})
		got, err := compiled(t, expression).Match(t.Context(), r)
		if joined := strings.Join(encoded, " "); !got || err != nil || joined != want {
			t.Errorf("%s: got %t, %v, and %q was encoded, want %q", expression, got, err, joined, want)
		}
	}
	failure := errors.New("no JSON")
	r := NewMessage(func(string) ([]byte, error) { return nil, failure }, Guard{})
	if got, err := compiled(t, `request.a == 1`, `false`).Match(t.Context(), r); got || !errors.Is(err, failure) {
		t.Errorf("got %t, %v, want %v", got, err, failure)
	}
}

// Values are what they are once the whole request is decoded.
func TestValuesAreThoseOfTheWholeRequest(t *testing.T) {
	for _, text := range []string{
		`9223372036854775807`, `9223372036854775808`, `-9223372036854775808`, `-9223372036854775809`, `1.0`, `1e3`, `-0`,
		`"a\u00e4\n"`, `"\ud800"`, "\"\xff\"", `{"A":1,"a":2}`, `{"a":1,"b":3,"\u0061":2}`, ` [ 1 , [ ] , { } , null , true ] `,
		`{"a":{"b":[{"c":"d"}]},"e":false}`,
	} {
		var whole any
		if err := kubejson.UnmarshalCaseSensitivePreserveInts([]byte(text), &whole); err != nil {
			t.Fatal(err)
		}
		want := types.DefaultTypeAdapter.NativeToValue(whole)
		for name, got := range map[string]any{
			"lazy first":  types.Equal(decoded(text).root, want),
			"whole first": types.Equal(want, decoded(text).root),
			"both lazy":   types.Equal(decoded(text).root, decoded(text).root),
		} {
			if got != types.True {
				t.Errorf("%s, %s: not equal", text, name)
			}
		}
		if got := decoded(text).root; got.Type() != want.Type() {
			t.Errorf("%s is of type %s, want %s", text, got.Type(), want.Type())
		}
	}
}

func TestOperationsOnValues(t *testing.T) {
	for _, expression := range []string{
		`request.list + [4] == [1, 2, 3, 4]`, `[0] + request.list == [0, 1, 2, 3]`, `request.list[2] + request.list[0] == 4`,
		`request.list != [1, 2]`, `request.list != [1, 2, 4]`, `request.settings != {'region': 'south'}`,
		`request.settings != {'other': 'north'}`, `2 in request.list && !(4 in request.list)`, `!('south' in request.settings)`,
		`request.list.filter(i, i > 1) == [2, 3]`, `type(request.list) == list && type(request.settings) == map`,
		`dyn(request.list) == request.list`, `request.list != request.settings && request.settings != request.list`,
		`request.settings['region'] == 'north'`, `request.?list[?5].orValue(7) == 7`, `request.list[?0].value() == 1`,
		`request.settings.map(k, k) == ['region']`, `!(1 in request.settings)`,
	} {
		if got, err := compiled(t, expression).Match(t.Context(), decoded(request)); !got || err != nil {
			t.Errorf("%s: got %t, %v", expression, got, err)
		}
	}
	for expression, want := range map[string]string{
		`request.list[5] == 1`:             "index out of bounds: 5",
		`request.list['a'] == 1`:           "unsupported index type 'string' in list",
		`request.settings.size == 1`:       "no such key: size",
		`string(request.list) == ''`:       "no such overload",
		`request.settings[request.x] == 1`: "no such key: x",
	} {
		_, err := compiled(t, expression).Match(t.Context(), decoded(request))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", expression, err, want)
		}
	}
}
