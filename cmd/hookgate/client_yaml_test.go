// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sigsyaml "sigs.k8s.io/yaml"
)

func TestYAMLToJSON(t *testing.T) {
	tests := map[string]struct {
		reason string
		yaml   string
		want   string
	}{
		"BigIntegers":  {"integers above 2^53 and above 2^64 keep every digit", "a: 9007199254740993\nb: 123456789012345678901234567890", `{"a":9007199254740993,"b":123456789012345678901234567890}`},
		"Numbers":      {"a number keeps its text where JSON can have it", "[1.50, -0, 1e3, 0x1F, +5, 1_000, .5]", `[1.50,-0,1e3,31,5,1000,0.5]`},
		"Order":        {"members keep their order", "b: 1\na: 2", `{"b":1,"a":2}`},
		"OldBooleans":  {"yes and off are booleans, as they are to kubectl; quoted they are not", "[yes, off, 'yes', \"off\", !!str yes, true]", `[true,false,"yes","off","yes",true]`},
		"Timestamps":   {"a timestamp is text", "a: 2026-03-02T08:14:55Z\nb: 2026-03-02", `{"a":"2026-03-02T08:14:55Z","b":"2026-03-02"}`},
		"Keys":         {"keys become text", "4711: a\ntrue: b\n1.5: c", `{"4711":"a","true":"b","1.5":"c"}`},
		"Nulls":        {"all ways to write null", "[null, ~, ]", `[null,null]`},
		"Strings":      {"text that JSON must escape, and <>& which it need not", "a: \"\\u0000\\u2028\\t<&>\"\nb: |\n  one\n  two\n", `{"a":"\u0000\u2028\t<&>","b":"one\ntwo\n"}`},
		"Aliases":      {"an alias stands for its anchor", "a: &x {k: [1]}\nb: *x", `{"a":{"k":[1]},"b":{"k":[1]}}`},
		"EndMarker":    {"a closing --- begins no second document", "---\na: 1\n---\n", `{"a":1}`},
		"Empty":        {"empty collections", "{a: {}, b: []}", `{"a":{},"b":[]}`},
		"VersionFloat": {"an unquoted version is a number, which the codec then refuses by name", "v: 1.30", `{"v":1.30}`},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := yamlToJSON([]byte(tt.yaml), 1<<20)
			if err != nil {
				t.Fatalf("%s: %v", tt.reason, err)
			}
			if string(got) != tt.want {
				t.Errorf("%s:\n got %s\nwant %s", tt.reason, got, tt.want)
			}
		})
	}
}

func TestYAMLToJSONErrors(t *testing.T) {
	bomb := "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
	for i := range 9 {
		last, next := string(rune('0'+i)), string(rune('1'+i))
		bomb += "a" + next + ": &a" + next + " [" + strings.Repeat("*a"+last+",", 10) + "]\n"
	}
	tests := map[string]struct {
		reason string
		yaml   string
		want   string
	}{
		"Syntax":    {"the line of an indentation error", "a: 1\nb:\n  c: 1\n d: 2\n", "line 4: did not find expected key"},
		"FirstLine": {"the same on the first line", "{a: 1, b: 2] ", "line 1: did not find expected ',' or '}'"},
		"Tab":       {"the line of a tab", "a:\n\tb: 1\n", "line 2: found character that cannot start any token"},
		"Twice":     {"a key that is there twice, which YAML forbids", "a: 1\nb: 2\na: 3\n", `line 3: key "a" is there twice`},
		"Empty":     {"nothing but a comment", "# nothing\n", "it is empty"},
		"Null":      {"a document that is null", "---\n...\n", "it is empty"},
		"Second":    {"a second document", "a: 1\n---\nb: 2\n", "line 2: a second document begins; a file holds one request"},
		"Merge":     {"merge keys", "a: &a {x: 1}\nb:\n  <<: *a\n", "line 3: merge keys (<<) are not supported"},
		"Infinity":  {"a number that JSON does not have", "a:\n- .inf\n", "line 2: JSON has no .inf"},
		"Tag":       {"a tag of its own", "a: !secret x\n", "line 1: tag !secret has no form in JSON"},
		"Binary":    {"binary data, which is base64 text in JSON", "a: !!binary aGk=\n", "line 1: tag !!binary has no form in JSON"},
		"ListKey":   {"a key that is a list", "? [a]\n: 1\n", "line 1: a key must be text"},
		"Bomb":      {"aliases that grow beyond the limit", bomb, "as JSON it is larger than the 1 MiB that a request may have"},
		"SelfAlias": {"an anchor within itself", "a: &a [*a]\n", "line 1: nested deeper than 1000"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := yamlToJSON([]byte(tt.yaml), 1<<20)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s:\n got %v\nwant %s", tt.reason, err, tt.want)
			}
		})
	}
}

