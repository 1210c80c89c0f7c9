// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"net/http"
	"slices"

	"github.com/hookgate/hookgate/catalog"
	documents "github.com/hookgate/hookgate/gen/openapi"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/contract/openapi"
	"github.com/hookgate/hookgate/internal/contract/openapi/document"
)

// newOpenAPI returns a handler that serves the OpenAPI documents of all groups in the catalog, and leaves everything
// else to next.
func newOpenAPI(next http.Handler, hooks *catalog.Catalog) (http.Handler, error) {
	first := openapi.Document{Group: hook.Group, JSON: embedded(documents.Document)}
	var more []openapi.Document
	for _, discovery := range hooks.Discoveries() {
		switch group := discovery[0].Group; group {
		case hook.Group:
		case hook.InfrastructureGroup:
			more = append(more, openapi.Document{Group: group, JSON: embedded(documents.Infrastructure)})
		case hook.MachinesGroup:
			more = append(more, openapi.Document{Group: group, JSON: embedded(documents.Machines)})
		default:
			more = append(more, openapi.Document{Group: group, JSON: described(hooks, group)})
		}
	}
	return openapi.New(next, first, more...)
}

// embedded returns a document that tools/openapi has made.
func embedded(text string) func() ([]byte, error) {
	return func() ([]byte, error) { return []byte(text), nil }
}

// described returns the document of a group that was built into the program.
func described(hooks *catalog.Catalog, group string) func() ([]byte, error) {
	return func() ([]byte, error) {
		g := &document.Group{
			Title: group,
			Description: "Hooks as JSON over HTTPS. An extension serves these paths; the gateway serves them for all " +
				"extensions that it knows. Members that a schema does not have are allowed everywhere.",
			Hooks: slices.DeleteFunc(slices.Clone(hooks.Hooks()), func(h *catalog.Hook) bool { return h.Group != group }),
		}
		return g.Document(g.Schemas()).JSON()
	}
}
