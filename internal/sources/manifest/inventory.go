// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"bytes"
	"fmt"
	"maps"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/contract/convert"
	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/internal/kinds/allkinds"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/registry"
)

// The kinds that are read besides those of package kinds.
const (
	Namespace  = "Namespace"
	Definition = "CustomResourceDefinition"
)

// Inventory holds the objects that the manifests of a directory define. It is immutable.
type Inventory struct {
	objects map[string]map[string]Object  // by kind and name, in effect
	refused map[string]map[string]refusal // by kind and name

	// Closed is what the objects close that are not valid, and have no earlier version, by their kinds and names.
	Closed map[string][]*kinds.Closed
	// Named has the file of each ExtensionConfig that a manifest defines, be it valid or not.
	Named map[string]string
	// Unreadable are the files, or files with a part, of which it is not known what they define, and of which nothing is
	// kept that they defined before.
	Unreadable []string

	read map[string]*reading // by the file's name
}

// Of returns the objects of a kind that are in effect, by name.
func (v *Inventory) Of(kind string) map[string]Object { return v.objects[kind] }

// Items returns the objects of a kind of Hookgate's own, in the order of their names.
func (v *Inventory) Items(kind string) []kinds.Item {
	objects, refused, closed := v.objects[kind], v.refused[kind], map[string]*kinds.Closed{}
	for _, c := range v.Closed[kind] {
		closed[c.Name] = c
	}
	names := map[string]bool{}
	for name := range objects {
		names[name] = true
	}
	for name := range refused {
		names[name] = true
	}
	for name := range closed { // of a duplicate, or of an object without a usable name
		names[name] = true
	}
	items := make([]kinds.Item, 0, len(names))
	for _, name := range slices.Sorted(maps.Keys(names)) {
		item := kinds.Item{Name: name, Closed: closed[name]}
		if o, ok := objects[name]; ok {
			item.Object, item.Compiled = o.object, o.Compiled
		}
		if r, ok := refused[name]; ok {
			item.Object, item.Mistake = r.object, r.message
		}
		items = append(items, item)
	}
	return items
}

// In returns what is compiled of the objects of a kind that are in effect, in the order of their names.
func In[C any](v *Inventory, kind string) []C { return kinds.In[C](v.Items(kind)) }

// Definitions returns the CustomResourceDefinitions, in the order of their names.
func (v *Inventory) Definitions() []convert.CRD {
	all := make([]convert.CRD, 0, len(v.objects[Definition]))
	for _, name := range slices.Sorted(maps.Keys(v.objects[Definition])) {
		all = append(all, *v.objects[Definition][name].Contracts)
	}
	return all
}

// refusal is an object whose manifest is not valid.
type refusal struct {
	object  kinds.Object // nil if it cannot be read
	message string
}

// maxKept is how many objects a problem names that stay in use.
const maxKept = 10

// maxParsed is how many manifests are parsed at the same time, each of which takes a multiple of its size in memory.
const maxParsed = 4

// kind is one of the maps of an inventory while it is built.
type kind struct {
	name    string
	before  map[string]Object // the objects of the previous inventory
	objects map[string]Object
	claims  map[string]claim // where each name was seen first
	refused map[string]refusal
	closed  map[string]*kinds.Closed
	// byFile has the names in before by their files, in order. It is nil until the first file asks for its own: with
	// many files that cannot be read, to look through all names for each takes the square of their number.
	byFile map[string][]string
}

func newKind(name string, before map[string]Object) *kind {
	return &kind{name: name, before: before, objects: map[string]Object{}, claims: map[string]claim{},
		refused: map[string]refusal{}, closed: map[string]*kinds.Closed{}}
}

// Next returns the inventory of the manifests, which are in the order of their names, and all their problems. An object
// whose manifest is invalid now stays as in v; an object that no manifest defines is removed.
func (v *Inventory) Next(manifests []File, words *Decoder) (*Inventory, []Problem) {
	var all []*kind
	for _, of := range allkinds.Table() {
		all = append(all, newKind(of.Name, v.objects[of.Name]))
	}
	for _, name := range []string{Namespace, Definition, ""} { // nothing is known of other kinds
		all = append(all, newKind(name, v.objects[name]))
	}
	var problemsOfAll []Problem
	readings := v.readings(manifests, words)
	byFile := make(map[string]*reading, len(manifests))
	var unreadable []string
	for i := range manifests {
		m, r := &manifests[i], readings[i]
		if r.count <= limits.ManifestProblems { // more would be kept than are reported
			byFile[m.file] = r
		}
		problems := slices.Clone(r.problems)
		cannotRead := slices.ContainsFunc(problems, func(p Problem) bool { return p.unreadable })
		for i, e := range r.entries {
			found := slices.Clone(e.problems)
			if e.object != nil {
				o := *e.object
				of := slices.IndexFunc(all, func(k *kind) bool { return k.name == e.kind })
				if of < 0 {
					of = len(all) - 1 // unknown
				}
				found = all[of].add(&o, found, r, i)
			}
			problems = append(problems, found...)
		}
		if slices.ContainsFunc(problems, func(p Problem) bool { return p.unidentified }) {
			var kept []string
			for _, k := range all {
				kept = append(kept, k.keep(m.file)...)
			}
			explainKept(problems, kept)
			cannotRead = cannotRead && len(kept) == 0
		}
		if cannotRead {
			unreadable = append(unreadable, m.file)
		}
		problemsOfAll = append(problemsOfAll, first(problems)...)
	}
	next := &Inventory{
		objects: map[string]map[string]Object{}, refused: map[string]map[string]refusal{},
		Closed: map[string][]*kinds.Closed{}, Named: map[string]string{}, Unreadable: unreadable, read: byFile,
	}
	for _, k := range all {
		next.objects[k.name], next.refused[k.name] = k.objects, k.refused
		for _, name := range slices.Sorted(maps.Keys(k.closed)) {
			of := k.closed[name]
			next.Closed[of.Kind] = append(next.Closed[of.Kind], of)
		}
		if k.name == extensionconfig.Kind {
			for name, first := range k.claims {
				next.Named[name] = first.File
			}
		}
	}
	return next, problemsOfAll
}