// TestExamplesMeanTheSameToKubectl compares with the library that the Kubernetes command line uses.
func TestExamplesMeanTheSameToKubectl(t *testing.T) {
	files, err := filepath.Glob("../../examples/requests/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		ours, err := yamlToJSON(data, 1<<20)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		theirs, err := sigsyaml.YAMLToJSON(data)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(parse(t, theirs), parse(t, ours)); diff != "" {
			t.Errorf("%s: kubectl reads it differently (-kubectl +hookgate):\n%s", filepath.Base(file), diff)
		}
	}
}

func parse(t *testing.T, data []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return value
}

// TestYAMLRoundTrip writes random JSON as YAML and reads it again, with this package's reader and with kubectl's.
func TestYAMLRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 3000 {
		in, err := json.Marshal(randomValue(r, 4))
		if err != nil {
			t.Fatal(err)
		}
		if string(in) == "null" {
			continue // a document that is null counts as empty
		}
		var out bytes.Buffer
		if err := jsonToYAML(&out, in); err != nil {
			t.Fatalf("%v\n%s", err, in)
		}
		again, err := yamlToJSON(out.Bytes(), 1<<20)
		if err != nil {
			t.Fatalf("%v\n%s\n%s", err, in, out.String())
		}
		if diff := cmp.Diff(parse(t, in), parse(t, again)); diff != "" {
			t.Fatalf("(-in +out):\n%s\n%q\n%s", diff, in, out.String())
		}
		kubectl, err := sigsyaml.YAMLToJSON(out.Bytes())
		if err != nil {
			t.Fatalf("kubectl: %v\n%s\n%s", err, in, out.String())
		}
		if diff := cmp.Diff(parse(t, in), parse(t, kubectl)); diff != "" {
			t.Fatalf("kubectl (-in +out):\n%s\n%q\n%s", diff, in, out.String())
		}
	}
}

func randomValue(r *rand.Rand, depth int) any {
	texts := []string{"", " ", "a", "yes", "No", "on", "y", "null", "~", "true", "1", "1.5", "0x10", "1_000", "1e3", ".inf", "1:30", "12:30:45", "2026-03-02",
		"a: b", "- a", "# a", "a #b", "'", "\"", "line one\nline two", "line\n", "\nline", "  lead\nline", "trail \nx", "tab\tx", "nul\x00", "bell\a", "\u2028", "\u0085",
		"\ufeff", "grüß 支付 🚀", "{a}", "[a]", "&a", "*a", "!a", "%a", "@a", "`a", "|", ">", "?", "-", "---", "...", "=", "<<", "\r\n", "a\rb", "x: |\n  y", "\x7f", "a:", ":a", ","}
	kinds := 7
	if depth == 0 {
		kinds = 5
	}
	switch r.IntN(kinds) {
	case 0:
		return nil
	case 1:
		return r.IntN(2) == 0
	case 2:
		return json.Number([]string{"0", "-1", "9007199254740993", "-9223372036854775808", "18446744073709551615", "42"}[r.IntN(6)])
	case 3, 4:
		return texts[r.IntN(len(texts))]
	case 5:
		list := []any{}
		for range r.IntN(4) {
			list = append(list, randomValue(r, depth-1))
		}
		return list
	default:
		object := map[string]any{}
		for range r.IntN(4) {
			object[texts[r.IntN(len(texts))]] = randomValue(r, depth-1)
		}
		return object
	}
}

// FuzzRequestJSON feeds files as people write them: what comes out is valid JSON, and can be written as YAML.
func FuzzRequestJSON(f *testing.F) {
	for _, seed := range []string{
		"a: 1\nb: [yes, 1.50, 0x1F, ~, 'x', \"\\u2028\"]\n", "a: &x {k: [1]}\nb: *x\n", "{\"a\": [1, 2,]}", "--- |\n text\n...\n", "? [a]\n: 1\n", "a: !!binary aGk=\n",
		"1: a\n.5: b\n", "\ufeff{}", "a: 2026-03-02\n---\n",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		body, err := requestJSON(data)
		if err != nil {
			return
		}
		if !json.Valid(body) {
			t.Fatalf("%q became %q, which is not JSON", data, body)
		}
		if len(body) > 1<<16 {
			return // aliases grew it; writing it takes long and shows nothing new
		}
		if err := jsonToYAML(&bytes.Buffer{}, body); err != nil {
			t.Fatalf("%q cannot be written as YAML: %v", body, err)
		}
	})
}
