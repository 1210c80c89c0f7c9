// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package rollout

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/base/table"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/contract/printers"
	"github.com/hookgate/hookgate/internal/kinds"
)

// listed is where a status has the rollouts.
var listed = kinds.Member[status.Rollout]{
	At:  func(g *status.Gateway) (*[]status.Rollout, *int) { return &g.Rollouts, &g.MissedRollouts },
	Row: func(r *status.Rollout) kinds.Row { return kinds.Row{Name: r.Name, Ready: r.Ready} },
}

// shownKind is what people see of the kind. Its metrics are about Clusters, too.
var shownKind = kinds.Shown{
	Singular: "rollout", Plural: "rollouts", In: listed, Table: writeTable, Describe: describe,
	Short: "List the ExtensionRollouts, and how many Clusters have moved",
	Long: "List the ExtensionRollouts of a gateway, each with its numbers of Clusters: EQUAL (both versions answer\n" +
		"alike), DIFFERENT (the versions answer differently), MOVED (the Clusters have moved to the candidate), and\n" +
		"FAILING (the candidate does not answer). Clusters that have not been compared are not counted.\n" +
		"\"hookgate describe rollout NAME\" shows what differs for each Cluster, and how the differences affect the\n" +
		"Cluster's Machines.",
	Wide: "all messages",
}

// writeTable writes a row for each ExtensionRollout of a gateway. If wide, messages are those of all.
func writeTable(w io.Writer, g *status.Gateway, wide bool) error {
	t := table.New(w)
	t.Columns("NAME", "STABLE", "CANDIDATE", "READY", "EQUAL", "DIFFERENT", "MOVED", "FAILING", "MESSAGE")
	t.Optional("MESSAGE", "EQUAL", "STABLE", "CANDIDATE")
	t.Below("NAME", "MESSAGE")
	for i := range g.Rollouts {
		r := &g.Rollouts[i]
		message := printers.RolloutMessage(r)
		if wide {
			message = cmp.Or(message, r.Message)
		}
		t.Row(r.Name, r.Stable, r.Candidate, printers.Condition(r.Ready), strconv.Itoa(r.Equal), strconv.Itoa(r.Different),
			strconv.Itoa(r.Moved), strconv.Itoa(r.Failing), message)
	}
	return t.Flush()
}

// describe describes the first rollout of g, which is all that g has: its counts, and what differs for each Cluster.
func describe(w io.Writer, g *status.Gateway) error {
	r := &g.Rollouts[0]
	t := table.New(w)
	t.Row("Name:", r.Name)
	t.Row("Stable:", r.Stable)
	t.Row("Candidate:", cmp.Or(r.Candidate, "none, so that no Cluster moves"))
	t.Row("Ready:", printers.Condition(r.Ready)+", "+r.Reason)
	t.Row("Message:", cmp.Or(printers.RolloutMessage(r), r.Message))
	if r.Candidate != "" {
		t.Row("Clusters:", fmt.Sprintf("%d equal, %d different, %d moved", r.Equal, r.Different, r.Moved))
		if r.Failing > 0 {
			t.Row("Failing:", fmt.Sprintf("the last call to %s failed for %s", r.Candidate, text.Plural(r.Failing, "Cluster")))
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	if len(r.Handlers) > 0 {
		if err := printers.HandlersOf(w, r.Handlers); err != nil {
			return err
		}
	}
	if r.Variables != nil {
		const name = "Calls about no Cluster, such as those of DiscoverVariables"
		if err := rolloutCluster(w, name, r.Variables, g.Now); err != nil {
			return err
		}
	}
	for i := range r.Clusters {
		c := &r.Clusters[i]
		if err := rolloutCluster(w, "Cluster "+c.Namespace+"/"+c.Cluster, c, g.Now); err != nil {
			return err
		}
	}
	if r.MissedClusters > 0 {
		_, err := fmt.Fprintf(w, "\nand %d more Clusters, which the gateway does not list\n", r.MissedClusters)
		if err != nil {
			return err
		}
	}
	if len(g.Holds) == 0 {
		return nil
	}
	if _, err := io.WriteString(w, "\n"); err != nil {
		return err
	}
	return printers.Holds(w, g)
}

// rolloutCluster writes what differs for a Cluster, and what that does to its Machines.
func rolloutCluster(w io.Writer, name string, c *status.RolloutCluster, now time.Time) error {
	t := table.New(w)
	t.Section(name+":", strings.ToLower(c.State)+" for "+printers.Age(&c.Since, now)+says(c.Message))
	if c.Failure != "" {
		t.Row("  Fails:", c.Failure)
	}
	for _, machines := range printers.MachinesOf(c.Differences) {
		t.Row("  Machines:", machines)
	}
	for i := range c.Differences {
		d := &c.Differences[i]
		t.Row("  "+d.Handler+":", printers.Difference(d))
	}
	if c.OmittedDifferences > 0 {
		t.Row("", fmt.Sprintf("and %d more", c.OmittedDifferences))
	}
	return t.Flush()
}

func says(message string) string {
	if message == "" {
		return ""
	}
	return ", " + message
}
