// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
)

// Only files whose content differs are parsed again, whatever else is equal, and what is not is as if it were.
func TestNextParsesWhatChanged(t *testing.T) {
	words := newDecoder(t)
	before := map[string]string{
		"a.yaml": config("one", urlA), "b.yaml": config("two", urlA),
		"c.yaml": config("bad", "http://insecure"), "d.yaml": "[",
	}
	first, problems := (&Inventory{}).Next(manifestsOf(before), words)
	after := map[string]string{"b.yaml": config("two", urlB), "e.yaml": config("one", urlA)}
	for _, file := range []string{"a.yaml", "c.yaml", "d.yaml"} {
		after[file] = before[file]
	}
	if len(after["b.yaml"]) != len(before["b.yaml"]) {
		t.Fatal("the contents must have the same size")
	}
	second, more := first.Next(manifestsOf(after), words)
	if first.Of(extensionconfig.Kind)["one"].Extension != second.Of(extensionconfig.Kind)["one"].Extension {
		t.Error("a file that did not change was parsed again")
	}
	if got := second.Of(extensionconfig.Kind)["two"].Extension.ClientConfig.URL; got != urlB {
		t.Errorf("a file that changed is used with %s", got)
	}
	anew, want := (&Inventory{}).Next(manifestsOf(after), words)
	if texts(more) != texts(want) || len(anew.Of(extensionconfig.Kind)) != len(second.Of(extensionconfig.Kind)) {
		t.Errorf("got the problems\n%s\nwant those of reading all files anew\n%s", texts(more), texts(want))
	}
	third, again := second.Next(manifestsOf(before), words)
	if third.Of(extensionconfig.Kind)["two"].Extension.ClientConfig.URL != urlA || texts(again) != texts(problems) {
		t.Errorf("back to what it was: problems\n%s\nwant\n%s", texts(again), texts(problems))
	}
}

func texts(problems []Problem) string {
	var lines []string
	for i := range problems {
		lines = append(lines, problems[i].Error()+" "+problems[i].Effect)
	}
	return strings.Join(lines, "\n")
}

// A file with more problems than are reported is not kept: its problems would take memory for as long as it is there.
func TestNextKeepsNoFloodOfProblems(t *testing.T) {
	for count, kept := range map[int]bool{limits.ManifestProblems: true, limits.ManifestProblems + 1: false} {
		files := manifestsOf(map[string]string{"a.yaml": strings.Repeat("---\na: b\n", count)})
		v, _ := (&Inventory{}).Next(files, newDecoder(t))
		if got := v.read["d/a.yaml"] != nil; got != kept {
			t.Errorf("with %d problems, the reading is kept: %t", count, got)
		}
	}
}

// BenchmarkNext reads 2,000 files of one ExtensionConfig: at the start, and after a change of one of them.
func BenchmarkNext(b *testing.B) {
	words := newDecoder(b)
	files := make([]File, 2000)
	for i := range files {
		name := fmt.Sprintf("extension-%04d", i)
		files[i] = File{file: "d/" + name + ".yaml", content: []byte(config(name, urlA))}
	}
	start, problems := (&Inventory{}).Next(files, words)
	if len(problems) > 0 {
		b.Fatal(problems)
	}
	changed := slices.Clone(files)
	changed[1000].content = []byte(config("extension-1000", urlB))
	for name, before := range map[string]*Inventory{"start": {}, "change": start} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if v, _ := before.Next(changed, words); len(v.Of(extensionconfig.Kind)) != len(files) {
					b.Fatalf("%d ExtensionConfigs", len(v.Of(extensionconfig.Kind)))
				}
			}
		})
	}
}
