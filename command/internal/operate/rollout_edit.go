// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/base/yaml"
	"github.com/hookgate/hookgate/internal/kinds/rollout"
	"github.com/hookgate/hookgate/internal/sources/manifest"
)

// edit is a text before and after it was edited, line by line.
type edit []editLine

// editLine is a line that was kept (' '), removed ('-') or added ('+').
type editLine struct {
	op   byte
	text string // with its end
}

func (e edit) any() bool { return slices.ContainsFunc(e, func(l editLine) bool { return l.op != ' ' }) }

// text returns the text after the edit.
func (e edit) text() []byte {
	var b strings.Builder
	for _, l := range e {
		if l.op != '-' {
			b.WriteString(l.text)
		}
	}
	return []byte(b.String())
}

// around is how many lines a diff has around those that change.
const around = 3

// write writes the edit as a unified diff, in one piece.
func (e edit) write(w io.Writer, file string) error {
	if !e.any() {
		_, err := fmt.Fprintf(w, "%s has it already.\n", file)
		return err
	}
	isChange := func(l editLine) bool { return l.op != ' ' }
	first := max(slices.IndexFunc(e, isChange)-around, 0)
	last := len(e) - 1
	for !isChange(e[last]) {
		last--
	}
	shown := e[first:min(last+1+around, len(e))]
	count := map[byte]int{}
	var b strings.Builder
	for _, l := range shown {
		count[l.op]++
		b.WriteString(string(l.op) + text.PrintableLines(strings.TrimRight(l.text, "\r\n")) + "\n")
	}
	_, err := fmt.Fprintf(w, "--- %s\n+++ %s\n@@ -%d,%d +%d,%d @@\n%s", file, file, first+1, count[' ']+count['-'],
		first+1, count[' ']+count['+'], b.String())
	return err
}

// editor edits the text of a mapping in block style.
type editor struct {
	lines   []string
	spec    yaml.Node
	indent  string
	removed map[int]bool
	added   map[int][]string // behind a line, both from 1
	err     error
}

// editSpec returns the edit that makes the spec in a manifest the next one. Comments, and all that stays, are left as
// they are.
func editSpec(of *rolloutManifest, next *v1alpha1.ExtensionRolloutSpec) (edit, error) {
	before := &of.own.Object.Spec
	byHand := func(why string) error {
		return fmt.Errorf("%s: %s: edit the file by hand, as docs/rollouts.md says", of.own.At("spec"), why)
	}
	spec, _ := of.own.Node().Find("spec")
	if !spec.IsBlock() {
		return nil, byHand("spec is not written with a line for each member")
	}
	e := &editor{
		lines: strings.SplitAfter(string(of.Content()), "\n"), spec: spec, removed: map[int]bool{}, added: map[int][]string{},
	}
	stable, _ := spec.Find("stable")
	line := e.lines[stable.Line()-1]
	e.indent = line[:len(line)-len(strings.TrimLeft(line, " "))]
	if next.Stable != before.Stable {
		e.stable(next.Stable)
	}
	if next.Candidate != before.Candidate {
		e.remove("candidate")
	}
	if next.CandidateFor == nil && before.CandidateFor != nil {
		e.remove("candidateFor")
	}
	if !slices.Equal(next.Approved, before.Approved) {
		e.approve(before.Approved, next.Approved)
	}
	switch {
	case next.Paused && !before.Paused:
		e.pause()
	case !next.Paused && before.Paused:
		e.remove("paused")
	}
	if e.err != nil {
		return nil, byHand(e.err.Error())
	}
	changed := e.edit()
	if !says(of, changed.text(), next) {
		return nil, byHand("its form is not one that can be edited line by line")
	}
	return changed, nil
}

