// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookrule

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/contract/jsonscan"
)

// Place is a Cluster that is past the hook of a rule with concurrency.
type Place struct {
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name,omitempty"`
	UID       string `json:"uid,omitempty"` // of the Cluster, if it is known
	Per       string `json:"per,omitempty"` // the value of per
	// TopologyVersion is the version of Kubernetes that the Cluster was to have when it took the place, for hooks of
	// upgrades: with another one, the upgrade is over or has been given up.
	TopologyVersion string      `json:"topologyVersion,omitempty"`
	Since           metav1.Time `json:"since,omitzero"`
}

// Places keeps the places of rules with concurrency, where neither a restart nor another replica loses or doubles one.
// It is safe for concurrent use.
type Places interface {
	// Take gives a Cluster a place of a rule by Allocate, and has recorded it when it returns OK. Its error is a
	// *hook.Error of kind NotReady.
	Take(ctx context.Context, rule string, want Place, limit int, beyond bool) (Allocation, error)
	// Free gives back the place of a Cluster, if it has one. Its error is that of Take.
	Free(ctx context.Context, rule string, cluster types.NamespacedName) error
	// Lifted notes that an annotation lets a Cluster go on, which the rule holds with a message. It does not block.
	Lifted(rule string, cluster types.NamespacedName, message string)
}

// WithPlaces returns a copy of c whose rules take places from p.
func (c *Compiler) WithPlaces(p Places) *Compiler {
	of := *c
	of.places = p
	return &of
}

// Allocation is what became of the wish for a place.
type Allocation struct {
	OK     bool
	Beyond bool // the place is one beyond the limit
	Full   bool // the rule has no room for a place, whatever per is
}

// Allocate returns the places after a Cluster has asked for one, which are the same slice if nothing has changed. A
// Cluster that has a place keeps that one. beyond makes it pass although the limit is reached. A Cluster with the name
// and another UID is gone.
func Allocate(
	places []Place, want Place, limit int, beyond bool,
) ([]Place, Allocation) {
	taken := 0
	for i := range places {
		p := &places[i]
		switch {
		case p.Namespace != want.Namespace || p.Name != want.Name:
			if p.Per == want.Per {
				taken++
			}
		case p.UID != "" && want.UID != "" && p.UID != want.UID: // of a Cluster that is gone
		case p.TopologyVersion == want.TopologyVersion:
			return places, Allocation{OK: true}
		default: // it goes on with another upgrade
			next := slices.Clone(places)
			next[i].TopologyVersion = want.TopologyVersion
			return next, Allocation{OK: true}
		}
	}
	full := taken >= limit
	if full && !beyond {
		return places, Allocation{}
	}
	next := Free(places, types.NamespacedName{Namespace: want.Namespace, Name: want.Name})
	if len(next) >= limits.RulePlaces {
		return places, Allocation{Full: true}
	}
	return append(slices.Clone(next), want), Allocation{OK: true, Beyond: full}
}

// Free returns the places without that of a Cluster, which are the same slice if it has none.
func Free(places []Place, cluster types.NamespacedName) []Place {
	of := func(p Place) bool { return p.Namespace == cluster.Namespace && p.Name == cluster.Name }
	if !slices.ContainsFunc(places, of) {
		return places
	}
	return slices.DeleteFunc(slices.Clone(places), of)
}

// Over reports whether a place is no longer needed, by the JSON of its Cluster as it is now, which is nil if it is
// gone. While a Cluster is paused, its place stays: clusterctl may be about to move it.
func Over(p *Place, cluster []byte) bool {
	if cluster == nil {
		return true
	}
	if uid := textAt(cluster, "metadata", "uid"); p.UID != "" && uid != "" && uid != p.UID {
		return true
	}
	if paused, _ := jsonscan.Lookup(cluster, "spec", "paused"); string(paused) == "true" {
		return false
	}
	return p.TopologyVersion != "" && textAt(cluster, "spec", "topology", "version") != p.TopologyVersion
}

// textAt returns a text in an object, or nothing.
func textAt(object []byte, path ...string) string {
	value, _ := jsonscan.Lookup(object, path...)
	s, _ := jsonscan.String(value)
	return s
}
