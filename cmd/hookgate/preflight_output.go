// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/hookgate/hookgate/preflight"
)

// preflightReport is what -o json prints.
type preflightReport struct {
	*preflight.Report
	FromSource string `json:"fromSource,omitempty"`
}

func (o *preflightOptions) print(w io.Writer, r *preflight.Report, source string) error {
	switch o.output {
	case formatJSON:
		e := json.NewEncoder(w)
		e.SetEscapeHTML(false)
		e.SetIndent("", "  ")
		return e.Encode(preflightReport{Report: r, FromSource: source})
	case formatSARIF:
		return r.WriteSARIF(w, currentBuild().Version)
	case formatPolicies:
		_, err := io.WriteString(w, r.Manifests())
		return err
	}
	if len(r.Findings) > 0 {
		t := newTable(w)
		t.row("LEVEL", "HANDLER", "HOOK", "FINDING")
		for i := range r.Findings {
			f := &r.Findings[i]
			t.row(string(f.Level), f.Subject(), f.Hook[strings.LastIndex(f.Hook, "/")+1:], f.Rule)
		}
		if err := t.flush(); err != nil {
			return err
		}
	}
	for _, same := range alike(r.Findings) {
		if same[0].Level == preflight.OK {
			continue
		}
		if err := printFinding(w, same); err != nil {
			return err
		}
	}
	if text := r.Manifests(); text != "" {
		if _, err := fmt.Fprintf(w, "\nPolicies to apply; -o policies prints them alone:\n\n%s", text); err != nil {
			return err
		}
	}
	if len(r.Findings) > 0 {
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
	}
	from := ""
	if r.From != "" {
		from = fmt.Sprintf(" from %s (%s)", r.From, source)
	}
	_, err := fmt.Fprintf(w, "%s%s: %s of %s: %d break, %d degrade, %d warn, %d ok\n", strings.Join(r.Targets, ", "), from,
		plural(r.Handlers, "handler"), plural(r.ExtensionConfigs, "ExtensionConfig"),
		r.Count(preflight.Break), r.Count(preflight.Degrade), r.Count(preflight.Warn), r.Count(preflight.OK))
	return err
}

// alike returns the findings in their order, those that say the same of several handlers together.
func alike(findings []preflight.Finding) [][]*preflight.Finding {
	var groups [][]*preflight.Finding
	for i := range findings {
		f := &findings[i]
		at := slices.IndexFunc(groups, func(g []*preflight.Finding) bool {
			o := g[0]
			return o.Rule == f.Rule && o.ExtensionConfig == f.ExtensionConfig && o.Problem == f.Problem && o.Remedy == f.Remedy && slices.Equal(o.Lost, f.Lost)
		})
		if at < 0 {
			groups = append(groups, []*preflight.Finding{f})
			continue
		}
		groups[at] = append(groups[at], f)
	}
	return groups
}

// mostLost is how many members of a finding are printed for people.
const mostLost = 8

// printFinding prints what is the matter with handlers of which the same is to be said.
func printFinding(w io.Writer, same []*preflight.Finding) error {
	f := same[0]
	if _, err := fmt.Fprintf(w, "\n%s: %s\n", f.Level, f.Rule); err != nil {
		return err
	}
	t := newTable(w)
	for _, s := range same {
		of, where := s.Subject(), s.Location.String()
		if where != "" && where != of {
			of += "  " + where
		}
		t.lines("  of", of)
	}
	t.lines("  problem", f.Problem)
	for i, path := range f.Lost {
		if i == mostLost {
			t.lines("  ", fmt.Sprintf("and %d more; -o json has them all", len(f.Lost)-i))
			break
		}
		t.lines("  lost", path)
	}
	t.lines("  to do", f.Remedy)
	return t.flush()
}
