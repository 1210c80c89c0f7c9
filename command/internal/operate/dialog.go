// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
)

// dialog tells a person what a command changes, and asks for confirmation.
type dialog struct {
	in  io.Reader
	out io.Writer
	yes bool // confirms everything
}

func (d *dialog) sayf(format string, args ...any) {
	_, _ = fmt.Fprintln(d.out, text.PrintableLines(fmt.Sprintf(format, args...))) // the reader may have left
}

// confirm asks for a yes.
func (d *dialog) confirm(question string) error {
	if d.yes {
		return nil
	}
	_, _ = fmt.Fprint(d.out, question+" [y/N] ")
	answer, err := bufio.NewReader(io.LimitReader(d.in, limits.QuotedBytes)).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("read the answer: %w", err)
	}
	switch strings.ToLower(strings.TrimSpace(answer)) {
	case "y", "yes":
		return nil
	}
	return errNotConfirmed
}
