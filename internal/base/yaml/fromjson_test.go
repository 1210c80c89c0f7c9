// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package yaml_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/internal/base/yaml"
)

// TestExamplesMeanTheSameToKubectl compares with the library that the Kubernetes command line uses.
func TestExamplesMeanTheSameToKubectl(t *testing.T) {
	files, err := filepath.Glob("../../../examples/requests/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("no examples: %v", err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		ours, err := yaml.ToJSON(data, 1<<20)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		theirs, err := sigsyaml.YAMLToJSON(data)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(decode(t, theirs), decode(t, ours)); diff != "" {
			t.Errorf("%s: kubectl reads it differently (-kubectl +hookgate):\n%s", filepath.Base(file), diff)
		}
	}
}

// TestFromJSONIsReadAsItWas writes random JSON as YAML and reads it again, with this package and with kubectl's
// library.
func TestFromJSONIsReadAsItWas(t *testing.T) {
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
		if err := yaml.FromJSON(&out, in); err != nil {
			t.Fatalf("%v\n%s", err, in)
		}
		again, err := yaml.ToJSON(out.Bytes(), 1<<20)
		if err != nil {
			t.Fatalf("%v\n%s\n%s", err, in, out.String())
		}
		if diff := cmp.Diff(decode(t, in), decode(t, again)); diff != "" {
			t.Fatalf("(-in +out):\n%s\n%q\n%s", diff, in, out.String())
		}
		kubectl, err := sigsyaml.YAMLToJSON(out.Bytes())
		if err != nil {
			t.Fatalf("kubectl: %v\n%s\n%s", err, in, out.String())
		}
		if diff := cmp.Diff(decode(t, in), decode(t, kubectl)); diff != "" {
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
