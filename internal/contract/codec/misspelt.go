// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"fmt"
	"strings"

	"github.com/hookgate/hookgate/internal/base/text"
)

const (
	// maxNamed is the length of the longest name that is compared with those that the schema knows. A name of fewer than
	// minEdited letters is compared but for its letter case and separators.
	maxNamed, minEdited = 64, 4
	// maxCompared is the number of members of a body that are compared.
	maxCompared = 100
)

// Misspelling is a member that the schema does not know, and the known member that was probably meant.
type Misspelling struct{ Message, Member, Meant string }

// String returns a clause that says so.
func (m Misspelling) String() string {
	return fmt.Sprintf("%s has no member %s: did you mean %s?", m.Message, printable(m.Member), m.Meant)
}

// speller finds members that are not known because their names are misspelt.
type speller struct {
	misspelt func(Misspelling) // nil to find none
	compared int
}

// unknown compares the name of a member that the schema does not know with those that it knows.
func (s *speller) unknown(t *table, name string) {
	if s.misspelt == nil || s.compared >= maxCompared || len(name) > maxNamed {
		return
	}
	s.compared++
	if meant := t.nearest(name); meant != "" {
		s.misspelt(Misspelling{t.name, name, meant})
	}
}

// folded returns a name without what distinguishes camelCase from snake_case.
func folded(name string) string {
	return strings.NewReplacer("_", "", "-", "").Replace(strings.ToLower(name))
}

// nearest returns the known member whose name differs from name in letter case, separators, and one letter or two
// swapped ones at most, or "".
func (t *table) nearest(name string) string {
	name = folded(name)
	for i := range t.fields {
		known := folded(t.fields[i].name)
		if name == known {
			return t.fields[i].name
		}
		if len(known) >= minEdited && len(name) >= minEdited && text.EditDistance(name, known) <= 1 {
			return t.fields[i].name
		}
	}
	return ""
}
