// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"errors"
	"maps"
	"slices"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/contract/jsonscan"
)

// checker checks one message.
type checker struct {
	step    func() error
	meter   meter
	speller speller
	read    int // bytes of small raw objects since step was called last
}

// stepEvery is the number of bytes between two calls of step.
const stepEvery = 256 << 10

// message returns an error if Encode could not write the message as valid JSON.
func (k *checker) message(t *table, from message) error {
	for i := range t.fields {
		if err := k.field(&t.fields[i], from); err != nil {
			return err
		}
	}
	unknown := *t.unknownOf(from)
	if len(unknown) == 0 {
		return nil
	}
	var all names
	for _, name := range slices.Sorted(maps.Keys(unknown)) {
		raw := unknown[name].GetRaw()
		known, err := t.checkUnknown(name, raw)
		if err != nil {
			return err
		}
		if known {
			continue
		}
		path := "unknown_members" + entry(name)
		if err := k.meter.text(entryCost + 2*len(name)); err != nil {
			return err
		}
		if err := all.add(name, path, -1); err != nil {
			return err
		}
		if err := k.raw(raw); err != nil {
			return at(path, err)
		}
		if older, ok := t.older.member(name); ok {
			if older.name != name {
				return onlyInCase(path, -1, older.name)
			}
			if err := k.respell(older.value, unknown[name]); err != nil {
				return in(err, path)
			}
		}
		k.speller.unknown(t, name)
	}
	return nil
}

func (k *checker) field(f *field, from message) error {
	switch f.shape {
	case shapeEnum:
		if n := from.enum(f); n < 0 || int(n) >= len(f.enum) {
			return unknownEnum(f, n)
		}
	case shapeRaw, shapeJSON:
		if err := k.raw(rawOf(f, from)); err != nil {
			return at(f.name, err)
		}
		if f.form != nil {
			return in(k.respell(f.form, *pointer[*hooksv1alpha1.JSON](from, f.index)), f.name)
		}
	case shapeMessage:
		if m := from.child(f); !m.isNil() {
			if err := k.message(f.message, m); err != nil {
				return in(err, f.name)
			}
		}
	case shapeList:
		for i, m := range from.children(f) {
			if m.isNil() {
				return wrong(f.name+element(i), -1, "is nil")
			}
			if err := k.message(f.message, m); err != nil {
				return in(err, f.name+element(i))
			}
		}
	}
	return nil
}

// raw returns an error unless raw is empty or one JSON value.
func (k *checker) raw(raw []byte) error {
	if len(raw) == 0 {
		return nil
	}
	if k.read += len(raw); k.read >= stepEvery && k.step != nil {
		k.read = 0
		if err := k.step(); err != nil {
			return err
		}
	}
	s := jsonscan.Scanner{Text: raw, Step: k.step}
	i, err := s.Value(jsonscan.Space(raw, 0), envelopeDepth)
	if err != nil {
		return err
	}
	if err := s.End(i); err != nil {
		return err
	}
	return s.UTF8()
}

// respell gives the members of a value, which is empty or valid JSON, the names that its form knows.
func (k *checker) respell(of *form, value *hooksv1alpha1.JSON) error {
	text := value.GetRaw()
	if len(text) == 0 {
		return nil
	}
	r := formReader{Scanner: jsonscan.Scanner{Text: text, Step: k.step}, meter: k.meter}
	raw, _, err := r.read(of, jsonscan.Space(text, 0), envelopeDepth)
	k.meter = r.meter
	if err == nil && len(r.edits) > 0 {
		value.Raw = raw
	}
	return err
}

// at returns an error of checker.raw as one of the member that path names.
func at(path string, err error) error {
	var syntax *jsonscan.Error
	if !errors.As(err, &syntax) {
		return err // of step
	}
	return &Error{Path: path, Offset: int64(syntax.Offset), Message: syntax.Message}
}

// envelopeDepth is the largest number of levels around a raw object: request, list, item, list, variable.
const envelopeDepth = 5

// checkUnknown returns an error unless unknown_members may hold raw under a name, and whether the schema knows it. Of a
// known member, only null is allowed, for a list that is always written, where it distinguishes null from an empty
// list.
func (t *table) checkUnknown(name string, raw []byte) (known bool, err error) {
	if m := t.member([]byte(name), 0); m >= 0 {
		if f := &t.fields[m]; f.always && f.shape == shapeList && string(raw) == "null" {
			return true, nil
		}
		return true, wrong("unknown_members"+entry(name), -1, "is a member of the schema")
	}
	if m := t.fold([]byte(name)); m >= 0 {
		return true, onlyInCase("unknown_members"+entry(name), -1, t.fields[m].name)
	}
	return false, nil
}

func unknownEnum(f *field, n int32) error {
	return wrong(f.name, -1, "has no value %d", n)
}
