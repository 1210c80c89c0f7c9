// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package document

import (
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
)

// add adds the paths of a hook, and the members to the schemas of its messages that only requests and answers have.
func (g *Group) add(d *Document, h *catalog.Hook, schemas map[string]Schema) {
	request, answer := h.Request.Descriptor(), h.Response.Descriptor()
	for _, message := range []protoreflect.MessageDescriptor{request, answer} {
		members := schemas[Component(message)]["properties"].(Schema)
		members["apiVersion"] = Schema{"type": "string", "enum": []string{h.APIVersion()},
			"description": "apiVersion is the group and version of the hook."}
		members["kind"] = Schema{"type": "string", "enum": []string{string(message.Name())},
			"description": "kind is the name of this type."}
	}
	about := g.Comments[protoreflect.FullName(strings.ReplaceAll(strings.TrimPrefix(h.Method, "/"), "/", "."))]
	summary := "Call " + h.Hook + "."
	if about != "" {
		first, _, _ := strings.Cut(about, ". ")
		summary = strings.TrimSuffix(first, ".") + "."
	}
	op := Operation{
		Tags:        []string{string(h.Category)},
		OperationID: h.Version + h.Hook,
		Summary:     summary,
		Description: strings.TrimSpace(about + "\n\n" + atTheGateway(h)),
		Parameters:  []Schema{ref("parameters", "timeout"), ref("parameters", "callID")},
		RequestBody: Schema{"required": true, "content": body(h, request, g.Requests)},
		Responses: Schema{
			"200": Schema{
				"description": "The hook was called; status says whether it succeeded.",
				"headers":     Schema{"Hookgate-Call-Id": ref("headers", "callID")},
				"content":     body(h, answer, g.Answers),
			},
			"default": ref("responses", "error"),
		},
	}
	d.Paths[h.Path("")] = PathItem{op}
	if !h.TakesHandler() {
		return
	}
	op.OperationID += "Handler"
	op.Summary, op.Description = "Call one handler.", about
	name := "name"
	if h.Singleton() {
		op.Summary, name = "Ask one extension.", "extension"
	}
	op.Parameters = append([]Schema{ref("parameters", name)}, op.Parameters...)
	d.Paths[h.Path("{name}")] = PathItem{op}
}

// atTheGateway returns who answers a call that names no handler.
func atTheGateway(h *catalog.Hook) string {
	switch {
	case h.Singleton():
		return ""
	case h.Mergeable:
		return "At the gateway, all matching handlers answer, and their answers are merged."
	default:
		return "At the gateway, exactly one handler may match; otherwise the call is refused with their names."
	}
}

// body returns the content of a request or an answer, with its example if there is one.
func body(h *catalog.Hook, message protoreflect.MessageDescriptor, examples map[string]Schema) Schema {
	content := Schema{"schema": ref("schemas", Component(message))}
	if example, ok := examples[h.Hook]; ok {
		example = maps.Clone(example)
		example["apiVersion"], example["kind"] = h.APIVersion(), string(message.Name())
		content["example"] = example
	}
	return Schema{"application/json": content}
}

func ref(kind, name string) Schema { return Schema{"$ref": "#/components/" + kind + "/" + name} }

// parameters returns the parameters that the operations of the group refer to.
func (g *Group) parameters() Schema {
	all := Schema{
		"name": Schema{
			"name": "name", "in": "path", "required": true, "schema": Schema{"type": "string", "minLength": 1},
			"description": "The handler to call, in lower case: a name from the extension's Discovery or, at the gateway, " +
				"also `<name>.<ExtensionConfig>`.",
		},
		"extension": Schema{
			"name": "name", "in": "path", "required": true, "schema": Schema{"type": "string", "minLength": 1},
			"description": "The extension to ask: the name of one of its handlers or, at the gateway, of its " +
				"ExtensionConfig.",
		},
		"timeout": Schema{
			"name": "timeout", "in": "query", "schema": Schema{"type": "string",
				"pattern": `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`},
			"example": "10s", "description": "How long the caller waits, such as 10s or 1m30s.",
		},
		"callID": Schema{
			"name": "Hookgate-Call-Id", "in": "header", "schema": Schema{"type": "string"},
			"description": "The caller's id of this call, for logs and the answer. Without it, the gateway chooses one.",
		},
	}
	if !slices.ContainsFunc(g.Hooks, func(h *catalog.Hook) bool { return h.Singleton() && h.TakesHandler() }) {
		delete(all, "extension")
	}
	return all
}

func headers() Schema {
	var kinds []string
	for _, k := range hook.Kinds() {
		kinds = append(kinds, k.String())
	}
	return Schema{
		"callID": Schema{"required": true, "schema": Schema{"type": "string"},
			"description": "The id of the call in the gateway's log."},
		"errorKind": Schema{"required": true, "schema": Schema{"type": "string", "enum": kinds},
			"description": "The kind of the gateway's error."},
		"retryAfter": Schema{"schema": Schema{"type": "integer", "minimum": 1},
			"description": "After how many seconds a new attempt may succeed, if that is known."},
	}
}

func responses() Schema {
	return Schema{"error": Schema{
		"description": "The hook could not be called. The body has the form of the hook's answer, with status Failure.",
		"headers": Schema{"Hookgate-Call-Id": ref("headers", "callID"),
			"Hookgate-Error-Kind": ref("headers", "errorKind"), "Retry-After": ref("headers", "retryAfter")},
		"content": Schema{"application/json": Schema{"schema": ref("schemas", "Error")}},
	}}
}

func errorSchema() Schema {
	return Schema{
		"type":        "object",
		"description": "Error is the answer to a failed call: the members that all answers of hooks have in common.",
		"required":    []string{"apiVersion", "message", "status"},
		"properties": Schema{
			"apiVersion": Schema{"type": "string", "description": "apiVersion is the group and version of the hook."},
			"kind": Schema{"type": "string",
				"description": "kind is the kind of the hook's answer. It is missing if the path is not a path of a hook."},
			"status": Schema{"type": "string", "enum": []string{"Failure"}, "description": "status is Failure."},
			"message": Schema{"type": "string",
				"description": "message states the cause. It is the same for the same failure."},
		},
	}
}