// says reports whether an edited manifest has the same objects, with the spec that is wanted.
func says(of *rolloutManifest, edited []byte, want *v1alpha1.ExtensionRolloutSpec) bool {
	file := manifest.NewFile(of.Name(), edited)
	before, _ := manifest.DecodeOwn[v1alpha1.ExtensionRollout](&of.File, rollout.Kind, true)
	after, problems := manifest.DecodeOwn[v1alpha1.ExtensionRollout](&file, rollout.Kind, true)
	if len(problems) > 0 || len(before) != len(after) {
		return false
	}
	for i := range after {
		next := before[i].Object.DeepCopy()
		if next.Name == of.own.Object.Name {
			want.DeepCopyInto(&next.Spec)
		}
		if !equality.Semantic.DeepEqual(next, after[i].Object) {
			return false
		}
	}
	return true
}

// place returns the lines of a member.
func (e *editor) place(key string) (member yaml.Node, first, last int, found bool) {
	member, found = e.spec.Find(key)
	if !found {
		return member, 0, 0, false
	}
	first, last, ok := member.Lines()
	if !ok {
		e.err = fmt.Errorf("%s has anchors or multi-line strings", key)
	}
	return member, first, last, true
}

func (e *editor) remove(key string) {
	_, first, last, found := e.place(key)
	for i := first; found && i <= last; i++ {
		e.removed[i] = true
	}
}

// scalar matches a member with a value in its line, and what follows.
var scalar = regexp.MustCompile(`^(\s*[^:]+:\s+)("[^"]*"|'[^']*'|[^\s#]+)(.*\s*)$`)

// stable replaces the stable version.
func (e *editor) stable(value string) {
	_, first, last, _ := e.place("stable")
	parts := scalar.FindStringSubmatch(e.lines[first-1])
	if first != last || parts == nil {
		e.err = errors.New(`the value of "stable" is not on the same line as the name "stable"`)
		return
	}
	e.removed[first] = true
	e.add(first, parts[1]+quoted(value)+strings.TrimRight(parts[3], "\r\n"))
}

// pause sets paused.
func (e *editor) pause() {
	e.remove("paused")
	e.add(e.afterVersions(), e.indent+"paused: true")
}

// afterVersions returns the line behind which members are added.
func (e *editor) afterVersions() int {
	_, _, last, found := e.place("candidate")
	if !found {
		_, _, last, _ = e.place("stable")
	}
	return last
}

// approve adds items to approved and removes others.
func (e *editor) approve(before, next []string) {
	const key = "approved"
	member, first, last, found := e.place(key)
	if len(next) == 0 {
		e.remove(key)
		return
	}
	if !found || !member.IsBlock() {
		behind := e.afterVersions()
		if found {
			e.remove(key)
			behind = last
		}
		e.add(behind, e.indent+key+":")
		for _, item := range next {
			e.add(behind, e.indent+"- "+quoted(item))
		}
		return
	}
	items, _ := member.Items()
	indent := e.indent
	for _, item := range items {
		begin, end, _ := item.Lines()
		line := e.lines[begin-1]
		if begin != end || begin == first {
			e.err = errors.New(`the list "approved" does not have a separate line for each item`)
			return
		}
		indent = line[:len(line)-len(strings.TrimLeft(line, " "))]
		e.removed[begin] = e.removed[begin] || !slices.Contains(next, item.Text())
	}
	for _, item := range next {
		if !slices.Contains(before, item) {
			e.add(last, indent+"- "+quoted(item))
		}
	}
}

func (e *editor) add(behind int, line string) { e.added[behind] = append(e.added[behind], line) }

// quoted returns a text as YAML has it.
func quoted(value string) string {
	out, err := sigsyaml.Marshal(value)
	if err != nil {
		return `"` + value + `"`
	}
	return strings.TrimSpace(string(out))
}

// edit returns what was done to the lines.
func (e *editor) edit() edit {
	end := "\n"
	if strings.HasSuffix(e.lines[0], "\r\n") {
		end = "\r\n"
	}
	var all edit
	for i, line := range e.lines {
		op := byte(' ')
		if e.removed[i+1] {
			op = '-'
		}
		added := e.added[i+1]
		if len(added) > 0 && !strings.HasSuffix(line, "\n") {
			line += end
		}
		if line != "" {
			all = append(all, editLine{op, line})
		}
		for _, more := range added {
			all = append(all, editLine{'+', more + end})
		}
	}
	return all
}
