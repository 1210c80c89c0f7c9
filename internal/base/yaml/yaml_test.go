// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package yaml_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/internal/base/alloctest"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/yaml"
	"github.com/hookgate/hookgate/internal/base/yaml/yamltest"
)

func TestToJSON(t *testing.T) {
	for name, tc := range yamltest.Cases {
		t.Run(name, func(t *testing.T) {
			got, err := yaml.ToJSON([]byte(tc.YAML), 1<<20)
			if tc.Error != "" {
				var at *yaml.Error
				if !errors.As(err, &at) || !strings.Contains(at.Text, tc.Error) || tc.Line > 0 && at.Line != tc.Line {
					t.Errorf("%s: error is %v, want line %d: %s", tc.Reason, err, tc.Line, tc.Error)
				}
				return
			}
			if err != nil || string(got) != tc.JSON {
				t.Fatalf("%s:\n got %s, %v\nwant %s", tc.Reason, got, err, tc.JSON)
			}
			if kubectl, err := sigsyaml.YAMLToJSON([]byte(tc.YAML)); tc.Differs != (err != nil || !cmp.Equal(decode(t, got), decode(t, kubectl))) {
				t.Errorf("%s: kubectl reads %s, %v", tc.Reason, kubectl, err)
			}
		})
	}
}

// decode returns the value of a JSON text, numbers by their value.
func decode(t testing.TB, data []byte) any {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		t.Fatalf("%v in %s", err, data)
	}
	return plain(value)
}

