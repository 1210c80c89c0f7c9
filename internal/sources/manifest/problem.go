// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import "fmt"

// Problem is something that is wrong, or only worth knowing, in a manifest.
type Problem struct {
	Place
	Object string // for example ExtensionConfig "acme"; empty where that is not known
	Err    error

	// Warning reports whether the manifest is used all the same.
	Warning bool
	// Deprecated reports whether the manifest uses something that a later release will refuse.
	Deprecated bool
	// Effect is the consequence for the served handlers; empty where that is clear.
	Effect string

	// unidentified is set if the text does not say which object it describes: it may be any that the file had before.
	unidentified bool
	// notOfLint reports whether Lint leaves it out: it is true of a directory alone, or Lint says it again with what is
	// known of handlers.
	notOfLint bool
	// unreadable reports whether it is not even known which objects the file, or a part of it, defines.
	unreadable bool
}

// Error returns the place, the object and the problem.
func (p *Problem) Error() string {
	if p.Object == "" {
		return fmt.Sprintf("%s: %v", p.Place, p.Err)
	}
	return fmt.Sprintf("%s: %s: %v", p.Place, p.Object, p.Err)
}
