// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookversions

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hookversion"
	"github.com/hookgate/hookgate/internal/contract/codec"
)

// catalogs returns every catalog with its conversions.
func catalogs() map[string]versioned {
	product, test := catalog.New(), New()
	return map[string]versioned{"product": {product, hookversion.New(product)}, "test": {test, NewConverter(test)}}
}

type versioned struct {
	*catalog.Catalog
	converter *hookversion.Converter
}

// pair is a kind of message of a hook in two versions, one of which is the hub.
type pair struct {
	name     string
	from, to *catalog.Hook
	request  bool
	codec    *codec.Codec
	*hookversion.Converter
}

// pairs returns every registered pair of every catalog, in both directions, in order.
func pairs() []pair {
	var all []pair
	for _, name := range []string{"product", "test"} {
		c := catalogs()[name]
		mandated := codec.New(c.Catalog)
		for _, h := range c.Hooks() {
			if h.Hub() == h {
				continue
			}
			for _, request := range []bool{true, false} {
				kind := map[bool]string{true: "request", false: "response"}[request]
				all = append(all,
					pair{
						fmt.Sprintf("%s/%s/%s/down", h.Hook, h.Version, kind), h.Hub(), h, request, mandated,
						c.converter,
					},
					pair{fmt.Sprintf("%s/%s/%s/up", h.Hook, h.Version, kind), h, h.Hub(), request, mandated,
						c.converter})
			}
		}
	}
	return all
}

// random returns a message of the first version.
func (p pair) random(r *rand.Rand) proto.Message {
	t := p.from.Response
	if p.request {
		t = p.from.Request
	}
	m := t.New()
	fill(r, m, 4)
	return m.Interface()
}

func (p pair) convert(m proto.Message, from, to *catalog.Hook) (proto.Message, []string, error) {
	if p.request {
		return p.ConvertRequest(m, from, to)
	}
	return p.ConvertResponse(m, from, to)
}

// check converts a random message there and back, and compares.
func (p pair) check(t *testing.T, r *rand.Rand) (lossless bool) {
	t.Helper()
	before := p.random(r)
	kept := proto.Clone(before)
	there, lost, err := p.convert(before, p.from, p.to)
	if err != nil {
		t.Fatalf("%s: %v\n%v", p.name, err, before)
	}
	if err := p.codec.Check(there); err != nil {
		t.Errorf("%s: what it became cannot be written as JSON: %v", p.name, err)
	}
	back, lostBack, err := p.convert(there, p.to, p.from)
	if err != nil {
		t.Fatalf("%s, and back: %v\n%v", p.name, err, there)
	}
	if !proto.Equal(before, kept) {
		t.Errorf("%s: the message was changed to\n%v\nfrom\n%v", p.name, before, kept)
	}
	if len(lostBack) > 0 {
		t.Errorf("%s: lost on the way back: %v\n%v", p.name, lostBack, there)
	}
	declared := p.ResponseLosses(p.from, p.to)
	if p.request {
		declared = p.RequestLosses(p.from, p.to)
	}
	for _, path := range lost {
		if !slices.Contains(declared, path) && !isUnknown(path, before) {
			t.Errorf("%s: lost %s, which is not declared: %v", p.name, path, declared)
		}
	}
	for _, d := range differences(before.ProtoReflect(), back.ProtoReflect(), "") {
		if slices.Contains(lost, d.path) || d.gained && slices.Contains(declared, d.path) {
			continue
		}
		t.Errorf(
			"%s: %s is not the same, and it is not told (lost: %v)\nbefore %v\n there %v\nafter  %v", p.name, d.path,
			lost, before, there, back,
		)
	}
	return len(lost) == 0
}

// isUnknown reports whether path leads to a member that the message does not know.
func isUnknown(path string, m proto.Message) bool {
	name := path[strings.LastIndexByte(path, '.')+1:]
	return strings.Contains(fmt.Sprint(m), `key:"`+name+`"`)
}

func TestRoundTrips(t *testing.T) {
	for _, p := range pairs() {
		t.Run(p.name, func(t *testing.T) {
			lossless := 0
			for seed := range uint64(500) {
				if p.check(t, rand.New(rand.NewPCG(seed, 1))) {
					lossless++
				}
				if t.Failed() {
					return
				}
			}
			if lossless == 0 {
				t.Error("no message of 500 passed without a loss, so that nothing is said of those that can")
			}
		})
	}
}

