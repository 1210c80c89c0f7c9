// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"github.com/hookgate/hookgate/cmd/hookgate-render/internal/topology"
	"github.com/hookgate/hookgate/internal/table"
	"github.com/hookgate/hookgate/internal/text"
	"github.com/hookgate/hookgate/internal/yaml"
)

// print writes the objects of a render.
func (o *options) print(w io.Writer, r *topology.Render) error {
	switch o.output {
	case "table":
		t := table.New(w)
		t.Row("OBJECT", "KIND", "NAME", "PATCHED BY")
		for i := range r.Objects {
			x := &r.Objects[i]
			t.Row(x.Role, x.GetKind(), x.GetName(), strings.Join(r.ChangedBy(x.Role, ""), ", "))
		}
		return t.Flush()
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
