// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/gen/openapi"
)

// stage is a part of the picture of the lifecycle: what happens, and the hooks that come then, in their order.
type stage struct {
	title string
	steps []step
}

// step is a hook in the picture. When it comes is what the contract says.
type step struct {
	hook  string
	holds string // what waits while an answer has retryAfterSeconds; empty if nothing does
	each  bool   // it comes once for each version on the way
}

// lifecycle is what the contract does not say in a form that programs read: which hooks belong together, and what each
// holds. draw refuses what contradicts the contract.
var lifecycle = []stage{
	{"An ExtensionConfig is reconciled", []step{{hook: "Discovery"}}},
	{"A ClusterClass, or a Cluster of it, is reconciled", []step{
		{hook: "GeneratePatches"}, {hook: "ValidateTopology"}, {hook: "DiscoverVariables"},
	}},
	{"A Cluster is created", []step{
		{hook: "BeforeClusterCreate", holds: "all objects of its topology"}, {hook: "AfterControlPlaneInitialized"},
	}},
	{"Its version is changed", []step{
		{hook: "GenerateUpgradePlan"},
		{hook: "BeforeClusterUpgrade", holds: "the whole upgrade"},
		{hook: "BeforeControlPlaneUpgrade", holds: "the control plane", each: true},
		{hook: "AfterControlPlaneUpgrade", holds: "the workers, and the next version", each: true},
		{hook: "BeforeWorkersUpgrade", holds: "the workers", each: true},
		{hook: "AfterWorkersUpgrade", holds: "the next version, and the end of the upgrade", each: true},
		{hook: "AfterClusterUpgrade", holds: "the next change of the version"},
	}},
	{"Its Machines are changed in place", []step{
		{hook: "CanUpdateMachine"}, {hook: "CanUpdateMachineSet"},
		{hook: "UpdateMachine", holds: "the end of the Machine's update"},
	}},
	{"It is deleted", []step{{hook: "BeforeClusterDelete", holds: "the deletion of all its objects"}}},
}

// The measures of the picture, in pixels, and of its texts, in characters.
const (
	pictureWidth           = 900
	lineHeight, rowGap     = 16, 12
	whenColumns, holdsWide = 52, 36
)

// picture writes the picture of the lifecycle of a Cluster as SVG.
func picture(w io.Writer) error { return draw(w, catalog.New(), openapi.Document, lifecycle) }

func draw(w io.Writer, hooks *catalog.Catalog, document string, stages []stage) error {
	when, err := whenOf(document)
	if err != nil {
		return err
	}
	if err := check(hooks, stages); err != nil {
		return err
	}
	var body, told strings.Builder
	y := 40
	text := func(class string, x, y int, s string) {
		fmt.Fprintf(&body, "<text class=%q x=\"%d\" y=\"%d\">%s</text>\n", class, x, y, html.EscapeString(s))
	}
	box := func(class string, x, y, width, height int) {
		fmt.Fprintf(&body, "<rect class=%q x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"6\"/>\n",
			class, x, y, width, height)
	}
	text("small", 20, 20, "hook")
	text("small", 300, 20, "when it is called")
	text("small", 660, 20, "what retryAfterSeconds holds")
	for _, s := range stages {
		text("title", 20, y+lineHeight, s.title)
		fmt.Fprintf(&told, "%s: ", s.title)
		y += 2*lineHeight + rowGap/2
		for i, t := range s.steps {
			x, first := 20, i == 0 || !s.steps[i-1].each
			if t.each {
				x = 50
				if first {
					text("small", 50, y+lineHeight-4, "for each version on the way")
					y += lineHeight + rowGap/2
				}
			}
			lines, holds := wrap(when[t.hook], whenColumns), wrap(t.holds, holdsWide)
			height := max(len(lines), len(holds), 1)*lineHeight + rowGap
			class := "box"
			if t.holds != "" {
				class = "holds"
				box(class, 650, y, 240, height)
			}
			box(class, x, y, 280-x, height)
			text("hook", x+10, y+height/2+5, t.hook)
			for n, line := range lines {
				text("small", 300, y+rowGap/2+(n+1)*lineHeight-4, line)
			}
			for n, line := range holds {
				text("small", 660, y+rowGap/2+(n+1)*lineHeight-4, line)
			}
			fmt.Fprintf(&told, "%s, %s", t.hook, when[t.hook])
			if t.holds != "" {
				fmt.Fprintf(&told, ", holds %s", t.holds)
			}
			told.WriteString(". ")
			y += height + rowGap
		}
	}
	_, err = fmt.Fprintf(w, frame, y, y, html.EscapeString(strings.TrimSpace(told.String())), body.String())
	return err
}

