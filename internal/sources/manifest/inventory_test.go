// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/internal/kinds/extensionpolicy"
)

func TestInventory(t *testing.T) {
	namespace := "apiVersion: v1\nkind: Namespace\nmetadata: {name: team, labels: {tier: gold}}\n"
	definition := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: as.acme.dev, labels: {cluster.x-k8s.io/v1beta2: v1}}\n"
	bad := config("acme", "http://insecure.example.com")
	cases := map[string]struct {
		reason   string
		before   map[string]string // content by file
		after    map[string]string
		want     string // name=URL, and namespaces, after the second reading
		problems []string
	}{
		"BadDocumentHurtsOnlyItself": {
			reason:   "The other documents of the same file count.",
			after:    map[string]string{"a.yaml": config("one", urlA) + "---\n" + bad + "---\n" + config("two", urlB) + "---\n" + namespace},
			want:     "one=" + urlA + " two=" + urlB + " ns/team",
			problems: []string{`d/a.yaml:15: ExtensionConfig "acme": spec.clientConfig.url: Invalid value: "http://insecure.example.com": must begin with https://, not with "http" (it is not used, and the gateway refuses every call that the object may apply to (NotReady))`},
		},
		"NotYAMLHurtsOnlyItself": {
			reason:   "Nor does text that is not YAML.",
			after:    map[string]string{"a.yaml": config("one", urlA) + "---\n\tkind: x\n---\n" + config("two", urlB)},
			want:     "one=" + urlA + " two=" + urlB,
			problems: []string{"d/a.yaml:9: not YAML: found character that cannot start any token (it is not used)"},
		},
		"BadUpdateKeepsTheGoodVersion": {
			reason:   "What was read before stays.",
			before:   map[string]string{"a.yaml": config("acme", urlA)},
			after:    map[string]string{"a.yaml": bad},
			want:     "acme=" + urlA,
			problems: []string{`d/a.yaml:7: ExtensionConfig "acme": spec.clientConfig.url: Invalid value: "http://insecure.example.com": must begin with https://, not with "http" (the last valid state stays in use)`},
		},
		"HalfWrittenFileRemovesNothing": {
			reason:   "A file that is not YAML keeps all that it defined.",
			before:   map[string]string{"a.yaml": config("acme", urlA) + "---\n" + namespace},
			after:    map[string]string{"a.yaml": "apiVersion: runtime.cluster.x-k8s.io/v1beta2\nkind: \"Extens"},
			want:     "acme=" + urlA + " ns/team",
			problems: []string{"d/a.yaml:2: not YAML: found unexpected end of stream (the objects that the file had before stay in use: ExtensionConfig acme, Namespace team)"},
		},
		"HalfWrittenAtTheEnd": {
			reason:   "The documents that are there count, those that are not may be the one that is broken.",
			before:   map[string]string{"a.yaml": config("one", urlA) + "---\n" + config("two", urlA)},
			after:    map[string]string{"a.yaml": config("one", urlB) + "---\napiVersion: runtime.clus"},
			want:     "one=" + urlB + " two=" + urlA,
			problems: []string{"d/a.yaml:9: not a Kubernetes object: it needs apiVersion and kind (the objects that the file had before stay in use: ExtensionConfig two)"},
		},
		"EmptyFileRemovesNothing": {
			reason:   "A redirection empties a file before the program that writes it has begun.",
			before:   map[string]string{"a.yaml": config("acme", urlA)},
			after:    map[string]string{"a.yaml": "\n"},
			want:     "acme=" + urlA,
			problems: []string{"d/a.yaml:1: the file is empty; delete it if it is meant to define nothing (the objects that the file had before stay in use: ExtensionConfig acme)"},
		},
		"NameThatBecomesInvalid": {
			reason:   "Which ExtensionConfig it is cannot be said, so that none is removed.",
			before:   map[string]string{"a.yaml": config("acme", urlA)},
			after:    map[string]string{"a.yaml": config("Acme", urlA)},
			want:     "acme=" + urlA,
			problems: []string{`d/a.yaml:4: ExtensionConfig "Acme": metadata.name: Invalid value: "Acme": "Acme" must be in lower case: in paths, upper and lower case are the same (the objects that the file had before stay in use: ExtensionConfig acme)`},
		},
		"BadUpdateOfNamespace": {
			reason:   "Labels that were read before stay.",
			before:   map[string]string{"a.yaml": namespace},
			after:    map[string]string{"a.yaml": strings.Replace(namespace, "labels", "lables", 1)},
			want:     "ns/team",
			problems: []string{`d/a.yaml:3: Namespace "team": unknown field "metadata.lables": did you mean "labels"? (the last valid state stays in use)`},
		},
		"DeletedFile": {
			reason: "What no file defines is gone, from whole files too.",
			before: map[string]string{"a.yaml": config("acme", urlA), "b.yaml": config("other", urlB) + "---\n" + namespace},
			after:  map[string]string{"a.yaml": config("acme", urlA)},
			want:   "acme=" + urlA,
		},
		"DeletedDocument": {
			reason: "A comment is no document.",
			before: map[string]string{"a.yaml": config("acme", urlA)},
			after:  map[string]string{"a.yaml": "# nothing\n"},
		},
		"Renamed": {
			reason: "The same name in another file is the same ExtensionConfig.",
			before: map[string]string{"a.yaml": config("acme", urlA)},
			after:  map[string]string{"b.yaml": config("acme", urlB)},
			want:   "acme=" + urlB,
		},
		"DuplicateName": {
			reason:   "The first by the name of its file wins, and both places are named.",
			after:    map[string]string{"b.yaml": config("acme", urlB), "a.yaml": "# comment\n" + config("acme", urlA)},
			want:     "acme=" + urlA,
			problems: []string{`d/b.yaml:1: ExtensionConfig "acme": metadata.name: Duplicate value: already defined at d/a.yaml:2 (the first one is used; for the second one, the gateway refuses every call that the object may apply to (NotReady))`},
		},
		"DuplicateOfKept": {
			reason:   "A half-written file keeps its names.",
			before:   map[string]string{"a.yaml": config("acme", urlA)},
			after:    map[string]string{"a.yaml": "\t", "b.yaml": config("acme", urlB)},
			want:     "acme=" + urlA,
			problems: []string{"d/a.yaml:1: the file is empty; delete it if it is meant to define nothing (the objects that the file had before stay in use: ExtensionConfig acme)", `d/b.yaml:1: ExtensionConfig "acme": metadata.name: Duplicate value: already defined at d/a.yaml:1 (the first one is used)`},
		},
		"BrokenFileKeepsOnlyItsOwn": {
			reason:   "What another file had is gone with it.",
			before:   map[string]string{"a.yaml": config("acme", urlA), "b.yaml": config("other", urlB)},
			after:    map[string]string{"b.yaml": "\tx"},
			want:     "other=" + urlB,
			problems: []string{"d/b.yaml:1: not YAML: found character that cannot start any token (the objects that the file had before stay in use: ExtensionConfig other)"},
		},
		"CustomResourceDefinition": {
			reason:   "It is followed, kept and missed as everything else.",
			before:   map[string]string{"a.yaml": definition, "b.yaml": strings.ReplaceAll(definition, "as.", "bs."), "c.yaml": strings.ReplaceAll(definition, "as.", "cs.")},
			after:    map[string]string{"a.yaml": strings.Replace(definition, "v1}}", "[v1]}}", 1), "b.yaml": strings.ReplaceAll(definition, "as.", "bs.")},
			want:     "crd/as.acme.dev crd/bs.acme.dev",
			problems: []string{`d/a.yaml:3: CustomResourceDefinition "as.acme.dev": metadata.labels[cluster.x-k8s.io/v1beta2]: Invalid type: list, must be a string; put it in quotes (the last valid state stays in use)`},
		},
		"SameNameOfAnotherKind": {
			reason: "An ExtensionConfig and a Namespace may share a name.",
			after:  map[string]string{"a.yaml": config("team", urlA) + "---\n" + namespace},
			want:   "team=" + urlA + " ns/team",
		},
	}
	words := newDecoder(t)
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			first, _ := (&Inventory{}).Next(manifestsOf(tc.before), words)
			second, problems := first.Next(manifestsOf(tc.after), words)
			var got []string
			for _, name := range sortedKeys(second.Of(extensionconfig.Kind)) {
				got = append(got, name+"="+second.Of(extensionconfig.Kind)[name].Extension.ClientConfig.URL)
			}
			for _, name := range sortedKeys(second.Of(Namespace)) {
				got = append(got, "ns/"+name)
			}
			for _, name := range sortedKeys(second.Of(Definition)) {
				got = append(got, "crd/"+name)
			}
			if diff := cmp.Diff(tc.want, strings.Join(got, " ")); diff != "" {
				t.Errorf("%s\n-want +got\n%s", tc.reason, diff)
			}
			var texts []string
			for _, p := range problems {
				texts = append(texts, p.Error()+" ("+p.Effect+")")
			}
			if diff := cmp.Diff(tc.problems, texts); diff != "" {
				t.Errorf("%s\nproblems -want +got\n%s", tc.reason, diff)
			}
		})
	}
}