// plain writes numbers in one way, integers with all their digits.
func plain(value any) any {
	switch v := value.(type) {
	case json.Number:
		if i, err := v.Int64(); err == nil {
			return i
		}
		if f, err := v.Float64(); err == nil && strings.ContainsAny(string(v), ".eE") {
			if i := int64(f); float64(i) == f {
				return i
			}
			return f
		}
	case []any:
		for i := range v {
			v[i] = plain(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = plain(v[k])
		}
	}
	return value
}

func TestToJSONWantsOneDocument(t *testing.T) {
	for name, tc := range map[string]struct{ reason, text, want, err string }{
		"Marker":     {"a closing marker begins no document", "---\na: 1\n---\n", `{"a":1}`, ""},
		"Directive":  {"nor does a directive", "%YAML 1.1\n---\na: 1\n...\n", `{"a":1}`, ""},
		"Mark":       {"editors on Windows put a mark in front", "\ufeffa: 1\r\nb: 2\r\n", `{"a":1,"b":2}`, ""},
		"Scalar":     {"a document may be anything", "1", "1", ""},
		"JSON":       {"JSON is YAML, with escapes of its own", "{\"a\\/b\":\t\"\\ud83d\\uDE00\\u00e9\\n\"}", `{"a/b":"😀é\n"}`, ""},
		"Empty":      {"a comment is nothing", "# nothing\n", "", "it is empty"},
		"Null":       {"nor is null", "---\n...\n", "", "it is empty"},
		"Second":     {"the line is where the second begins", "a: 1\n---\nb: 2\n", "", "line 3: a second document begins; the file must hold one"},
		"AfterEnd":   {"documents may be ended, too", "a: 1\n...\n---\nb: 2\n", "", "line 4: a second document begins; the file must hold one"},
		"BadSecond":  {"a mistake comes first", "a: 1\n---\nb: 2: 3\n", "", "line 3: mapping values are not allowed in this context"},
		"NotUTF8":    {"the parser names no line", "a: 1\nb: \xff\n", "", "line 2: invalid leading UTF-8 octet"},
		"LineOfFlow": {"a brace that is not closed", "{a: 1, b: 2] ", "", "line 1: did not find expected ',' or '}'"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := yaml.ToJSON([]byte(tc.text), 1<<20)
			if text := errorText(err); string(got) != tc.want || text != tc.err {
				t.Errorf("%s: got %s, %s, want %s, %s", tc.reason, got, text, tc.want, tc.err)
			}
		})
	}
	if _, err := yaml.ToJSON(nil, 1); !errors.Is(err, yaml.ErrEmpty) {
		t.Errorf("error of no text is %v", err)
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

func TestToJSONLimits(t *testing.T) {
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	if _, err := yaml.ToJSON([]byte(nested(limits.JSONDepth+1)), 1<<20); err != nil {
		t.Errorf("a value inside %d lists: %v", limits.JSONDepth, err)
	}
	if _, err := yaml.ToJSON([]byte(nested(limits.JSONDepth+2)), 1<<20); err == nil || err.Error() != "line 1: nested deeper than 1000" {
		t.Errorf("a value inside %d lists: %v", limits.JSONDepth+1, err)
	}
	const limit = 1 << 20
	exact := `"` + strings.Repeat("x", limit-2) + `"`
	if got, err := yaml.ToJSON([]byte(exact), limit); err != nil || len(got) != limit {
		t.Errorf("exactly the limit: %d bytes, %v", len(got), err)
	}
	for _, text := range []string{`"x` + exact[1:], "- " + exact} {
		if _, err := yaml.ToJSON([]byte(text), limit); err == nil || err.Error() != "line 1: as JSON it is larger than 1 MiB" {
			t.Errorf("beyond the limit: %v", err)
		}
	}
}

func TestParseKeepsDocumentsAroundMistakes(t *testing.T) {
	docs, errs := yaml.Parse([]byte("a: 1\n---\n\tb\n--- # comment\nc: [1\n---\n# nothing\n---\nd:\n- e\n- f\n"))
	if len(docs) != 2 || docs[0].Line() != 1 || docs[1].Line() != 9 {
		t.Fatalf("documents %v", docs)
	}
	if len(errs) != 2 || errs[0].Line != 3 || errs[1].Line != 5 {
		t.Errorf("errors %v", errs)
	}
	for path, want := range map[string]int{"d": 9, "d.0": 10, "d.1": 11, "d.2": 9, "d.-1": 9, "d.x": 9, "x": 9, "d.1.y": 11} {
		if got := docs[1].LineOf(strings.Split(path, ".")...); got != want {
			t.Errorf("line of %s is %d, want %d", path, got, want)
		}
	}
}

func TestFindSeesMergedMembers(t *testing.T) {
	docs, errs := yaml.Parse([]byte("base: &b {x: 1, v: {z: text}}\nnested: &n {<<: *b}\nall:\n  <<: [*n, {x: 2, w: 3}]\n  v: own\nself: &s {<<: *s}\n"))
	if len(docs) != 1 || len(errs) > 0 {
		t.Fatal(errs)
	}
	for path, want := range map[string]string{"all.x": "1", "all.v": "own", "all.w": "3", "nested.v.z": "text", "all.<<": "-", "self.x": "-", "all.v.z": "-"} {
		found, ok := docs[0].Find(strings.Split(path, ".")...)
		if ok != (want != "-") || ok && found.Text() != want {
			t.Errorf("%s: found %t %v, want %s", path, ok, found, want)
		}
	}
	if _, ok := docs[0].Items(); ok {
		t.Error("a mapping has no items")
	}
	only, err := docs[0].Only("base").JSON(1 << 20)
	if err != nil || string(only) != `{"base":{"x":1,"v":{"z":"text"}}}` {
		t.Errorf("only: %s, %v", only, err)
	}
}

func TestFirstNotString(t *testing.T) {
	for text, want := range map[string]string{"a: x\nb: yes\nc: 1\n": "b", "a: 1": "a", "a: 'yes'\nb: 2026-01-01\n": "", "a: [x]": "a", "[1]": "", "a: .inf": "a", "a: &x 5\nb: *x": "a"} {
		docs, _ := yaml.Parse([]byte(text))
		if got, ok := docs[0].FirstNotString(); got != want || ok != (want != "") {
			t.Errorf("%q: %q, %t, want %q", text, got, ok, want)
		}
	}
}

// FuzzToJSON holds that what comes out is JSON, that it can be written as YAML, and that reading it again gives the
// same.
func FuzzToJSON(f *testing.F) {
	for _, tc := range yamltest.Cases {
		f.Add([]byte(tc.YAML))
	}
	for _, seed := range []string{"{\"a\": [1, 2,]}", "--- |\n text\n...\n", "\ufeff{}", "a: 2026-03-02\n---\n", "{<<: {<<: &a [*a]}}"} {
		f.Add([]byte(seed))
	}
	// What aliases repeat is bounded by the size of the output, whatever that of the input.
	const most = 1 << 16
	memory := alloctest.Bound{Base: 4 << 20, PerByte: 2 << 10}
	f.Fuzz(func(t *testing.T, text []byte) {
		var data []byte
		var err error
		memory.Check(t, len(text), func() { data, err = yaml.ToJSON(text, most) })
		if err != nil {
			return
		}
		if !json.Valid(data) {
			t.Fatalf("%q became %q, which is not JSON", text, data)
		}
		var out bytes.Buffer
		memory.Check(t, len(data), func() { err = yaml.FromJSON(&out, data) })
		if err != nil {
			t.Fatalf("%q cannot be written as YAML: %v", data, err)
		}
		again, err := yaml.ToJSON(out.Bytes(), 1<<20)
		if err != nil {
			t.Fatalf("%q was written as %q: %v", data, out.Bytes(), err)
		}
		if diff := cmp.Diff(decode(t, data), decode(t, again)); diff != "" {
			t.Errorf("%q was written as %q (-before +after):\n%s", data, out.Bytes(), diff)
		}
	})
}

// numbered returns n texts with their numbers.
func numbered(format string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, format, i)
	}
	return b.String()
}

