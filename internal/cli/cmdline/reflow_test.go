// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdline

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReflow(t *testing.T) {
	const long = "One two three\nfour five.\n\nOther:\n- a list that stays\n  and its second line\nlast one."
	const want = "One two\nthree four\nfive.\n\nOther:\n- a list that stays\n  and its second line\nlast one.\n"
	if diff := cmp.Diff(want, reflow(long, 11)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}
