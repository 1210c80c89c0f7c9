// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package preflight

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/hookgate/hookgate/internal/base/table"
	"github.com/hookgate/hookgate/internal/base/text"
)

// WriteJSON writes the report as JSON.
func (r *Report) WriteJSON(w io.Writer) error {
	e := json.NewEncoder(text.EscapingWriter(w))
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(r)
}

// WriteTable writes the report as text: a table of the findings, the remedies, and a summary.
func (r *Report) WriteTable(w io.Writer) error {
	if len(r.Findings) > 0 {
		t := table.New(w)
		t.Columns("LEVEL", "HANDLER", "HOOK", "FINDING")
		for i := range r.Findings {
			f := &r.Findings[i]
			t.Row(string(f.Level), f.Object(), f.hookName(), f.Rule)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	for _, group := range groups(r.Findings) {
		if group[0].Level == OK {
			continue
		}
		if err := writeGroup(w, group); err != nil {
			return err
		}
	}
	if policies := r.Manifests(); policies != "" {
		if _, err := fmt.Fprintf(w, "\nPolicies to apply; -o policies prints them alone:\n\n%s", policies); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, r.summary())
	return err
}

// summary returns the last line of the table.
func (r *Report) summary() string {
	separator, from := "", ""
	if len(r.Findings) > 0 {
		separator = "\n"
	}
	if r.From != "" {
		from = fmt.Sprintf(" from %s (%s)", r.From, r.FromSource)
	}
	others := ""
	if r.HookRules > 0 {
		others = ", " + text.Plural(r.HookRules, "HookRule")
	}
	if r.HookJobs > 0 {
		others += ", " + text.Plural(r.HookJobs, "HookJob")
	}
	if r.HandlerChains > 0 {
		others += ", " + text.Plural(r.HandlerChains, "HandlerChain")
	}
	announced := ""
	if r.Announced {
		announced = " (not released: as announced)"
	}
	unknown := ""
	if n := r.Count(Unknown); n > 0 {
		unknown = fmt.Sprintf(", %d unknown", n)
	}
	return fmt.Sprintf("%s%s%s%s: %s of %s%s: %d break%s, %d degrade, %d warn, %d ok\n", separator,
		strings.Join(r.Targets, ", "), announced, from,
		text.Plural(r.Handlers, "handler"), text.Plural(r.ExtensionConfigs, "ExtensionConfig"), others,
		r.Count(Break), unknown, r.Count(Degrade), r.Count(Warn), r.Count(OK))
}

// groups returns the findings in their order, but those that say the same of several handlers together.
func groups(findings []Finding) [][]*Finding {
	var groups [][]*Finding
	for i := range findings {
		f := &findings[i]
		at := slices.IndexFunc(groups, func(g []*Finding) bool {
			o := g[0]
			return o.Rule == f.Rule && o.ExtensionConfig == f.ExtensionConfig && o.HookRule == f.HookRule &&
				o.HookJob == f.HookJob && o.HandlerChain == f.HandlerChain && o.Problem == f.Problem &&
				o.Remedy == f.Remedy && slices.Equal(o.Lost, f.Lost)
		})
		if at < 0 {
			groups = append(groups, []*Finding{f})
			continue
		}
		groups[at] = append(groups[at], f)
	}
	return groups
}

// maxLost is the number of lost members that a table lists for a finding.
const maxLost = 8

// writeGroup writes findings that differ in their handler only.
func writeGroup(w io.Writer, group []*Finding) error {
	first := group[0]
	if _, err := fmt.Fprintf(w, "\n%s: %s\n", first.Level, first.Rule); err != nil {
		return err
	}
	t := table.New(w)
	for _, f := range group {
		of, where := f.Object(), f.Location.String()
		if where != "" && where != of {
			of += "  " + where
		}
		t.Lines("  of", of)
	}
	t.Lines("  problem", first.Problem)
	for i, path := range first.Lost {
		if i == maxLost {
			t.Lines("  ", fmt.Sprintf("and %d more; -o json has them all", len(first.Lost)-i))
			break
		}
		t.Lines("  lost", path)
	}
	t.Lines("  to do", first.Remedy)
	return t.Flush()
}