func manifestsOf(files map[string]string) []File {
	var list []File
	for _, file := range sortedKeys(files) {
		list = append(list, File{file: "d/" + file, content: []byte(files[file])})
	}
	return list
}

// What did not change is not compiled anew, and the registry does not change either.
func TestInventoryKeepsUnchangedPolicies(t *testing.T) {
	words := newDecoder(t)
	manifests := manifestsOf(map[string]string{"p.yaml": policyManifest("{targetRef: {name: acme}, " + "matchConditions: [{name: a, expression: 'true'}]" + "}")})
	first, problems := (&Inventory{}).Next(manifests, words)
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	moved := manifestsOf(map[string]string{"q.yaml": "# moved\n" + policyManifest("{targetRef: {name: acme}, "+"matchConditions: [{name: a, expression: 'true'}]"+"}")})
	second, _ := first.Next(moved, words)
	compiled := func(v *Inventory) *policy.Policy {
		return v.Of(extensionpolicy.Kind)["p"].Compiled.(extensionpolicy.Policy).Compiled
	}
	if compiled(first) != compiled(second) || second.Of(extensionpolicy.Kind)["p"].Line != 2 {
		t.Error("the same policy in another place was compiled anew, or its place is not known")
	}
	changed := manifestsOf(map[string]string{"q.yaml": policyManifest("{targetRef: {name: acme}, " + "matchConditions: [{name: a, expression: 'false'}]" + "}")})
	if third, _ := second.Next(changed, words); compiled(third) == compiled(second) {
		t.Error("another policy is another")
	}
}

