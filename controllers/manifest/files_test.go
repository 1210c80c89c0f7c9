// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"errors"
	"testing"
)

// TestFileEqual checks that a directory has changed if a name, a content, or whether a file can be read has.
func TestFileEqual(t *testing.T) {
	f := File{file: "a.yaml", content: []byte("x")}
	unreadable := File{file: "a.yaml", err: errors.New("permission denied")}
	for name, tc := range map[string]struct {
		a, b File
		want bool
	}{
		"Same":        {f, File{file: "a.yaml", content: []byte("x")}, true},
		"Name":        {f, File{file: "b.yaml", content: []byte("x")}, false},
		"Content":     {f, File{file: "a.yaml", content: []byte("y")}, false},
		"Unreadable":  {File{file: "a.yaml"}, unreadable, false},
		"Readable":    {unreadable, File{file: "a.yaml"}, false},
		"OtherReason": {unreadable, File{file: "a.yaml", err: errors.New("is a directory")}, true},
	} {
		if got := tc.a.Equal(&tc.b); got != tc.want {
			t.Errorf("%s: got %t, want %t", name, got, tc.want)
		}
	}
}
