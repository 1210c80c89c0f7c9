// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"fmt"
	"io"
	"time"

	"github.com/hookgate/hookgate/conformance"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// progressLine shows on a terminal what a command waits for, in a line that it writes again every second. Elsewhere it
// shows nothing. One goroutine uses it.
type progressLine struct {
	*cmdline.Screen
	texts chan string
	shown chan struct{}
}

// newProgressLine returns a line without a text. Close it.
func newProgressLine(w io.Writer) *progressLine {
	p := &progressLine{Screen: cmdline.NewScreen(w), texts: make(chan string), shown: make(chan struct{})}
	if p.Terminal {
		go p.run()
	}
	return p
}

// show shows a text, and for how long it has done so; an empty one clears the line. The line is written
// when show returns.
func (p *progressLine) show(text string) {
	if p.Terminal {
		p.texts <- text
		<-p.shown
	}
}

// starting shows the check that starts.
func (p *progressLine) starting(check conformance.Check, n, all int) {
	p.show(fmt.Sprintf("check %d of %d: %s", n, all, check.ID))
}

// close clears the line and ends it.
func (p *progressLine) close() {
	p.show("")
	close(p.texts)
}

func (p *progressLine) run() {
	var text string
	var since time.Time
	ticks := time.NewTicker(time.Second)
	defer ticks.Stop()
	for {
		select {
		case t, ok := <-p.texts:
			if !ok {
				return
			}
			text, since = t, time.Now()
			p.line(text, 0)
			p.shown <- struct{}{}
		case <-ticks.C:
			if text != "" {
				p.line(text, time.Since(since))
			}
		}
	}
}

// line writes the line over the one before.
func (p *progressLine) line(text string, took time.Duration) {
	if s := took.Truncate(time.Second); s > 0 {
		text += fmt.Sprintf(" (%s)", s)
	}
	_, _ = fmt.Fprintf(p.Out, "\r\x1b[K%s", text)
}
