// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookgate/hookgate/conformance"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// A terminal shows the check that runs, and for how long, in one line that is gone at the end. Other writers get nothing.
func TestProgressLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b bytes.Buffer
		p := &progressLine{Screen: &cmdline.Screen{Out: &b, Terminal: true}, texts: make(chan string), shown: make(chan struct{})}
		go p.run()
		p.starting(conformance.Check{ID: "load.parallel"}, 7, 9)
		time.Sleep(1500 * time.Millisecond)
		synctest.Wait()
		p.close()
		const erase = "\r\x1b[K"
		if want := erase + "check 7 of 9: load.parallel" + erase + "check 7 of 9: load.parallel (1s)" + erase; b.String() != want {
			t.Errorf("wrote %q, want %q", b.String(), want)
		}
	})
	var b bytes.Buffer
	p := newProgressLine(&b)
	p.show("a")
	p.close()
	if b.Len() > 0 {
		t.Errorf("wrote %q to a file", b.String())
	}
}
