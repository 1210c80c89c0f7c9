// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/hookgate/hookgate/cmd/hookgate-render/internal/difference"
	"github.com/hookgate/hookgate/cmd/hookgate-render/internal/machines"
	"github.com/hookgate/hookgate/cmd/hookgate-render/internal/topology"
	"github.com/hookgate/hookgate/internal/base/table"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/base/yaml"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// printObjects writes the objects of a render.
func printObjects(w io.Writer, r *topology.Render, format string) error {
	switch format {
	case "table":
		return cmdline.NewScreen(w).Write(false, func(w io.Writer) error {
			t := table.New(w)
			t.Fold()
			t.Columns("OBJECT", "KIND", "NAME", "PATCHED BY")
			for i := range r.Objects {
				x := &r.Objects[i]
				t.Row(x.Role, x.GetKind(), x.GetName(), strings.Join(r.ChangedBy(x.Role, ""), ", "))
			}
			return t.Flush()
		})
	case "json":
		var items []any
		for i := range r.Objects {
			items = append(items, r.Objects[i].Object)
		}
		return printJSON(w, map[string]any{"apiVersion": "v1", "kind": "List", "items": items})
	}
	for i := range r.Objects {
		body, err := json.Marshal(r.Objects[i].Object)
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintln(w, "---"); err != nil {
			return err
		}
		if err := yaml.FromJSON(w, body); err != nil {
			return err
		}
	}
	return nil
}

func printJSON(w io.Writer, v any) error {
	body, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = w.Write(append(text.Escape(body), '\n'))
	return err
}

// result is what a comparison has found.
type result struct {
	Cluster     string                  `json:"cluster"`
	Differences []difference.Difference `json:"differences"`
	Machines    []machines.Effect       `json:"machines"`
}

// print writes a result.
func (r *result) print(w io.Writer, format string) error {
	switch format {
	case "json":
		return printJSON(w, r)
	case "yaml":
		body, err := json.Marshal(r)
		if err != nil {
			return err
		}
		return yaml.FromJSON(w, body)
	}
	if len(r.Differences) == 0 {
		_, err := fmt.Fprintf(w, "%s: no difference\n", text.Printable(r.Cluster))
		return err
	}
	s := cmdline.NewScreen(w)
	s.Full = "-o yaml"
	return s.Write(false, r.tables)
}

// tables writes a result for people.
func (r *result) tables(w io.Writer) error {
	t := table.New(w)
	t.Fold()
	t.Columns("OBJECT", "NAME", "PATH", "WAS", "NOW", "CHANGED BY")
	t.Optional("NAME")
	for i := range r.Differences {
		d := &r.Differences[i]
		was, now := string(d.Was), string(d.Now)
		if d.Path == "" { // the whole object
			was, now = "", "new"
			if len(d.Was) > 0 {
				now = "deleted"
			}
		}
		t.Row(d.Object, d.Name, d.Path, was, now, strings.Join(d.ChangedBy, ", "))
	}
	t.Header("MACHINES OF", "NAME", "MACHINES", "EFFECT", "WHY")
	for i := range r.Machines {
		e := &r.Machines[i]
		t.Row(e.Object, e.Name, strconv.FormatInt(e.Machines, 10), e.Effect, strings.Join(e.Why, "; "))
	}
	return t.Flush()
}
