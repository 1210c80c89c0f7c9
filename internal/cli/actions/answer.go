// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"bytes"
	"context"
	"crypto/sha256"
	"hash"
	"strings"

	"github.com/hookgate/hookgate/internal/base/limits"
)

// printed keeps what an action prints, as much as a page shows, and the sum of all of it.
type printed struct {
	text bytes.Buffer
	cut  bool
	sum  hash.Hash
}

func (p *printed) Write(b []byte) (int, error) {
	p.sum.Write(b)
	room := max(limits.DashboardOutputBytes-p.text.Len(), 0)
	p.cut = p.cut || len(b) > room
	p.text.Write(b[:min(len(b), room)])
	return len(b), nil
}

func (p *printed) String() string {
	if p.cut {
		return p.text.String() + "\n… and more, which the command prints"
	}
	return p.text.String()
}

// answer answers the question of an action: yes only if what was printed before is what a person has confirmed.
type answer struct {
	printed   *printed
	confirmed func(sum []byte) bool

	asked, yes bool
	sum        []byte // of what was printed before the question
	shown      string // what that was
	left       *strings.Reader
}

// Read implements io.Reader.
func (a *answer) Read(p []byte) (int, error) {
	if !a.asked {
		a.asked, a.sum, a.shown = true, a.printed.sum.Sum(nil), a.printed.String()
		a.yes = a.confirmed(a.sum)
		a.left = strings.NewReader("n\n")
		if a.yes {
			a.left = strings.NewReader("y\n")
		}
	}
	return a.left.Read(p)
}

// question returns what was printed before the question, and the question.
func (a *answer) question() (before, question string) {
	all := strings.TrimSuffix(a.shown, " [y/N] ")
	at := strings.LastIndexByte(all, '\n') + 1
	return all[:at], all[at:]
}

// run runs an action that asks, or not, and returns what it has printed.
func run(ctx context.Context, a *Action, v Values, confirmed func(sum []byte) bool) (*printed, *answer, error) {
	out := &printed{sum: sha256.New()}
	in := &answer{printed: out, confirmed: confirmed}
	err := a.Run(ctx, v, in, out)
	return out, in, err
}
