// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hookgate/hookgate/internal/base/alloctest"
	"github.com/hookgate/hookgate/internal/base/limits"
)

// calls are expressions that are true for librarySample, with functions of all libraries. Their arguments are values of
// the request, which are decoded as they are read.
var calls = map[string]string{
	"sum": `request.list.sum() == 6 && request.none.sum() == 0`, "min": `request.list.min() == 1`,
	"max": `request.names.max() == 'c'`, "isSorted": `request.list.isSorted() && !request.names.isSorted()`,
	"indexOf":  `request.list.indexOf(3) == 2 && request.names.lastIndexOf('b') == 3 && request.text.indexOf('ü') == 1`,
	"includes": `request.list.includes(2) && request.text.includes(request.text)`,
	"slice":    `request.names.slice(1, 3) == ['a', 'c']`, "flatten": `request.deep.flatten(2)[2] == [3] && request.deep.flatten(3)[2] == 3`,
	"sort":     `request.names.sort() == ['a', 'b', 'b', 'c']`,
	"sortBy":   `request.objects.sortBy(o, -o.n).map(o, o.n) == [3, 2, 1]`,
	"distinct": `request.names.distinct() == ['b', 'a', 'c'] && [request.objects[0], request.objects[0]].distinct().size() == 1`,
	"range":    `lists.range(3) == [0, 1, 2]`, "reverse": `request.list.reverse() == [3, 2, 1]`,
	"first":     `request.list.first().value() == 1 && request.none.last() == optional.none()`,
	"join":      `request.names.join('-') == 'b-a-c-b' && request.names.join() == 'bacb'`,
	"split":     `request.text.split('b').join(request.text) == request.text.replace('b', request.text)`,
	"replace":   `request.text.replace('ü', 'ue', 1) == 'xueb'`,
	"substring": `request.text.substring(1) == 'üb' && request.text.charAt(1) == 'ü'`,
	"case":      `request.text.upperAscii() == 'XüB' && ' a '.trim().lowerAscii() == 'a'`,
	"quote":     `strings.quote(request.text + '"') == '"xüb\\""'`,
	"format": `'%s %d %.2f %x'.format([request.names, request.list[0], request.part, request.list[2]]) == ` +
		`'["b", "a", "c", "b"] 1 0.50 3'`,
	"formatObject": `'%s'.format([request.objects[0]]) == '{"n":1}' && '%s'.format([request.deep]) == '[1, [2, [[3]]]]'`,
	"sets": `sets.contains(request.names, ['a', 'b']) && sets.intersects(request.list, [9, 3]) && ` +
		`sets.equivalent(request.list, request.list.reverse())`,
	"setsOfObjects": `sets.contains(request.objects, [{'n': 3}])`,
	"find":          `request.version.find('[0-9]+') == '1' && request.version.findAll('[0-9]+', 2) == ['1', '36']`,
	"findDynamic":   `request.version.find(request.regex) == '36' && request.version.findAll(request.regex) == ['36']`,
	"matches":       `request.version.matches(request.regex) && request.version.matches('^v1')`,
	"url":           `url(request.url).getHost() == 'a.example:8' && url(request.url).getQuery()['k'] == ['v'] && !isURL('x')`,
	"quantity":      `quantity(request.size).isGreaterThan(quantity('999Mi')) && quantity('1e3').add(1).asInteger() == 1001`,
	"quantityNot":   `!isQuantity(request.text) && isQuantity('1.5e-3') && isQuantity('2E') && isQuantity('2Ei')`,
	"ip":            `ip(request.ip).family() == 4 && cidr('10.0.0.0/8').containsIP(request.ip) && string(ip(request.ip)) == request.ip`,
	"format.named":  `!format.dns1123Label().validate(request.names[0]).hasValue()`,
	"formatInvalid": `format.named('uuid').value().validate(request.text).value() == ['does not match the UUID format']`,
	"semver":        `semver(request.version, true).minor() == 36 && semver('1.35.9').isLessThan(semver(request.version, true))`,
	"isSemver":      `isSemver(request.version, true) && !isSemver(request.version) && semver('1.2.3-a').compareTo(semver('1.2.3')) < 0`,
	"twoVariables":  `request.objects.all(i, o, o.n == i + 1) && request.list.transformList(i, n, i * n) == [0, 2, 6]`,
	"transformMap":  `request.objects[0].transformMap(k, v, v + 1) == {'n': 2}`,
	"entries":       `request.names.slice(0, 3).transformMapEntry(i, n, {n: i}) == {'b': 0, 'a': 1, 'c': 2}`,
}

