// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/status"
)

// act says where people do what commands do: hookgate dashboard, through which they see the page, tells the port on
// their own machine, and what can be done there. Otherwise it is zero, and the page shows the commands. The gateway
// does nothing of this itself.
type act struct {
	port  uint16
	names []string
}

// actOf returns what a request tells. Of the header, only a number and known names reach the page.
func actOf(r *http.Request) act {
	said := r.Header.Get(status.ActionsHeader)
	if len(said) > limits.QuotedBytes {
		return act{}
	}
	words := strings.Fields(said)
	if len(words) == 0 {
		return act{}
	}
	port, err := strconv.ParseUint(words[0], 10, 16)
	if err != nil || port == 0 {
		return act{}
	}
	return act{uint16(port), words[1:]}
}

// origin returns where the actions are.
func (a act) origin() string { return fmt.Sprintf("http://127.0.0.1:%d", a.port) }

// formAction returns what the policy of the page has besides, so that its forms may lead to the actions.
func (a act) formAction() string {
	if a.port == 0 {
		return ""
	}
	return " " + a.origin()
}

// deed is something that people may do about a thing on the page.
type deed struct {
	action, Label, about string
	command              []string // without hookgate
	Fields               [][2]string
	URL                  string // of the action
}

// About is the name of the button for those who do not see what is beside it.
func (d deed) About() string { return d.Label + " " + d.about }

// ID is the same whenever the page has the deed.
func (d deed) ID() string {
	return "act-" + strings.Join(append([]string{d.action}, d.command...), "-")
}

// Command is the command, for a shell.
func (d deed) Command() string {
	words := []string{"hookgate"}
	for _, word := range d.command {
		words = append(words, shellWord(word))
	}
	return strings.Join(words, " ")
}

// deeds are what people may do about one thing: with a button where that is possible, otherwise with a command.
type deeds struct {
	Buttons, Commands []deed
}

func (a act) deeds(all ...deed) (d deeds) {
	for _, of := range all {
		if a.port != 0 && slices.Contains(a.names, of.action) {
			of.URL = a.origin() + "/" + of.action
			d.Buttons = append(d.Buttons, of)
		} else {
			d.Commands = append(d.Commands, of)
		}
	}
	return d
}

// Lift is what lets a Cluster go on that waits for a handler. Failures, parts of a Cluster and Machines, and Jobs that
// run are not lifted.
func (a act) Lift(h status.Hold) deeds {
	kind, _, _ := strings.Cut(h.Handler, ".")
	isRule := kind == "rule"
	if h.Kind != "" || h.Hook == "" || kind == "job" {
		return deeds{}
	}
	if !isRule && (h.Object != "" || strings.Contains(h.Hook, "Machine")) {
		return deeds{}
	}
	cluster := h.Namespace + "/" + h.Cluster
	return a.deeds(deed{
		action: "lift", Label: "Lift", about: fmt.Sprintf("the hold of Cluster %s by %s", cluster, h.Handler),
		command: []string{"lift", h.Handler, "--hook", h.Hook, "--cluster", cluster},
		Fields:  [][2]string{{"handler", h.Handler}, {"hook", h.Hook}, {"cluster", cluster}},
	})
}

// Rollout is what moves the Clusters of a rollout.
func (a act) Rollout(r *status.Rollout) deeds {
	if r.Candidate == "" {
		return deeds{}
	}
	of := func(action, label, about string, flags ...string) deed {
		return deed{
			action: action, Label: label, about: about + " of rollout " + r.Name,
			command: append([]string{"rollout", action, r.Name}, flags...), Fields: [][2]string{{"rollout", r.Name}},
		}
	}
	var all []deed
	if r.Variables != nil {
		d := of("approve", "Approve", "what differs for calls about no Cluster", "--variables")
		d.Fields = append(d.Fields, [2]string{"variables", "true"})
		all = append(all, d)
	}
	all = append(all, of("promote", "Promote", "the candidate"))
	if r.Paused || r.Aborted != "" {
		all = append(all, of("resume", "Resume", "the moves"))
	} else {
		all = append(all, of("pause", "Pause", "the moves"))
	}
	if r.Moved > 0 {
		all = append(all, of("undo", "Undo", "all moves"))
	}
	return a.deeds(all...)
}

// Rolled is what moves one Cluster of a rollout.
func (a act) Rolled(r *status.Rollout, c status.RolloutCluster) deeds {
	cluster := c.Namespace + "/" + c.Cluster
	var action, label string
	switch c.State {
	case "Different":
		action, label = "approve", "Approve"
	case "Moved":
		action, label = "undo", "Undo"
	default:
		return deeds{}
	}
	return a.deeds(deed{
		action: action, Label: label, about: fmt.Sprintf("Cluster %s of rollout %s", cluster, r.Name),
		command: []string{"rollout", action, r.Name, "--cluster", cluster},
		Fields:  [][2]string{{"rollout", r.Name}, {"cluster", cluster}},
	})
}

// Record is what records the calls of a handler.
func (a act) Record(handler string) deeds {
	return a.deeds(deed{
		action: "record", Label: "Record", about: "the calls of " + handler, command: []string{"record", handler},
		Fields: [][2]string{{"handler", handler}},
	})
}

// Explain is what explains a request about a Cluster.
func (a act) Explain(namespace, name string) deeds {
	return a.deeds(deed{
		action: "explain", Label: "Explain a request", about: "about Cluster " + namespace + "/" + name,
		command: []string{"explain", "HOOK", "-f", "cluster.yaml"}, Fields: [][2]string{{"cluster", namespace + "/" + name}},
	})
}

// shellWord returns a word as shells read it. What is on the page may come from callers.
func shellWord(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_./:@", r)
	}
	if word != "" && !strings.ContainsFunc(word, func(r rune) bool { return !plain(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