func FuzzRoundTrips(f *testing.F) {
	all := pairs()
	for i := range all {
		f.Add(uint8(i), uint64(i))
	}
	f.Fuzz(func(t *testing.T, which uint8, seed uint64) {
		all[int(which)%len(all)].check(t, rand.New(rand.NewPCG(seed, 2)))
	})
}

// Any version converts to any other, by way of the hub.
func TestSpokeToSpoke(t *testing.T) {
	for name, c := range catalogs() {
		for _, h := range c.Hooks() {
			for _, version := range c.Versions() {
				to, ok := h.In(version.Name)
				if !ok || version.Group != h.Group {
					continue
				}
				m, _, err := c.converter.ConvertRequest(
					pair{from: h, request: true}.random(rand.New(rand.NewPCG(1, 1))), h, to,
				)
				if err != nil || m.ProtoReflect().Type() != to.Request {
					t.Errorf("%s: request of %s to %s: %T, %v", name, h, to, m, err)
				}
				if m, _, err = c.converter.ConvertResponse(pair{from: h}.random(rand.New(rand.NewPCG(1, 1))), h, to); err != nil || m.ProtoReflect().Type() != to.Response {
					t.Errorf("%s: answer of %s to %s: %T, %v", name, h, to, m, err)
				}
			}
		}
	}
}

