// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hooktest

import (
	"cmp"
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/hookgate/hookgate/internal/kinds/hookrule"
)

// Places are those of a case, in place of those that a cluster has. They are not safe for concurrent use.
type Places []hookrule.Place

var _ hookrule.Places = (*Places)(nil)

// TakenPlaces returns the places that Clusters have when a case begins. Those without a namespace are in default.
func (g *Given) TakenPlaces() Places {
	places := slices.Clone(g.Places)
	for i := range places {
		places[i].Namespace = cmp.Or(places[i].Namespace, "default")
	}
	return places
}

// Take implements hookrule.Places.
func (p *Places) Take(
	_ context.Context, _ string, want hookrule.Place, limit int, beyond bool,
) (hookrule.Allocation, error) {
	next, is := hookrule.Allocate(*p, want, limit, beyond)
	*p = next
	return is, nil
}

// Free implements hookrule.Places.
func (p *Places) Free(_ context.Context, _ string, cluster types.NamespacedName) error {
	*p = hookrule.Free(*p, cluster)
	return nil
}

// Lifted implements hookrule.Places. The answer says it, too.
func (*Places) Lifted(string, types.NamespacedName, string) {}
