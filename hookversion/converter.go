// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookversion

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
)

// Spoke converts the messages of one hook between an older version and the hub.
type Spoke struct{ Request, Response Conversion }

// Spokes holds the conversions of every hook that has a newer version.
type Spokes map[hook.GroupVersionHook]Spoke

// Converter converts the messages of a catalog's hooks between their versions.
type Converter struct {
	spokes Spokes
}

// New returns the Converter of the contract's catalog. Each hook of the contract has one version today; a second one
// gets its conversions here.
func New(hooks *catalog.Catalog) *Converter {
	c, err := Build(hooks, nil)
	if err != nil {
		panic("hookversion: " + err.Error()) // a mistake in the contract, which every test sees
	}
	return c
}

// Build returns a Converter for the hooks of a catalog. It returns an error that joins every mistake unless each hook
// with a newer version has conversions, and no other hook has.
func Build(hooks *catalog.Catalog, spokes Spokes) (*Converter, error) {
	var errs []error
	for _, h := range hooks.Hooks() {
		if err := checkSpoke(h, spokes); err != nil {
			errs = append(errs, fmt.Errorf("hook %s: %w", h, err))
		}
	}
	unknown := slices.DeleteFunc(slices.Collect(maps.Keys(spokes)), func(gvh hook.GroupVersionHook) bool {
		_, ok := hooks.Lookup(gvh)
		return ok
	})
	slices.SortFunc(unknown, func(a, b hook.GroupVersionHook) int { return strings.Compare(a.String(), b.String()) })
	for _, gvh := range unknown {
		errs = append(errs, fmt.Errorf("hook %s: has a conversion, but is not in the catalog", gvh))
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return &Converter{spokes: maps.Clone(spokes)}, nil
}

func checkSpoke(h *catalog.Hook, spokes Spokes) error {
	spoke, ok := spokes[h.GroupVersionHook]
	switch {
	case h.Hub() == h && ok:
		return errors.New("has a conversion, although it is the newest version")
	case h.Hub() == h:
		return nil
	case !ok:
		return fmt.Errorf("has no conversion to %s", h.Hub().APIVersion())
	}
	return errors.Join(spoke.Request.check("requests"), spoke.Response.check("answers"))
}

// ConvertRequest converts a request of one version of a hook to another, and returns the paths of the members that it
// lost. If the versions are the same, it returns req itself. The error is a *hook.Error of kind Conversion.
func (c *Converter) ConvertRequest(req proto.Message, from, to *catalog.Hook) (proto.Message, []string, error) {
	return c.convert(req, "request", from, to, (*Spoke).request)
}

// ConvertResponse converts an answer as ConvertRequest converts a request.
func (c *Converter) ConvertResponse(resp proto.Message, from, to *catalog.Hook) (proto.Message, []string, error) {
	return c.convert(resp, "answer", from, to, (*Spoke).response)
}

// ToHub returns a request in the newest version of its hook: the form that selectors and conditions of policies read,
// so that they mean the same whatever version a caller uses.
func (c *Converter) ToHub(req proto.Message, h *catalog.Hook) (proto.Message, error) {
	hub, _, err := c.ConvertRequest(req, h, h.Hub())
	return hub, err
}

// RequestLosses returns every path that requests can lose between two versions of a hook, in order.
func (c *Converter) RequestLosses(from, to *catalog.Hook) []string {
	return c.losses(from, to, (*Spoke).request)
}

// ResponseLosses returns every path that answers can lose between two versions of a hook, in order.
func (c *Converter) ResponseLosses(from, to *catalog.Hook) []string {
	return c.losses(from, to, (*Spoke).response)
}

// CallLosses returns every path that a call can lose between the caller's and the handler's version of a hook: in the
// request on the way there, and in the answer on the way back.
func (c *Converter) CallLosses(caller, handler *catalog.Hook) []string {
	return append(c.RequestLosses(caller, handler), c.ResponseLosses(handler, caller)...)
}

func (s *Spoke) request() *Conversion  { return &s.Request }
func (s *Spoke) response() *Conversion { return &s.Response }

// conversion returns the conversion of a hook that is not its own hub.
func (c *Converter) conversion(h *catalog.Hook, kind func(*Spoke) *Conversion) *Conversion {
	spoke := c.spokes[h.GroupVersionHook]
	return kind(&spoke)
}

func (c *Converter) convert(
	m proto.Message, what string, from, to *catalog.Hook, kind func(*Spoke) *Conversion,
) (_ proto.Message, lost []string, err error) {
	defer func() {
		if err != nil {
			err = hook.Errorf(
				hook.Conversion, "convert %s from %s to %s: %s", what, from.APIVersion(), to.APIVersion(), err,
			)
		}
	}()
	switch {
	case from == to:
		return m, nil, nil
	case from.Hub() != to.Hub():
		return nil, nil, errors.New("these are different hooks")
	}
	if from != from.Hub() {
		if m, lost, err = c.conversion(from, kind).Up(m); err != nil {
			return nil, nil, err
		}
	}
	if to != to.Hub() {
		var down []string
		if m, down, err = c.conversion(to, kind).Down(m); err != nil {
			return nil, nil, err
		}
		lost = slices.Concat(lost, down)
	}
	return m, sorted(lost), nil
}

func (c *Converter) losses(from, to *catalog.Hook, kind func(*Spoke) *Conversion) []string {
	if from == to || from.Hub() != to.Hub() {
		return nil
	}
	var lost []string
	if from != from.Hub() {
		lost = append(lost, c.conversion(from, kind).LostUp...)
	}
	if to != to.Hub() {
		lost = append(lost, c.conversion(to, kind).LostDown...)
	}
	return sorted(lost)
}

func sorted(paths []string) []string {
	slices.Sort(paths)
	return slices.Compact(paths)
}
