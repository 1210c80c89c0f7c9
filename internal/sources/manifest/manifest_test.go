// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/internal/base/alloctest"
	"github.com/hookgate/hookgate/internal/base/yaml/yamltest"
)

func TestParse(t *testing.T) {
	cases := map[string]struct {
		reason       string
		content      string
		wantDocs     []string // line kind name
		wantProblems []string
	}{
		"OneDocument": {
			reason:   "The line is the first member's, not that of a comment before it.",
			content:  "# comment\n\nkind: Namespace\napiVersion: v1\nmetadata:\n  name: a\n",
			wantDocs: []string{"f.yaml:3 v1 Namespace a"},
		},
		"SeveralDocuments": {
			reason: "Markers with comments, empty documents, directives and document ends are YAML; lines count from the top of the file.",
			content: "%YAML 1.1\n---\n---\n--- # first\nkind: Namespace\napiVersion: v1\nmetadata: {name: a}\n---\n# nothing\n---\n" +
				"kind: Namespace\napiVersion: v1\nmetadata: {name: b}\n...\n--- {kind: Namespace, apiVersion: v1, metadata: {name: c}}\n",
			wantDocs: []string{"f.yaml:5 v1 Namespace a", "f.yaml:11 v1 Namespace b", "f.yaml:15 v1 Namespace c"},
		},
		"ByteOrderMarkAndCRLF": {
			reason:   "Editors on Windows write both.",
			content:  "\ufeffkind: Namespace\r\napiVersion: v1\r\nmetadata:\r\n  name: a\r\n---\r\nkind: Namespace\r\napiVersion: v1\r\nmetadata:\r\n  name: b\r\n",
			wantDocs: []string{"f.yaml:1 v1 Namespace a", "f.yaml:6 v1 Namespace b"},
		},
		"MarkerInsideScalar": {
			reason:   "An indented marker is text.",
			content:  "kind: Namespace\napiVersion: v1\nmetadata:\n  name: a\n  annotations:\n    x: |\n      ---\n      y\n",
			wantDocs: []string{"f.yaml:1 v1 Namespace a"},
		},
		"JSON": {
			reason:   "JSON with tabs is YAML, and its escapes that YAML lacks are understood.",
			content:  "{\n\t\"apiVersion\": \"v1\",\n\t\"kind\": \"Namespace\",\n\t\"metadata\": {\"name\": \"a\\/b\\\\/\\ud83d\\uDE00\\u00e9\"}\n}\n",
			wantDocs: []string{"f.yaml:1 v1 Namespace a/b\\/😀é"},
		},
		"List": {
			reason: "A v1 List has items of any kind; items of a typed list inherit apiVersion and kind.",
			content: "apiVersion: v1\nkind: List\nitems:\n- apiVersion: v1\n  kind: Namespace\n  metadata: {name: a}\n- metadata: {name: lost}\n" +
				"---\napiVersion: v1\nkind: NamespaceList\nitems:\n- metadata: {name: b}\n",
			wantDocs:     []string{"f.yaml:4 v1 Namespace a", "f.yaml:12 v1 Namespace b"},
			wantProblems: []string{"f.yaml:7: not a Kubernetes object: it needs apiVersion and kind"},
		},
		"NestedListOfItself": {
			reason:   "An alias to its own list must not recurse without end.",
			content:  "apiVersion: v1\nkind: List\nitems: &i\n- apiVersion: v1\n  kind: List\n  items: *i\n",
			wantDocs: []string{"f.yaml:4 v1 List "},
		},
		"NotYAMLInTheMiddle": {
			reason: "The documents around one that is not YAML still count, and the line is the one that is wrong.",
			content: "kind: Namespace\napiVersion: v1\nmetadata: {name: a}\n---\nkind: Namespace\nmetadata:\n  name: b\n  labels: x: y\nspec: {}\n---\n" +
				"kind: Namespace\napiVersion: v1\nmetadata: {name: c}\n",
			wantDocs:     []string{"f.yaml:1 v1 Namespace a", "f.yaml:11 v1 Namespace c"},
			wantProblems: []string{"f.yaml:8: not YAML: mapping values are not allowed in this context"},
		},
		"TabIndent": {
			reason:       "The most common slip of all has the right line.",
			content:      "kind: Namespace\napiVersion: v1\nmetadata:\n\tname: a\n",
			wantProblems: []string{"f.yaml:4: not YAML: found character that cannot start any token"},
		},
		"WrongIndent": {
			reason:       "The parser names the beginning of the block, which is lines away.",
			content:      "kind: Namespace\napiVersion: v1\nmetadata:\n  name: a\n labels: {}\n",
			wantProblems: []string{"f.yaml:5: not YAML: did not find expected key"},
		},
		"OpenQuote": {
			reason:       "The line is where the quote opens, not the end of the file.",
			content:      "kind: Namespace\napiVersion: \"v1\nmetadata:\n  name: a\n",
			wantProblems: []string{"f.yaml:2: not YAML: found unexpected end of stream"},
		},
		"NotUTF8": {
			reason:       "The parser names no line.",
			content:      "kind: Namespace\napiVersion: v1\nmetadata:\n  name: \xff\n",
			wantProblems: []string{"f.yaml:4: not YAML: invalid leading UTF-8 octet"},
		},
		"NotAnObject": {
			reason:       "A file that ends in the middle of a word is a scalar.",
			content:      "apiVers",
			wantProblems: []string{"f.yaml:1: not a Kubernetes object: it needs apiVersion and kind"},
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			docs, problems := parse("f.yaml", []byte(tc.content))
			var gotDocs, gotProblems []string
			for _, d := range docs {
				gotDocs = append(gotDocs, strings.Join([]string{d.String(), d.apiVersion, d.kind, d.name}, " "))
			}
			for _, p := range problems {
				gotProblems = append(gotProblems, p.Error())
				if !p.unidentified {
					t.Errorf("%v: must be unidentified", &p)
				}
			}
			if diff := cmp.Diff(tc.wantDocs, gotDocs); diff != "" {
				t.Errorf("%s\ndocuments -want +got\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(tc.wantProblems, gotProblems); diff != "" {
				t.Errorf("%s\nproblems -want +got\n%s", tc.reason, diff)
			}
		})
	}
}

