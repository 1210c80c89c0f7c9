// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"errors"
	"maps"
	"slices"

	"github.com/hookgate/hookgate/internal/jsonscan"
)

// checker checks one message.
type checker struct {
	request bool
	step    func() error
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
	for _, name := range slices.Sorted(maps.Keys(unknown)) {
		raw := unknown[name].GetRaw()
		if m := t.member([]byte(name), 0); m >= 0 {
			if err := checkKnown(&t.fields[m], raw); err != nil {
				return err
			}
			continue
		}
		if k.request {
			if twin := t.twin([]byte(name)); twin != nil {
				return onlyInCase("unknown_members"+entry(name), -1, twin)
			}
		}
		if err := k.raw(raw); err != nil {
			return at("unknown_members"+entry(name), err)
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

// checkKnown returns an error unless unknown_members may hold raw for a member that the schema knows. Only null is
// allowed, for a list that is always written, where it distinguishes null from an empty list.
func checkKnown(f *field, raw []byte) error {
	if f.always && f.shape == shapeList && string(raw) == "null" {
		return nil
	}
	return wrong("unknown_members"+entry(f.name), -1, "is a member of the schema")
}

func unknownEnum(f *field, n int32) error {
	return wrong(f.name, -1, "has no value %d", n)
}