// Build refuses a version without conversions; this counts the versions that have them.
func TestEverySpokeConverts(t *testing.T) {
	for name, c := range catalogs() {
		spokes := 0
		for _, h := range c.Hooks() {
			if h.Hub() != h {
				spokes++
			}
		}
		if want := map[string]int{"product": 0, "test": 5}[name]; spokes != want {
			t.Errorf("%s: %d spokes, want %d", name, spokes, want)
		}
	}
	for i, name := range []string{"Discovery", PlanDrains, BeforeNodeDrain} {
		version := Versions()[i%2]
		spokes := Spokes()
		delete(spokes, gvh(version, name))
		_, err := hookversion.Build(New(), spokes)
		want := fmt.Sprintf("hook %s/%s/%s: has no conversion to %s/v1", Group, version, name, Group)
		if err == nil || err.Error() != want {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	spokes := Spokes()
	spokes[gvh("v1", PlanDrains)] = spokes[gvh("v1beta1", PlanDrains)]
	spokes[gvh("v1beta1", PlanDrains)] = hookversion.Spoke{}
	spokes[gvh("v1beta1", "Nothing")], spokes[gvh("v0alpha1", PlanDrains)] = hookversion.Spoke{}, hookversion.Spoke{}
	_, err := hookversion.Build(New(), spokes)
	want := "hook " + Group + "/v1/PlanDrains: has a conversion, although it is the newest version\n" +
		"hook " + Group + "/v1beta1/PlanDrains: conversion of requests: needs both directions\nconversion of answers: needs both directions\n" +
		"hook " + Group + "/v0alpha1/PlanDrains: has a conversion, but is not in the catalog\n" +
		"hook " + Group + "/v1beta1/Nothing: has a conversion, but is not in the catalog"
	if err == nil || err.Error() != want {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}

func TestLifetimes(t *testing.T) {
	if err := hookversion.CheckLifetimes(New(), time.Now()); err != nil {
		t.Error(err)
	}
}

// difference is a member that is not the same in two messages of one type.
type difference struct {
	path   string
	gained bool // it was absent before
}

func differences(a, b protoreflect.Message, path string) []difference {
	var all []difference
	fields := a.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		at := strings.TrimPrefix(path+"."+f.JSONName(), ".")
		switch {
		case f.Name() == "unknown_members":
			all = append(all, unknownDifferences(a.Interface(), b.Interface(), path)...)
		case f.IsList() && f.Message() != nil && a.Get(f).List().Len() == b.Get(f).List().Len():
			for i := range a.Get(f).List().Len() {
				all = append(
					all, differences(a.Get(f).List().Get(i).Message(), b.Get(f).List().Get(i).Message(), at+"[*]")...,
				)
			}
		case a.Has(f) != b.Has(f), a.Has(f) && !a.Get(f).Equal(b.Get(f)):
			all = append(all, difference{path: at, gained: !a.Has(f)})
		}
	}
	return all
}

type withUnknown interface {
	GetUnknownMembers() map[string]*hooksv1alpha1.JSON
}

func unknownDifferences(a, b proto.Message, path string) []difference {
	var all []difference
	before, after := a.(withUnknown).GetUnknownMembers(), b.(withUnknown).GetUnknownMembers()
	for name, value := range before {
		if !proto.Equal(value, after[name]) {
			all = append(all, difference{path: strings.TrimPrefix(path+"."+name, ".")})
		}
	}
	for name := range after {
		if before[name] == nil {
			all = append(all, difference{path: strings.TrimPrefix(path+"."+name, ".") + " out of nothing"})
		}
	}
	return all
}

// fill gives m random members, some of them absent.
func fill(r *rand.Rand, m protoreflect.Message, depth int) {
	fields := m.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if r.IntN(3) == 0 && f.Kind() != protoreflect.BytesKind {
			continue
		}
		switch {
		case f.Name() == "unknown_members":
			fillUnknown(r, m, f)
		case f.IsMap():
			for range r.IntN(3) {
				m.Mutable(f).Map().Set(
					protoreflect.ValueOfString(word(r)).MapKey(), protoreflect.ValueOfString(word(r)),
				)
			}
		case f.IsList() && f.Kind() == protoreflect.StringKind:
			for range r.IntN(4) {
				m.Mutable(f).List().Append(protoreflect.ValueOfString(word(r)))
			}
		case f.IsList() && depth > 0:
			for range r.IntN(4) {
				element := m.Mutable(f).List().AppendMutable()
				fill(r, element.Message(), depth-1)
			}
		case f.IsList():
		case f.Message() != nil && depth > 0:
			fill(r, m.Mutable(f).Message(), depth-1)
		case f.Message() != nil:
		case f.JSONName() == "endpoint":
			if r.IntN(8) > 0 {
				m.Set(f, protoreflect.ValueOfString(word(r)+":"+strconv.Itoa(1+r.IntN(65535))))
			}
		case f.Kind() == protoreflect.EnumKind:
			m.Set(f, protoreflect.ValueOfEnum(protoreflect.EnumNumber(r.IntN(f.Enum().Values().Len()))))
		case f.Kind() == protoreflect.StringKind:
			m.Set(f, protoreflect.ValueOfString(word(r)))
		case f.Kind() == protoreflect.BytesKind:
			m.Set(f, protoreflect.ValueOfBytes([]byte(`"`+word(r)+`"`)))
		case f.Kind() == protoreflect.BoolKind:
			m.Set(f, protoreflect.ValueOfBool(r.IntN(2) == 0))
		case f.Kind() == protoreflect.Int32Kind:
			m.Set(f, protoreflect.ValueOfInt32([]int32{0, 1, 5, 10, 30, -7, 1 << 30, r.Int32()}[r.IntN(8)]))
		default:
			panic(f.FullName())
		}
	}
}

// fillUnknown gives m members that its schema does not know, some of which another version's does.
func fillUnknown(r *rand.Rand, m protoreflect.Message, f protoreflect.FieldDescriptor) {
	for _, name := range []string{
		"hint", "node", "nodeName", "title", "size", "urgent", "endpoint", "priority", "apex." + word(r),
	} {
		if r.IntN(6) > 0 || m.Descriptor().Fields().ByJSONName(name) != nil {
			continue
		}
		value := &hooksv1alpha1.JSON{Raw: []byte(`{"n":` + strconv.Itoa(r.IntN(100)) + `}`)}
		m.Mutable(f).Map().Set(
			protoreflect.ValueOfString(strings.ReplaceAll(name, ".", "-")).MapKey(),
			protoreflect.ValueOfMessage(value.ProtoReflect()),
		)
	}
}

func word(r *rand.Rand) string {
	return []string{"", "a", "worker-1", "10.0.0.7", "ü", "x y", "::1"}[r.IntN(7)]
}