// Manifests and requests with the same text decode to the same.
func TestMembers(t *testing.T) {
	for name, tc := range yamltest.Cases {
		if name == "Bomb" {
			continue // which grows to megabytes; package yaml stops it
		}
		docs, problems := parse("f.yaml", []byte("apiVersion: v1\nkind: Namespace\n"+tc.YAML))
		var got []byte
		if len(docs) == 1 {
			members, found := docs[0].members()
			problems = append(problems, found...)
			delete(members, "apiVersion")
			delete(members, "kind")
			got, _ = json.Marshal(members)
		}
		if tc.Error == "" {
			var want map[string]json.RawMessage
			if err := json.Unmarshal([]byte(tc.JSON), &want); err != nil {
				t.Fatal(err)
			}
			if text, _ := json.Marshal(want); len(problems) > 0 || !bytes.Equal(got, text) {
				t.Errorf("%s: %s: got %s, %v, want %s", name, tc.Reason, got, problems, text)
			}
			continue
		}
		text, _, _ := strings.Cut(tc.Error, " at line") // of the mapping alone
		if len(problems) != 1 || !strings.Contains(problems[0].Error(), text) || tc.Line > 0 && problems[0].Line != tc.Line+2 {
			t.Errorf("%s: %s: got %v, want line %d: %s", name, tc.Reason, problems, tc.Line+2, text)
		}
	}
}

// An item of a list need not have apiVersion and kind, so that anything may stand there.
func TestMembersOfAnItemThatIsNoMapping(t *testing.T) {
	const list = "apiVersion: v1\nkind: NamespaceList\nitems:\n- [metadata, {name: a}]\n- text\n- null\n- metadata: {name: b}\n"
	docs, problems := parse("f.yaml", []byte(list))
	if len(docs) != 4 || len(problems) > 0 {
		t.Fatalf("got %d documents, %v", len(docs), problems)
	}
	for i, want := range []string{"f.yaml:4: Namespace: must be a mapping", "f.yaml:5: Namespace: must be a mapping",
		"f.yaml:6: Namespace: must be a mapping", ""} {
		_, problems := docs[i].members()
		var got string
		if len(problems) > 0 {
			got = problems[0].Error()
		}
		if got != want {
			t.Errorf("item %d: got %q, want %q", i, got, want)
		}
	}
}

// FuzzManifest looks for content that panics, whose lines are not lines of the file, or that takes much more memory than
// its size.
func FuzzManifest(f *testing.F) {
	f.Add([]byte(config("acme", "https://acme.example.com", "  settings: {a: 1, 2: b, c: 2024-01-01}")))
	f.Add([]byte("--- {apiVersion: v1, kind: Namespace, metadata: &m {name: a, labels: *m}}\n---\n%\n...\n: :\n"))
	f.Add([]byte("apiVersion: v1\nkind: List\nitems: [&a {apiVersion: v1, kind: Namespace, <<: *a}, [], null]\n"))
	f.Add([]byte("apiVersion: hookgate.dev/v1alpha1\nkind: ExtensionPolicy\nmetadata: {name: p}\nspec: {targetRef: {name: a}, matchConditions: [{name: c, expression: request.a == 1}]}\n"))
	f.Add([]byte("apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n<<: {metadata: {name: as.b, labels: [1]}}\nspec: &s {a: *s}\n"))
	words := newDecoder(f)
	// Compiling the condition of a policy takes some MiB, however short it is.
	memory := alloctest.Bound{Base: 64 << 20, PerByte: 4 << 10}
	f.Fuzz(func(t *testing.T, content []byte) {
		lines := 1 // with all that YAML takes for the end of a line
		for _, end := range []string{"\n", "\r", "\u0085", "\u2028", "\u2029"} {
			lines += strings.Count(string(content), end)
		}
		var problems []Problem
		memory.Check(t, len(content), func() {
			var docs []document
			docs, problems = parse("f.yaml", content)
			for i := range docs {
				o, more := decode(&docs[i], words)
				if o == nil && len(more) == 0 {
					t.Errorf("%s has neither an object nor a problem", docs[i].Place)
				}
				problems = append(problems, more...)
			}
		})
		for _, p := range problems {
			if p.Line < 1 || p.Line > lines {
				t.Errorf("%v: the file has %d lines", &p, lines)
			}
		}
	})
}