// A file that cannot be read is not looked for among all objects: there may be as many such files as objects.
func TestKeepLooksAtTheObjectsOfOneFile(t *testing.T) {
	before := map[string]Object{}
	for i := range 1000 {
		name := fmt.Sprintf("o%04d", i)
		before[name] = Object{Name: name, Place: Place{File: fmt.Sprintf("d/%d.yaml", i%500), Line: 1}}
	}
	k := newKind("ExtensionConfig", before)
	want := []string{"ExtensionConfig o0007", "ExtensionConfig o0507"}
	if got := k.keep("d/7.yaml"); !slices.Equal(got, want) {
		t.Errorf("kept %v, want %v", got, want)
	}
	if got := k.keep("d/7.yaml"); len(got) > 0 {
		t.Errorf("kept %v again", got)
	}
	if allocs := testing.AllocsPerRun(10, func() { k.keep("d/other.yaml") }); allocs > 0 {
		t.Errorf("a file without objects takes %v allocations, as if the names of all were listed", allocs)
	}
}

// A problem names some of the objects that stay: a file may have thousands of them, and a hundred problems.
func TestProblemNamesFewKeptObjects(t *testing.T) {
	var kept []string
	for i := range maxKept + 1 {
		kept = append(kept, fmt.Sprintf("Namespace n%d", i))
	}
	for n, want := range map[int]string{
		maxKept: "Namespace n8, Namespace n9", maxKept + 1: "Namespace n8, Namespace n9 and 1 more",
	} {
		problems := []Problem{{unidentified: true}}
		explainKept(problems, kept[:n])
		if got := problems[0].Effect; !strings.HasSuffix(got, want) {
			t.Errorf("with %d objects: %q, want it to end with %q", n, got, want)
		}
	}
}