const librarySample = `{"list":[1,2,3],"none":[],"names":["b","a","c","b"],"deep":[1,[2,[[3]]]],"text":"xüb","part":0.5,
	"objects":[{"n":1},{"n":2},{"n":3}],"version":"v1.36.0","regex":"3.","url":"https://a.example:8/p?k=v","size":"1Gi",
	"ip":"10.1.2.3"}`

func TestLibraries(t *testing.T) {
	for name, expression := range calls {
		for range 2 { // what was decoded may be used again
			if got, err := compiled(t, expression).Match(t.Context(), decoded(librarySample)); !got || err != nil {
				t.Errorf("%s: %s: got %t, %v", name, expression, got, err)
			}
		}
	}
}

// Functions that are applied to other things than they are for fail with the same text each time.
func TestLibrariesOfOtherTypes(t *testing.T) {
	for expression, want := range map[string]string{
		`request.text.sum() == 0`:              "no such overload: sum(string)",
		`request.objects.sort() == []`:         "list elements must be comparable",
		`request.text.sort() == []`:            "no such overload: sort(string)",
		`request.list.join() == ''`:            "no such overload: join(list)",
		`request.objects[0].find('x') == ''`:   "no such overload: find(map, string)",
		`request.text.find('x', 1) == ''`:      "",
		`semver(request.text) == semver('1')`:  "No Major.Minor.Patch elements found",
		`sign(quantity(request.text)) == 0`:    "quantities must match the regular expression",
		`request.text.find(request.bad) == ''`: "no such key: bad",
		`request.text.find('x' + '(') == ''`:   "Illegal regex: error parsing regexp: missing closing ): `x(`",
	} {
		c, errs := compiler(t).Compile([]Condition{{Name: "a", Expression: expression}})
		if want == "" {
			if len(errs) == 0 {
				t.Errorf("%s: compiles", expression)
			}
			continue
		}
		if len(errs) > 0 {
			t.Errorf("%s: %v", expression, errs)
			continue
		}
		if _, err := c.Match(t.Context(), decoded(librarySample)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", expression, err, want)
		}
	}
	const regex = `request.text.find('(') == ''`
	_, errs := compiler(t).Compile([]Condition{{Name: "a", Expression: regex}})
	if want := "not a regular expression: error parsing regexp: missing closing ): `(`"; len(errs) != 1 || errs[0].Message != want {
		t.Errorf("%s: got %v, want %s", regex, errs, want)
	}
}

// hostile returns a request whose texts and lists are long.
func hostile() string {
	var numbers, texts []string
	for i := range 3000 {
		numbers = append(numbers, strconv.Itoa(i*7919%3000))
		texts = append(texts, fmt.Sprintf("%q", fmt.Sprintf("name-%d", i)))
	}
	text := strings.Repeat("ab%f{", 200_000)
	deep := strings.Repeat("[", 900) + `"` + strings.Repeat("x\\u0001", 20_000) + `"` + strings.Repeat("]", 900)
	return fmt.Sprintf(`{"long":%q,"text":%q,"short":%q,"numbers":[%s],"texts":[%s],"deep":%s,"regex":"x%s","digits":"0.%s"}`,
		text, text[:10_000], text[:500], strings.Join(numbers, ","), strings.Join(texts, ","), deep,
		strings.Repeat("y{900}", 500), strings.Repeat("1", 100_000))
}

// doubled is a value that has 8^25 parts and takes little memory.
var doubled = `[1]` + strings.Repeat(".map(a, [a, a, a, a, a, a, a, a])", 25)

