// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/kinds"
	"github.com/hookgate/hookgate/internal/kinds/allkinds"
	"github.com/hookgate/hookgate/registry"
)

// described lists the kinds of which one object can be asked for.
func described() []kinds.Kind {
	return slices.DeleteFunc(allkinds.Own(), func(k kinds.Kind) bool { return k.Shown.Describe == nil })
}

// Object returns the status of the gateway with one of the listed objects of a kind, by the word for one, such as rule,
// all that is known of it, and the Clusters that wait for its handlers. It reports whether there is an object of that
// name.
func (r *Reporter) Object(singular, name string) (*status.Gateway, bool) {
	now, snapshot := time.Now(), r.Registry.Snapshot()
	g, all, of := r.gateway(now, snapshot), r.listed(), described()
	i := slices.IndexFunc(of, func(k kinds.Kind) bool { return k.Shown.Singular == singular })
	if i < 0 || !of[i].Shown.In.Pick(name, all, g) {
		return g, false
	}
	r.seeObjects(now, snapshot, g)
	answers := map[string]bool{} // the handlers of the object
	for i := range g.Chains {
		c := &g.Chains[i]
		r.seeSteps(now, snapshot, c)
		answers[c.Name] = true
		for j := range c.Steps {
			answers[c.Steps[j].Handler] = true
		}
	}
	for _, locals := range localsOf(g) {
		for i := range *locals {
			if h := (*locals)[i].Handler; h != nil {
				answers[h.Name] = true
				of := r.Observer.handlers.Of(h.Name, now)
				h.Calls.Points = points(&of.Calls)
				(*locals)[i].Failures = r.failuresOf(name)
			}
		}
	}
	g.Holds = slices.DeleteFunc(g.Holds, func(h status.Hold) bool {
		return !answers[h.Handler] && (len(g.Rollouts) == 0 || !ofRollout(snapshot, h.Handler, name))
	})
	return g, true
}

// listed returns what the source says of its objects.
func (r *Reporter) listed() *status.Gateway {
	g := &status.Gateway{}
	if r.Objects != nil {
		r.Objects(g)
	}
	return g
}

// seeObjects adds to the objects in g what is known of their handlers.
func (r *Reporter) seeObjects(now time.Time, snapshot *registry.Snapshot, g *status.Gateway) {
	inChains := chainsOf(snapshot)
	g.Chains = r.chains(now, snapshot, g.Chains)
	for _, locals := range localsOf(g) {
		*locals = r.locals(now, snapshot, inChains, *locals)
	}
	for i := range g.Rollouts {
		g.Rollouts[i].Handlers = r.rolloutHandlers(now, snapshot, inChains, g.Rollouts[i].Name)
	}
}

// localsOf returns where g has handlers without servers.
func localsOf(g *status.Gateway) []*[]status.InProcess {
	all := []*[]status.InProcess{&g.Rules, &g.Jobs}
	for _, others := range g.Others {
		all = append(all, &others.Items)
	}
	return all
}

// noObject says that no object of a kind has a name, and which name is nearly the same.
func (r *Reporter) noObject(of *kinds.Kind, name string) string {
	return noSuch(of.Name, name, kinds.Names(of.Shown.In, r.listed()))
}

// listedElsewhere says which command shows what has a name, if it is no extension.
func (r *Reporter) listedElsewhere(name string) string {
	all := r.listed()
	for _, k := range slices.Backward(described()) {
		if k.Shown.In.Pick(name, all, &status.Gateway{}) {
			return fmt.Sprintf("%q is %s %s: use \"hookgate describe %s %s\"", name, article(k.Name), k.Name,
				k.Shown.Singular, name)
		}
	}
	return ""
}

// article returns the indefinite article of a word.
func article(word string) string {
	if strings.ContainsRune("AEIOU", rune(word[0])) {
		return "an"
	}
	return "a"
}
