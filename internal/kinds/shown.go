// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kinds

import (
	"io"

	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/contract/printers"
)

// Shown is what people see of a kind of Hookgate's own.
type Shown struct {
	// Singular and Plural are what people call the objects, such as rule and rules.
	Singular, Plural string
	// Short and Long are the help of "hookgate get", and Wide says what its format wide adds.
	Short, Long, Wide string
	// In is where a status has the objects.
	In Listing
	// Table writes a row for each object in a status.
	Table func(w io.Writer, g *status.Gateway, wide bool) error
	// Describe describes the first object in a status. It is nil for kinds of which a row says all.
	Describe func(w io.Writer, g *status.Gateway) error
	// Ready is the metric that says which objects are ready. It has no name if the kind has none, or its own.
	Ready ReadyMetric
}

// ReadyMetric is a gauge with a series for each object, whose labels are its hook and its name. It is 1 if the object
// is ready, and 0 if it is not.
type ReadyMetric struct {
	Name, Help string
	Label      string // has the name of the object
}

// Row is what a status says of an object of any kind.
type Row struct {
	Name, Hook string // the hook is empty if the object was never valid, or is for none
	Ready      bool
}

// Listing is where a status has the objects of a kind.
type Listing interface {
	// Items returns the objects and how many more there are, and Rows what is said of each.
	Items(g *status.Gateway) (items any, missed int)
	Rows(g *status.Gateway) []Row
	// Pick puts the object of a name into another status, without others. It reports whether there is one.
	Pick(name string, from, to *status.Gateway) bool
}

// Names returns the names of the objects in a status.
func Names(in Listing, g *status.Gateway) []string {
	rows := in.Rows(g)
	names := make([]string, len(rows))
	for i := range rows {
		names[i] = rows[i].Name
	}
	return names
}

// Member is the member of a status with the objects of a kind, of which S is what is shown.
type Member[S any] struct {
	At  func(g *status.Gateway) (items *[]S, missed *int)
	Row func(*S) Row
}

// Put sets the member.
func (m Member[S]) Put(g *status.Gateway, items []S, missed int) {
	into, more := m.At(g)
	*into, *more = items, missed
}

// Items implements Listing.
func (m Member[S]) Items(g *status.Gateway) (items any, missed int) {
	all, more := m.At(g)
	return *all, *more
}

// Rows implements Listing.
func (m Member[S]) Rows(g *status.Gateway) []Row {
	all, _ := m.At(g)
	rows := make([]Row, len(*all))
	for i := range *all {
		rows[i] = m.Row(&(*all)[i])
	}
	return rows
}

// Pick implements Listing.
func (m Member[S]) Pick(name string, from, to *status.Gateway) bool {
	all, _ := m.At(from)
	for i := range *all {
		if m.Row(&(*all)[i]).Name == name {
			m.Put(to, []S{(*all)[i]}, 0)
			return true
		}
	}
	return false
}

// Locals returns the Member of a kind without servers. at returns where a status has them; it is nil for status.Others.
func Locals(plural string, at func(g *status.Gateway) (*[]status.InProcess, *int)) Member[status.InProcess] {
	if at == nil {
		at = func(g *status.Gateway) (*[]status.InProcess, *int) {
			if g.Others == nil {
				g.Others = map[string]*status.Locals{}
			}
			if g.Others[plural] == nil {
				g.Others[plural] = &status.Locals{}
			}
			return &g.Others[plural].Items, &g.Others[plural].Missed
		}
	}
	return Member[status.InProcess]{At: at, Row: func(l *status.InProcess) Row { return Row{l.Name, l.Hook, l.Ready} }}
}

// ShownLocal returns what people see of a kind without servers, but the help and the metric.
func ShownLocal(singular, plural string, in Member[status.InProcess]) Shown {
	return Shown{
		Singular: singular, Plural: plural, In: in, Wide: "the settings in effect and all messages",
		Table: func(w io.Writer, g *status.Gateway, wide bool) error {
			all, _ := in.At(g)
			return printers.Locals(w, *all, wide)
		},
		Describe: func(w io.Writer, g *status.Gateway) error {
			all, _ := in.At(g)
			return printers.InProcess(w, g, &(*all)[0])
		},
	}
}