// costly are expressions of which each costs too much for the hostile request.
var costly = map[string]string{
	"charAt":      forever(`request.short.charAt(5) != 'x'`),
	"lowerAscii":  forever(`request.long.lowerAscii() != ''`),
	"quote":       forever(`strings.quote(request.text) != ''`),
	"replace":     forever(`request.text.replace('', request.text) != ''`),
	"split":       forever(`request.text.split('').size() > 0`),
	"join":        forever(`request.short.split('').join(request.short) != ''`),
	"indexOf":     `['a'].map(m, [m,m,m,m,m,m,m,m,m,m].join()).map(m, [m,m,m,m,m,m,m,m,m,m].join()).all(m, ` + forever(`(m + m).indexOf(m + 'z') < 0`) + `)`,
	"format":      forever(`'%f%f%f%f%f'.format([1.0, 1.0, 1.0, 1.0, 1.0]) != ''`),
	"precision":   forever(`'%.100e%.100f'.format([1e300, 1e300]) != ''`),
	"formatDeep":  forever(`'%s'.format([request.deep]) != ''`),
	"formatList":  forever(`'%s'.format([request.numbers]) != ''`),
	"formatHex":   forever(`'%x'.format([request.text]) != ''`),
	"sort":        forever(`request.texts.sort().size() > 0`),
	"sortBy":      forever(`request.numbers.sortBy(x, -x).size() > 0`),
	"distinct":    forever(`request.texts.slice(0, 500).map(s, {'a': s}).distinct().size() > 0`),
	"sets":        forever(`sets.equivalent(request.texts.slice(0, 200).map(s, {'a': s}), request.texts.slice(0, 200).map(s, {'a': s}))`),
	"range":       `lists.range(1000000000 * request.numbers.size()).size() > 0`,
	"ranges":      forever(`lists.range(1000).size() > 0`),
	"reverse":     forever(`request.numbers.reverse() != []`),
	"flatten":     forever(`[[request.numbers]].flatten(1000).size() > 0`),
	"flattenDeep": forever(`request.deep.flatten(1000).size() > 0`),
	"sum":         `[lists.range(1000)].all(y, ` + forever(`y.sum() >= 0`) + `)`,
	"includes":    `[lists.range(1000)].all(y, ` + forever(`!y.includes(-1)`) + `)`,
	"equal":       `[lists.range(1000)].all(y, ` + forever(`y == y`) + `)`,
	"in":          `[lists.range(1000)].all(y, ` + forever(`!(-1 in y)`) + `)`,
	"find":        forever(`request.text.find('(a|b|c|d){1000}x') == ''`),
	"findAll":     forever(`request.text.findAll('').size() > 0`),
	"matches":     forever(`!request.text.matches('(a|b|c|d){1000}x')`),
	"dynamic":     forever(`!request.short.matches(request.regex)`),
	"url":         forever(`isURL('https://a/' + request.text.replace('%', ''))`),
	"getQuery":    `[url('https://a/?' + request.text.replace('%f{', '&a'))].all(u, ` + forever(`u.getQuery().size() > 0`) + `)`,
	"digits":      `isQuantity(request.digits)`,
	"exponent":    `isQuantity('1e2147483647')`,
	"fraction":    `isQuantity('1e-2147483648')`,
	"wrapped":     `isQuantity('1e5000000000')`, // 705032704 in 32 bits
	"beyond":      `isQuantity('1e-99999999999999999999')`,
	"semver":      `[request.text.replace('ab%f{', 'a.a.a')].all(s, ` + forever(`isSemver('1.2.3-' + s)`) + `)`,
	"compareTo":   `[semver('1.2.3-' + request.text.replace('ab%f{', 'a.a.a'))].all(s, ` + forever(`s.compareTo(s) == 0`) + `)`,
	"isIP":        forever(`!isIP(request.short)`),
	"validate":    forever(`format.datetime().validate(request.short).hasValue()`),

	"transformMap": forever(`lists.range(100).transformMap(i, v, v).size() > 0`),

	"equalDoubled":    doubled + ` == ` + doubled,
	"inDoubled":       doubled + `[0] in ` + doubled,
	"setsDoubled":     `sets.contains(` + doubled + `, ` + doubled + `)`,
	"formatDoubled":   `'%s'.format(` + doubled + `) != ''`,
	"flattenDoubled":  doubled + `.flatten(100).size() > 0`,
	"distinctDoubled": `[` + doubled + `, ` + doubled + `].distinct().size() > 0`,
}

// TestNesting compiles expressions that nest as deep as they may, within the memory of any other expression, and none
// that nest deeper.
func TestNesting(t *testing.T) {
	for name, repeat := range map[string]func(n int) string{
		"Lists":  func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) + " != dyn(0)" },
		"Maps":   func(n int) string { return strings.Repeat("{'a': ", n) + "1" + strings.Repeat("}", n) + " != dyn(0)" },
		"Macros": func(n int) string { return strings.Repeat("[1].all(a, ", n-1) + "true" + strings.Repeat(")", n-1) },
		"Chain":  func(n int) string { return "request" + strings.Repeat(".map(a, [a, a])", n-3) + ".map(a, a) != []" },
		"Optional": func(n int) string {
			return strings.Repeat("optional.of(", n) + "1" + strings.Repeat(")", n) + ".hasValue()"
		},
		"Types": func(n int) string { return strings.Repeat("type(", n) + "1" + strings.Repeat(")", n) + " != dyn(0)" },
	} {
		c := compiler(t)
		most := repeat(limits.ExpressionNesting)
		compileMemory.Check(t, len(most), func() {
			if _, errs := c.Compile([]Condition{{Name: "a", Expression: most}}); len(errs) > 0 {
				t.Errorf("%s: %s: %v", name, most, errs)
			}
		})
		const want = "must nest lists, maps, macros such as map(), and optional values at most 32 deep, but nests them 33 deep"
		_, errs := c.Compile([]Condition{{Name: "a", Expression: repeat(limits.ExpressionNesting + 1)}})
		if len(errs) != 1 || errs[0].Message != want {
			t.Errorf("%s: got %v, want %s", name, errs, want)
		}
	}
}