// hookTable writes what the picture shows, as a table.
func hookTable(w io.Writer) error {
	when, err := whenOf(openapi.Document)
	if err != nil {
		return err
	}
	var b strings.Builder
	b.WriteString("\n| hook | it is called | what waits while an answer has `retryAfterSeconds` |\n|---|---|---|\n")
	for _, s := range lifecycle {
		for _, t := range s.steps {
			fmt.Fprintf(&b, "| %s | %s | %s |\n", t.hook, when[t.hook], t.holds)
		}
	}
	b.WriteString("\n")
	_, err = io.WriteString(w, b.String())
	return err
}

// whenOf returns when each hook is called, as the contract says.
func whenOf(document string) (map[string]string, error) {
	var d struct {
		Paths map[string]map[string]struct{ Summary string }
	}
	if err := json.Unmarshal([]byte(document), &d); err != nil {
		return nil, fmt.Errorf("read the OpenAPI document: %w", err)
	}
	when := map[string]string{}
	for _, operations := range d.Paths {
		name, rest, ok := strings.Cut(operations["post"].Summary, " ")
		if ok && !strings.Contains(name, ".") {
			when[name] = strings.TrimSuffix(strings.TrimPrefix(rest, "is called "), ".")
		}
	}
	return when, nil
}

// check returns an error unless the stages have every hook once, the hooks of each service in the order of the
// contract, and something that waits for exactly those that may hold their caller.
func check(hooks *catalog.Catalog, stages []stage) error {
	var errs []error
	drawn := map[string][]string{} // by service
	for _, s := range stages {
		for _, t := range s.steps {
			h, ok := hooks.ByName(t.hook)
			if !ok {
				errs = append(errs, fmt.Errorf("the contract has no hook %s", t.hook))
				continue
			}
			drawn[string(h.Service.Name())] = append(drawn[string(h.Service.Name())], t.hook)
			if h.Blocking != (t.holds != "") {
				errs = append(errs, fmt.Errorf("%s: the contract lets it hold its caller: %t; the diagram shows that it holds %q",
					t.hook, h.Blocking, t.holds))
			}
		}
	}
	for _, h := range hooks.Hubs() {
		var declared []string
		for i := range h.Service.Methods().Len() {
			declared = append(declared, string(h.Service.Methods().Get(i).Name()))
		}
		name := string(h.Service.Name())
		if !slices.Equal(declared, drawn[name]) {
			errs = append(errs, fmt.Errorf("%s has the hooks %v, but the diagram shows %v", name, declared, drawn[name]))
			drawn[name] = declared // it is said once
		}
	}
	return errors.Join(errs...)
}

// wrap breaks a text into lines.
func wrap(s string, columns int) []string {
	var lines []string
	for _, word := range strings.Fields(s) {
		if n := len(lines); n > 0 && len(lines[n-1])+1+len(word) <= columns {
			lines[n-1] += " " + word
			continue
		}
		lines = append(lines, word)
	}
	return lines
}

// frame is the picture but for its height, its description and what is drawn. It follows the colours of the reader.
var frame = fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %%d" width="%d" height="%%d" role="img"
  aria-labelledby="title desc">
<!-- Code generated by docs/generate. DO NOT EDIT. -->
<title id="title">The hooks in the life of a Cluster</title>
<desc id="desc">%%s</desc>
<style>
  text { font: 14px system-ui, -apple-system, "Segoe UI", Helvetica, Arial, sans-serif; fill: #1f2328; }
  .small { font-size: 12px; fill: #59636e; }
  .title { font-weight: 600; }
  .box { fill: #f6f8fa; stroke: #818b98; }
  .holds { fill: #fff8c5; stroke: #9a6700; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; }
    .small { fill: #9198a1; }
    .box { fill: #151b23; stroke: #656c76; }
    .holds { fill: #272115; stroke: #d29922; }
  }
</style>
%%s</svg>
`, pictureWidth, pictureWidth)
