// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"maps"
	"time"

	"github.com/hookgate/hookgate/test/infrastructure/cloud/api"
)

// Kinds of things, in events and tallies.
const (
	kindNetwork = "network"
	kindMachine = "machine"
	kindGroup   = "group"
)

// Verbs of events.
const (
	verbCreate = "create"
	verbDelete = "delete"
	verbVanish = "vanish"
	verbJoin   = "join"
	verbFail   = "fail"
)

// record counts an event and keeps it, unless there are too many.
func (c *Cloud) record(event api.Event) {
	tally := c.tallies[event.Kind]
	switch event.Verb {
	case verbCreate:
		tally.Created++
		tally.Exist++
		tally.Peak = max(tally.Peak, tally.Exist)
	case verbDelete:
		tally.Deleted++
		tally.Exist--
	case verbVanish:
		tally.Vanished++
		tally.Exist--
	}
	c.log.Info(event.Verb, "kind", event.Kind, "id", event.ID, "key", event.Key, "name", event.Name,
		"group", event.Group, "message", event.Message)
	c.sequence++
	if len(c.events) == maxEvents {
		return
	}
	event.Sequence, event.Time = c.sequence, time.Now().UTC()
	c.events = append(c.events, event)
}

// recordMachine records what happened to m.
func (c *Cloud) recordMachine(verb string, m *machine) {
	event := api.Event{Verb: verb, Kind: kindMachine, ID: m.ID, Key: m.Key, Name: m.Name, Message: m.Message}
	if m.group != nil {
		event.Group = m.group.key
	}
	c.record(event)
	if verb != verbCreate || len(c.made) >= maxNames {
		return
	}
	if m.Key != "" {
		c.made[m.Key]++
	}
	c.made[m.Network+"/"+m.Name]++
}

// counts returns what there is and was.
func (c *Cloud) counts() api.Counts {
	repeated := map[string]int{}
	for name, times := range c.made {
		if times > 1 {
			repeated[name] = times
		}
	}
	return api.Counts{
		Networks: *c.tallies[kindNetwork], Machines: *c.tallies[kindMachine], Groups: *c.tallies[kindGroup],
		Repeated: repeated, Requests: maps.Clone(c.requests),
	}
}

// eventsAfter returns the events since sequence.
func (c *Cloud) eventsAfter(sequence int) api.EventList {
	list := api.EventList{Items: []api.Event{}}
	for _, event := range c.events {
		if event.Sequence > sequence {
			list.Items = append(list.Items, event)
		}
	}
	return list
}