// forever is an expression that evaluates another one nine million times.
func forever(expression string) string {
	return `request.numbers.all(i, request.numbers.all(j, ` + expression + `))`
}

// underRace reports whether the race detector is on. It makes pools forget what they hold, so that a regular expression
// allocates for each match what it keeps otherwise.
var underRace bool

// TestCostlyCalls gives up expressions before they take much more time than one of the same cost whose steps are simple,
// or much memory.
func TestCostlyCalls(t *testing.T) {
	const slower = 60 // the slowest take ten times as long
	body := hostile()
	simple := fastest(t, compiled(t, forever(`i + j >= 0`)), body)
	memory := alloctest.Bound{Base: 512 << 20}
	if underRace {
		memory.Base = 1 << 40 // see underRace: what a regular expression takes is bounded by the run without it
	}
	for name, expression := range costly {
		c := compiled(t, expression)
		memory.Check(t, len(body), func() {
			if took := fastest(t, c, body); took > slower*simple {
				t.Errorf("%s: takes %s, where simple steps of the same cost take %s", name, took, simple)
			}
		})
	}
}

// fastest returns the time in which conditions cost too much. It tries again if that is long.
func fastest(t *testing.T, c *Conditions, body string) time.Duration {
	t.Helper()
	least := time.Hour
	for range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
		start := time.Now()
		_, err := c.Match(ctx, decoded(body))
		least = min(least, time.Since(start))
		cancel()
		if !errors.Is(err, ErrCost) {
			t.Errorf("%s: got %v, want %v", c.conditions[0].Expression, err, ErrCost)
		}
		if least < time.Second || underRace { // with the race detector, all take so long
			break
		}
	}
	return least
}

// TestResultsAreReserved makes large values of little: they are not made if there is no memory for them.
func TestResultsAreReserved(t *testing.T) {
	errFull := errors.New("no memory")
	body := `{"text":"` + strings.Repeat("a", 20_000) + `"}`
	for name, expression := range map[string]string{
		"range": `lists.range(100000).size() > 0`, "split": `request.text.split('').size() > 0`,
		"replace": `request.text.substring(0, 2000).replace('a', request.text.substring(0, 2000)) != ''`,
		"join":    `lists.range(1000).map(i, 'a').join(request.text.substring(0, 2000)) != ''`,
		"findAll": `request.text.findAll('a').size() > 0`, "format": `'%s%s%s%s'.format([request.text, request.text, request.text, request.text]) != ''`,
		"transformMap": `lists.range(10000).transformMap(i, v, v).size() > 0`,
		"lowerAscii":   `request.text.lowerAscii() != ''`,
	} {
		if underRace && name == "findAll" {
			continue
		}
		c := compiled(t, expression)
		var reserved int64
		reserve := func(most int64) func(int64) error {
			return func(n int64) error {
				if reserved += n; reserved > most {
					return errFull
				}
				return nil
			}
		}
		if got, err := c.Match(t.Context(), NewRequest([]byte(body), Guard{Reserve: reserve(1 << 30)})); !got || err != nil {
			t.Errorf("%s: got %t, %v", name, got, err)
		}
		enough := reserved
		reserved = 0
		alloctest.Bound{Base: uint64(enough) + 1<<20}.Check(t, len(body), func() {
			_, err := c.Match(t.Context(), NewRequest([]byte(body), Guard{Reserve: reserve(enough / 2)}))
			if !errors.Is(err, errFull) {
				t.Errorf("%s: with half of its memory: got %v", name, err)
			}
		})
		// What grows as it is written is copied some times.
		alloctest.Bound{Base: 3*uint64(enough) + 1<<20}.Check(t, len(body), func() {
			if _, err := c.Match(t.Context(), NewRequest([]byte(body), Guard{})); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
}
