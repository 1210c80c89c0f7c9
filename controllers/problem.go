// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import "fmt"

// problem is something that is wrong, or only worth knowing, in a manifest.
type problem struct {
	place
	object string // for example ExtensionConfig "acme"; empty where that is not known
	err    error

	// warning tells that the manifest is used all the same.
	warning bool
	// old tells that it is used, and will not be some day.
	old bool
	// unidentified tells that the object which the text describes is not known. It may be any that the file had before.
	unidentified bool
	// effect says what the problem means for what is served; empty where that is clear.
	effect string
}

// Error returns what is wrong and where.
func (p *problem) Error() string {
	if p.object == "" {
		return fmt.Sprintf("%s: %v", p.place, p.err)
	}
	return fmt.Sprintf("%s: %s: %v", p.place, p.object, p.err)
}

// duplicate returns the problem of an object whose name another has taken.
func duplicate(kind string, o *object, first place) problem {
	return problem{
		place: o.place, object: fmt.Sprintf("%s %q", kind, o.name),
		err: fmt.Errorf("metadata.name: Duplicate value: defined at %s before", first), effect: "the first one is used",
	}
}
