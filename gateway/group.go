// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"maps"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hookversion"
)

// Group is a group of hooks that a gateway serves besides Cluster API's, in the same way: over both fronts, through the
// same chain, with a discovery of its own. Infrastructure is one.
type Group struct {
	// Versions lists the versions of the group. The group has a DiscoveryService with one hook, whose response lists
	// handlers as hookgate.hooks.v1alpha1.ExtensionHandler.
	Versions []catalog.Source
	// Spokes convert between Versions. A group of one version has none.
	Spokes hookversion.Spokes
}

// Hooks returns the catalog of Cluster API's hooks and of the groups, and the conversions between their versions. The
// error joins every mistake in the groups.
func Hooks(groups ...Group) (*catalog.Catalog, *hookversion.Converter, error) {
	var versions []catalog.Source
	spokes := hookversion.Spokes{}
	for _, g := range groups {
		versions = append(versions, g.Versions...)
		maps.Copy(spokes, g.Spokes)
	}
	hooks, err := catalog.With(versions...)
	if err != nil {
		return nil, nil, err
	}
	converter, err := hookversion.Build(hooks, spokes)
	if err != nil {
		return nil, nil, err
	}
	return hooks, converter, nil
}

// Infrastructure returns the group of hooks through which extensions provide infrastructure.
func Infrastructure() Group { return Group{Versions: catalog.Infrastructure()} }

// Machines returns the group of hooks that accompany single Machines.
func Machines() Group { return Group{Versions: catalog.Machines()} }
