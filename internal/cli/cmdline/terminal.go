// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cmdline

import (
	"bytes"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/base/table"
)

// defaultWidth is the width of a terminal that does not say how wide it is, and leastWidth is that of the narrowest one
// for which texts are laid out.
const (
	defaultWidth = 80
	leastWidth   = 40
)

// Screen writes texts for people. On a terminal, they fit its width, and have colours unless NO_COLOR is set
// (https://no-color.org).
type Screen struct {
	Out      io.Writer
	Terminal bool
	Full     string // the flag that shows the columns that a terminal has no room for; empty if none does
	colours  bool
}

// NewScreen returns the screen that writes to out.
func NewScreen(out io.Writer) *Screen {
	file, ok := out.(*os.File)
	s := &Screen{Out: out, Terminal: ok && term.IsTerminal(int(file.Fd()))}
	s.colours = s.Terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return s
}

// width returns how many characters a line of the terminal has; 0 if it is none.
func (s *Screen) width() int {
	if !s.Terminal {
		return 0
	}
	if file, ok := s.Out.(*os.File); ok {
		if width, _, err := term.GetSize(int(file.Fd())); err == nil && width > 0 {
			return max(width, leastWidth)
		}
	}
	return defaultWidth
}

// Clear makes the next text the only one on a terminal, and separates it by an empty line elsewhere.
func (s *Screen) Clear() {
	if s.Terminal {
		_, _ = io.WriteString(s.Out, "\x1b[H\x1b[2J")
		return
	}
	_, _ = io.WriteString(s.Out, "\n")
}

// Write writes what render renders, in lines that are as long as they are if wide.
func (s *Screen) Write(wide bool, render func(io.Writer) error) error {
	var b bytes.Buffer
	to := &table.Terminal{Writer: &b, Width: s.width(), Full: s.Full}
	if wide {
		to.Width = 0
	}
	if s.colours {
		to.Colour = colour
	}
	if err := render(to); err != nil {
		return err
	}
	_, err := s.Out.Write(b.Bytes())
	return err
}

// The SGR codes of what is well, of what needs attention, and of what is wrong.
const (
	green  = "32"
	yellow = "33"
	red    = "31"
	dim    = "2"
)

// colours are the SGR codes of the states.
var colours = map[status.State]string{
	status.Up: green, status.Ready: green, status.Slow: yellow, status.Failing: yellow, status.Down: red,
	status.Unknown: dim,
}

// colour returns the SGR code of a cell, which says in words what its colour does.
func colour(title, cell string) string {
	word, _, _ := strings.Cut(cell, " ")
	switch title {
	case "STATE", "State:":
		return colours[status.State(word)]
	case "READY", "Ready:", "ACCEPTED", "DISCOVERED", "AVAILABLE":
		if strings.HasPrefix(cell, "False") {
			return red
		}
	case "FAILED", "FAILING":
		if cell != "0" && cell != "-" {
			return red
		}
	}
	return ""
}