// TestParseIsBounded holds that a text of any content is read in time and memory that its size bounds.
func TestParseIsBounded(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		docs int
		want string // of the last error; empty for none
	}{
		"empty documents":          {strings.Repeat("---\n", 200_000) + "a: b\n", 1, ""},
		"the most documents":       {strings.Repeat("---\na: b\n", limits.ManifestDocuments), limits.ManifestDocuments, ""},
		"one document more":        {strings.Repeat("---\na: b\n", limits.ManifestDocuments+1), limits.ManifestDocuments, "line 20001: more than 10000 documents; use several files"},
		"documents that are ended": {strings.Repeat("--- a\n...\n", limits.ManifestDocuments+1), limits.ManifestDocuments, "line 20001: more than 10000 documents; use several files"},
		"wrong documents":          {strings.Repeat("--- [\n", limits.ManifestDocuments+1), 0, "line 10001: more than 10000 documents; use several files"},
		"directives":               {numbered("%%TAG !%d! x\n", 100) + "---\na: b\n", 1, ""},
		"one directive more":       {numbered("%%TAG !%d! x\n", 101) + "---\na: b\n", 0, "line 1: more than 100 directives %TAG"},
		"located errors":           {strings.Repeat(strings.Repeat("a:\n", 996)+"b: [\n---\n", 2), 0, "line 1995: did not find expected node content"},
		"errors beyond":            {strings.Repeat(strings.Repeat("a:\n", 9_999)+"b: [\n---\n", 3), 0, "line 20002: did not find expected node content"},
		"large documents":          {strings.Repeat("a: "+strings.Repeat("x", 1<<20)+"\nb: [\n---\n", 2), 0, "line 3: did not find expected node content"},
		"slashes":                  {`{"a":"` + strings.Repeat(`\/`, 1<<20) + `"}`, 1, ""},
		"the most values":          {"[" + strings.Repeat(",", limits.ManifestValues-2) + "\n", 0, "line 1: did not find expected node content"},
		"one value more":           {"[" + strings.Repeat(",", limits.ManifestValues-1) + "\n", 0, "line 1: more than 500000 values; use several files"},
	} {
		docs, errs := yaml.Parse([]byte(tt.text))
		got := ""
		if len(errs) > 0 {
			got = errs[len(errs)-1].Error()
		}
		if len(docs) != tt.docs || got != tt.want {
			t.Errorf("%s: %d documents, last error %q, want %d and %q", name, len(docs), got, tt.docs, tt.want)
		}
	}
}

func TestParseSkipsEmptyDocuments(t *testing.T) {
	docs, errs := yaml.Parse([]byte("# nothing\n---\n---\n# nothing\n---\n%YAML 1.1\n---\na: b\n---\n---\n# c\nd: e\n---\n"))
	if len(errs) > 0 || len(docs) != 2 || docs[0].Line() != 8 || docs[1].Line() != 12 {
		t.Errorf("%d documents, errors %v", len(docs), errs)
	}
}

// TestMergesAreBounded holds that a key is looked for in so many merged mappings, and no more are merged, also if they
// are empty: each level here multiplies them.
func TestMergesAreBounded(t *testing.T) {
	const fanOut = 40
	var levels strings.Builder
	levels.WriteString("a0: &a0 {}\n")
	for i := 1; i <= 9; i++ {
		sources := strings.Repeat(fmt.Sprintf(", *a%d", i-1), fanOut)
		fmt.Fprintf(&levels, "a%d: &a%d {<<: [%s]}\n", i, i, sources[2:])
	}
	empty := strings.Repeat(", *e", 20_000)
	for name, text := range map[string]string{
		"levels": levels.String() + "<<: *a9\n",
		"empty":  "e: &e {}\nmany: &m {<<: [" + empty[2:] + "]}\n<<: [" + strings.ReplaceAll(empty[2:], "*e", "*m") + "]\n",
	} {
		docs, errs := yaml.Parse([]byte(text))
		if len(docs) != 1 || len(errs) > 0 {
			t.Fatalf("%s: %v", name, errs)
		}
		if _, ok := docs[0].Find("kind"); ok || docs[0].LineOf("kind") != 1 {
			t.Errorf("%s: found a key that is not there", name)
		}
		if _, err := docs[0].JSON(1 << 20); err == nil || !strings.Contains(err.Error(), "merge keys (<<) stand for more than") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
