// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package yamltest defines what YAML means to this project, as a table that the tests of every reader of YAML share.
package yamltest

import "strings"

// Case is a mapping in YAML and its meaning.
type Case struct {
	Reason string
	// YAML is a mapping in block style.
	YAML string
	// JSON is the same mapping. It is empty if there is an error.
	JSON string
	// Line is the line of the error, and Error a part of its text. A zero Line matches any, where the line depends on
	// the limit.
	Line  int
	Error string
	// Differs reports whether kubectl reads it in another way, as the comment of package yaml says.
	Differs bool
}

// Cases are by name.
var Cases = map[string]Case{
	"Booleans": {
		Reason: "the words of YAML 1.1 are booleans to kubectl",
		YAML: "a: [yes, Yes, YES, on, On, ON, y, Y, true, True, TRUE]\n" +
			"b: [no, No, NO, off, Off, OFF, n, N, false, False, FALSE]\n",
		JSON: `{"a":[true,true,true,true,true,true,true,true,true,true,true],` +
			`"b":[false,false,false,false,false,false,false,false,false,false,false]}`,
	},
	"NotBooleans": {
		Reason: "other spellings are strings",
		YAML:   "a: [yES, oN, tRUE, nO, oFF, falsE, yess]\n",
		JSON:   `{"a":["yES","oN","tRUE","nO","oFF","falsE","yess"]}`,
	},
	"QuotedBooleans": {
		Reason: "quotes and a tag make strings",
		YAML:   "a: ['yes', \"off\", !!str on]\nb: |-\n  yes\n", JSON: `{"a":["yes","off","on"],"b":"yes"}`,
	},
	"TaggedBooleans": {
		Reason: "a tag makes booleans",
		YAML:   "a: [!!bool yes, !!bool \"off\", !!bool true]\n", JSON: `{"a":[true,false,true]}`,
	},
	"NoBoolean": {
		Reason: "a tag that does not fit",
		YAML:   "a: !!bool maybe\n", Line: 1, Error: "cannot decode `maybe` as a !!bool",
	},
	"BooleanKeys": {
		Reason: "keys are read as values are",
		YAML:   "yes: 1\n'no': 2\nn: 3\n", JSON: `{"true":1,"no":2,"false":3}`,
	},
	"Integers": {
		Reason: "all notations",
		YAML:   "a: [0, -1, +5, 0x1F, 0o17, 017, 0b101, 1_000]\n", JSON: `{"a":[0,-1,5,31,15,15,5,1000]}`,
	},
	"BigIntegers": {
		Reason: "no digit is lost",
		YAML:   "a: 9007199254740993\nb: 18446744073709551615\n",
		JSON:   `{"a":9007199254740993,"b":18446744073709551615}`,
	},
	"HugeIntegers": {
		Reason: "not above 64 bits either, where kubectl rounds",
		YAML:   "a: 123456789012345678901234567890\n", JSON: `{"a":123456789012345678901234567890}`, Differs: true,
	},
	"Floats": {
		Reason: "a number keeps its text where JSON can have it",
		YAML:   "a: [1.50, 1e3, -0, .5, 1.]\n", JSON: `{"a":[1.50,1e3,-0,0.5,1]}`,
	},
	"Infinity": {Reason: "JSON has none", YAML: "a: 1\nb: .inf\n", Line: 2, Error: "JSON has no .inf"},
	"NaN":      {Reason: "JSON has none", YAML: "a: .nan\n", Line: 1, Error: "JSON has no .nan"},
	"Nulls": {
		Reason: "all ways to write null",
		YAML:   "a: [null, ~, Null, NULL]\nb:\n", JSON: `{"a":[null,null,null,null],"b":null}`,
	},
	"Timestamps": {
		Reason: "a timestamp is text",
		YAML:   "a: 2026-03-02T08:14:55Z\nb: 2026-03-02\n2026-03-02: c\n",
		JSON:   `{"a":"2026-03-02T08:14:55Z","b":"2026-03-02","2026-03-02":"c"}`,
	},
	"Sexagesimal": {Reason: "not a number", YAML: "a: [1:30, 12:30:45]\n", JSON: `{"a":["1:30","12:30:45"]}`},
	"Strings": {
		Reason: "what JSON must escape, and <>& which it need not",
		YAML:   "a: \"\\u0000\\t<&>\"\nb: |\n  one\n  two\nc: >\n  one\n  two\n",
		JSON:   `{"a":"\u0000\t<&>","b":"one\ntwo\n","c":"one two\n"}`,
	},
	"Keys": {
		Reason: "keys become text",
		YAML:   "4711: a\n1.5: b\ntrue: c\n0x1F: d\n", JSON: `{"4711":"a","1.5":"b","true":"c","31":"d"}`,
	},
	"NullKey": {Reason: "no text is null", YAML: "a: 1\n~: 2\n", Line: 2, Error: "a key must not be null"},
	"ListKey": {Reason: "no text is a list", YAML: "a: 1\n? [b]\n: 2\n", Line: 2, Error: "a key must be text"},
	"DuplicateKey": {
		Reason: "YAML forbids it",
		YAML:   "a: 1\nb: 2\na: 3\n", Line: 3, Error: `mapping key "a" already defined at line 1`,
	},
	"SameKeyAsText": {
		Reason: "two keys that are one in JSON",
		YAML:   "1: a\n\"1\": b\n", Line: 2, Error: `mapping key "1" already defined at line 1`,
	},
	"Order": {Reason: "members keep their order", YAML: "b: 1\na: 2\n", JSON: `{"b":1,"a":2}`},
	"Aliases": {
		Reason: "an alias stands for its anchor",
		YAML:   "a: &x {k: [1]}\nb: *x\nc: &y d\n*y : 1\n", JSON: `{"a":{"k":[1]},"b":{"k":[1]},"c":"d","d":1}`,
	},
	"SelfAlias": {
		Reason: "an anchor within itself has no end",
		YAML:   "a: &a [*a]\n", Line: 1, Error: "nested deeper than 1000",
	},
	"SelfMerge": {
		Reason: "nor has one that is merged into itself",
		YAML:   "a: &a\n  <<: *a\n", Line: 1, Error: "nested deeper than 1000",
	},
	"UnknownAlias": {
		Reason: "there is no such anchor",
		YAML:   "a: 1\nb: *c\n", Line: 2, Error: "unknown anchor 'c' referenced",
	},
	"Merge": {
		Reason: "merged members stand where the key does, but for those that the mapping has itself",
		YAML:   "a: &a {x: 1, w: 2}\nb:\n  before: 0\n  <<: *a\n  w: 3\n",
		JSON:   `{"a":{"x":1,"w":2},"b":{"before":0,"x":1,"w":3}}`,
	},
	"MergeList": {
		Reason: "of several mappings, the first counts",
		YAML:   "a: &a {x: 1}\nb: &b {x: 2, w: 2}\nc: {<<: [*a, *b]}\n",
		JSON:   `{"a":{"x":1},"b":{"x":2,"w":2},"c":{"x":1,"w":2}}`,
	},
	"MergeOfMerge": {
		Reason: "merges nest",
		YAML:   "a: &a {x: 1}\nb: &b {<<: *a, w: 2}\nc: {<<: *b, z: 3}\n",
		JSON:   `{"a":{"x":1},"b":{"x":1,"w":2},"c":{"x":1,"w":2,"z":3}}`,
	},
	"MergeInline": {
		Reason: "what is merged needs no anchor",
		YAML:   "a: {<<: {x: 1}, w: 2}\n", JSON: `{"a":{"x":1,"w":2}}`,
	},
	"MergeTwice": {
		Reason: "one mapping has one merge key",
		YAML:   "a: &a {x: 1}\nb:\n  <<: *a\n  <<: *a\n", Line: 4, Error: `mapping key "<<" already defined at line 3`,
	},
	"MergeOfText": {
		Reason: "text cannot be merged",
		YAML:   "a:\n  <<: text\n", Line: 2, Error: "a merge key (<<) needs a mapping or a list of mappings",
	},
	"MergeOfTexts": {
		Reason: "nor can a list of it",
		YAML:   "a:\n  <<: [{x: 1}, text]\n", Line: 2, Error: "a merge key (<<) needs a mapping or a list of mappings",
	},
	"QuotedMerge":  {Reason: "in quotes it is a key", YAML: "\"<<\": 1\n", JSON: `{"<<":1}`},
	"MergeAsValue": {Reason: "as a value it is text", YAML: "a: <<\n", JSON: `{"a":"<<"}`},
	"Binary": {
		Reason: "in JSON it is base64 text, which needs no tag",
		YAML:   "a: 1\nb: !!binary aGk=\n", Line: 2, Error: "tag !!binary has no form in JSON",
	},
	"Tag": {
		Reason: "a tag of one's own",
		YAML:   "a: !secret x\n", Line: 1, Error: "tag !secret has no form in JSON",
	},
	"Tab": {
		Reason: "the most common slip of all has the right line",
		YAML:   "a:\n\tb: 1\n", Line: 2, Error: "found character that cannot start any token",
	},
	"WrongIndent": {
		Reason: "the parser names the beginning of the block, which is lines away",
		YAML:   "a: 1\nb:\n  c: 1\n d: 2\n", Line: 4, Error: "did not find expected key",
	},
	"OpenQuote": {
		Reason: "the line is where the quote opens, not the end of the text",
		YAML:   "a: \"b\nc: d\n", Line: 1, Error: "found unexpected end of stream",
	},
	"EmptyContainers": {
		Reason: "nothing is something",
		YAML:   "a: {}\nb: []\nc: \"\"\n", JSON: `{"a":{},"b":[],"c":""}`,
	},
	"Bomb": {
		Reason: "aliases that grow without end",
		YAML:   bomb("[", "]"), Error: "as JSON it is larger than",
	},
	"MergeBomb": {
		Reason: "merges that write nothing do so in time",
		YAML:   mergeBomb(), Error: "merge keys (<<) stand for more than 100000 members",
	},
}

// bomb returns ten levels of mappings, each of which has the one before ten times.
func bomb(open, end string) string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n")
	for i := range 9 {
		last, next := string(rune('0'+i)), string(rune('1'+i))
		b.WriteString("a" + next + ": &a" + next + " " + open + strings.Repeat("*a"+last+",", 10) + end + "\n")
	}
	return b.String()
}

func mergeBomb() string {
	return strings.Replace(bomb("{<<: [", "]}"), "[x,x,x,x,x,x,x,x,x,x]", "{x: 1}", 1)
}
