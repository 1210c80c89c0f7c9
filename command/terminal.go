// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"io"
	"os"

	"golang.org/x/term"

	"github.com/hookgate/hookgate/internal/status"
)

// screen writes texts for people, with colours on a terminal unless NO_COLOR is set (https://no-color.org).
type screen struct {
	out      io.Writer
	terminal bool
	colours  bool
}

func newScreen(out io.Writer) *screen {
	file, ok := out.(*os.File)
	s := &screen{out: out, terminal: ok && term.IsTerminal(int(file.Fd()))}
	s.colours = s.terminal && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
	return s
}

// clear makes the next text the only one on a terminal, and separates it by an empty line elsewhere.
func (s *screen) clear() {
	if s.terminal {
		_, _ = io.WriteString(s.out, "\x1b[H\x1b[2J")
		return
	}
	_, _ = io.WriteString(s.out, "\n")
}

// write writes what render renders.
func (s *screen) write(render func(io.Writer) error) error {
	var b bytes.Buffer
	if err := render(&b); err != nil {
		return err
	}
	text := b.Bytes()
	if s.colours {
		text = coloured(text)
	}
	_, err := s.out.Write(text)
	return err
}

// colours are the SGR codes of the states.
var colours = map[status.State]string{
	status.Up: "32", status.Slow: "33", status.Failing: "33", status.Down: "31",
	status.Unknown: "2",
}

// coloured colours the states in tables, below the title STATE, and after "State:". No cell can have such a sequence
// itself.
func coloured(text []byte) []byte {
	var b bytes.Buffer
	column := -1
	for line := range bytes.Lines(text) {
		at := column
		switch i := bytes.Index(line, []byte("STATE ")); {
		case len(bytes.TrimSpace(line)) == 0:
			column, at = -1, -1
		case i >= 0 && column < 0:
			column = i
		case bytes.HasPrefix(line, []byte("State:")):
			at = len(line) - len(bytes.TrimLeft(line[len("State:"):], " "))
		}
		if at < 0 || at >= len(line) {
			b.Write(line)
			continue
		}
		word, _, _ := bytes.Cut(bytes.TrimRight(line[at:], "\n"), []byte(" "))
		code, ok := colours[status.State(word)]
		if !ok {
			b.Write(line)
			continue
		}
		b.Write(line[:at])
		b.WriteString("\x1b[" + code + "m")
		b.Write(word)
		b.WriteString("\x1b[0m")
		b.Write(line[at+len(word):])
	}
	return b.Bytes()
}
