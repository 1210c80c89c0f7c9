// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package kinds says what all kinds of objects have in common that decide what calls get: what an object says (Rules),
// what it closes while it is not understood (Closed), and the verdict on it (Verdict, Set). Each kind is a package
// below this one, and package allkinds lists them: sources, webhooks and commands know that list.
//
// An object with a mistake and without a valid version before it closes what its readable fields name, and no more. It
// is read leniently then, field by field.
//
// Its values are immutable, and its functions safe for concurrent use, unless a type says something else.
package kinds

import (
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Object is an object of a kind.
type Object interface {
	metav1.Object
	runtime.Object
}

// Kind is what is always true of a kind.
type Kind struct {
	Name string // such as HookRule
	// Closes adds to c what an object closes that has a mistake, by the fields of its spec that can be read.
	Closes func(s Spec, c *Closed)

	// The rest is of Hookgate's own kinds, and zero for ExtensionConfig.

	// New returns an empty object, and NewList an empty list.
	New     func() Object
	NewList func() runtime.Object
	Shown   Shown
	// TestKind is the kind of the tests beside the objects, which only commands read. It is empty without.
	TestKind string
	// Wanted is what those want who install the kind, such as "rules".
	Wanted string
	// Instead says what restricts an object, because it belongs to no namespace.
	Instead string
	// InCluster means that a directory of manifests has no use for a valid object.
	InCluster bool
	// Condition returns a verdict as a condition of a generation, without a time, and Conditions those of an object.
	Condition  func(v Verdict, generation int64) metav1.Condition
	Conditions func(o Object) *[]metav1.Condition
}

// Rules are a kind with what its rules need to be applied. All functions are safe for concurrent use, and change no
// object.
type Rules struct {
	Kind

	// Compile returns what an object says, or its mistakes: by the rules of its schema and those that a schema cannot say.
	// It does not look at the status.
	Compile func(o Object) (compiled any, errs field.ErrorList)
	// Doubts returns what is wrong with something compiled that is in effect all the same, and Doubtful says what becomes
	// of it. It may be nil.
	Doubts   func(compiled any) field.ErrorList
	Doubtful string
	// Admit returns the mistakes of an object that is about to be written, and warnings. before is nil for a new one.
	Admit func(before, o Object) (warnings []string, errs field.ErrorList)
	// Keeps returns why an object must not be deleted, or nil. It may be nil.
	Keeps func(o Object) error
}

// Compiler returns Rules.Compile of a function for the type of the objects.
func Compiler[O Object, C any](compile func(O) (C, field.ErrorList)) func(Object) (any, field.ErrorList) {
	return func(o Object) (any, field.ErrorList) { return compile(o.(O)) }
}

// SpecOf returns a pointer to the spec of an object of Hookgate's own, all of which have one.
func SpecOf(o Object) any {
	return reflect.ValueOf(o).Elem().FieldByName("Spec").Addr().Interface()
}

// SameSpec reports whether two objects say the same, so that what one was compiled to may stand for the other. Which of
// two policies counts depends on their times.
func SameSpec(a, b Object) bool {
	created := a.GetCreationTimestamp()
	return created.Equal(new(b.GetCreationTimestamp())) && reflect.DeepEqual(SpecOf(a), SpecOf(b))
}