// readings returns the reading of each manifest. Those that are new are read on several processors: what one says
// depends on no other.
func (v *Inventory) readings(manifests []File, words *Decoder) []*reading {
	readings := make([]*reading, len(manifests))
	var group errgroup.Group
	group.SetLimit(min(runtime.GOMAXPROCS(0), maxParsed))
	for i := range manifests {
		m := &manifests[i]
		before := v.read[m.file]
		if before.has(m, words) {
			readings[i] = before.moved(m)
			continue
		}
		group.Go(func() error {
			readings[i] = read(m, words)
			return nil
		})
	}
	_ = group.Wait() // no reading fails: what is wrong with a manifest is in it
	return readings
}

// first returns the problems of a file up to the limit, and how many there are besides.
func first(problems []Problem) []Problem {
	if len(problems) <= limits.ManifestProblems {
		return problems
	}
	rest := problems[limits.ManifestProblems]
	rest.Object, rest.Warning, rest.Deprecated, rest.Effect = "", false, false, ""
	rest.Err = fmt.Errorf("%d more problems of this file are not listed", len(problems)-limits.ManifestProblems)
	return append(problems[:limits.ManifestProblems:limits.ManifestProblems], rest)
}

// claim is the object that has a name: an entry of a reading, which is nil if it cannot be read any more. It may have
// moved then.
type claim struct {
	Place

	reading *reading
	entry   int
}

// add takes o, an entry of r, into account, unless its name is taken, and returns its problems, completed.
func (k *kind) add(o *Object, problems []Problem, r *reading, entry int) []Problem {
	now := claim{o.Place, r, entry}
	if first, taken := k.claims[o.Name]; taken {
		return append(problems, k.duplicate(o, first, now))
	}
	k.claims[o.Name] = now
	if o.Valid() {
		// Keep what was compiled if nothing has changed.
		if old := k.before[o.Name]; o.object != nil && old.object != nil && kinds.SameSpec(old.object, o.object) {
			o.Compiled = old.Compiled
		}
		k.objects[o.Name] = *o
		return problems
	}
	effect := "it is not used"
	old, ok := k.before[o.Name]
	switch {
	case ok:
		old.Place = o.Place // it belongs to this manifest now
		k.objects[o.Name] = old
		effect = "the last valid state stays in use"
	case o.closed != nil:
		k.closed[o.Name] = o.closed
		effect += ", and " + o.closed.Effect()
	}
	var errs []string
	for i := range problems {
		problems[i].Effect = effect
		errs = append(errs, problems[i].Err.Error())
	}
	k.refused[o.Name] = refusal{o.object, text.Join(errs, "; ", limits.Problems) + "; " + effect}
	return problems
}

// duplicate returns the problem of an object whose name another has taken. It closes what it names, as any object with
// a mistake does, unless it is a copy of the other one, or may be that one.
func (k *kind) duplicate(o *Object, first, second claim) Problem {
	p := Problem{
		Place: o.Place, Object: fmt.Sprintf("%s %q", k.name, o.Name), Effect: "the first one is used",
		Err: fmt.Errorf("metadata.name: Duplicate value: already defined at %s", first.Place),
	}
	if !allkinds.Is(k.name) || first.reading == nil {
		return p
	}
	content := second.readable()
	if bytes.Equal(content, first.readable()) {
		return p
	}
	closed := allkinds.Close(k.name, o.unnamed(), content, p.Err.Error(), second.reading.words.hooks)
	k.closed[closed.Name] = &closed
	p.Effect += "; for the second one, " + closed.Effect()
	return p
}

// keep keeps the objects that a manifest defined before and may still define in a part that cannot be read now. It
// returns their names.
func (k *kind) keep(file string) []string {
	if k.byFile == nil {
		k.byFile = map[string][]string{}
		for _, name := range slices.Sorted(maps.Keys(k.before)) {
			of := k.before[name].File
			k.byFile[of] = append(k.byFile[of], name)
		}
	}
	var kept []string
	for _, name := range k.byFile[file] {
		old := k.before[name]
		if _, taken := k.claims[name]; taken {
			continue
		}
		// What has no usable name may be this one, and closes nothing besides.
		maps.DeleteFunc(k.closed, func(name string, c *kinds.Closed) bool {
			return registry.CheckName(c.Name) != nil && k.claims[name].File == file
		})
		k.claims[name], k.objects[name] = claim{Place: old.Place}, old
		kept = append(kept, k.name+" "+name)
	}
	return kept
}

func explainKept(problems []Problem, kept []string) {
	effect := "it is not used"
	if len(kept) > 0 {
		effect = "the objects that the file had before stay in use: " + text.Join(kept, ", ", maxKept)
	}
	for i := range problems {
		if problems[i].unidentified {
			problems[i].Effect = effect
		}
	}
}
