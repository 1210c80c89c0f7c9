// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
)

// document is an OpenAPI document with its parts in reading order.
type document struct {
	OpenAPI    string              `json:"openapi"`
	Info       schema              `json:"info"`
	Servers    []schema            `json:"servers"`
	Tags       []schema            `json:"tags"`
	Paths      map[string]pathItem `json:"paths"`
	Components schema              `json:"components"`
}

type pathItem struct {
	Post operation `json:"post"`
}

type operation struct {
	Tags        []string `json:"tags"`
	OperationID string   `json:"operationId"`
	Summary     string   `json:"summary"`
	Description string   `json:"description"`
	Parameters  []schema `json:"parameters"`
	RequestBody schema   `json:"requestBody"`
	Responses   schema   `json:"responses"`
}

// description is the description of the whole document, in Markdown.
var description = strings.Join([]string{
	"The hooks through which Cluster API calls Runtime Extensions, as JSON over HTTPS. An extension serves these paths; " +
		"the gateway serves them for all extensions that it knows.\n",
	"- The last segment of the path is the name of the handler, as Discovery returns it. At the gateway, all matching " +
		"handlers answer a path without that segment, or the only one if answers cannot be merged.",
	"- Members that a schema does not have are allowed everywhere, and the gateway passes them on, because Cluster API " +
		"adds members within a version. Ignore what you do not know.",
	"- A Kubernetes object that may be of any kind is an open object. Integers in it may be larger than 2^53.",
	"- A body may have 20 MiB in each direction, after decompression.",
	"- A hook that an extension refuses is answered with 200 and status Failure. Every other status code comes with an " +
		"answer of the same form, whose message states the cause.",
	"- Hooks are repeated, so extensions must be idempotent; GeneratePatches, ValidateTopology and DiscoverVariables " +
		"must return the same answer to the same request.",
}, "\n")

// examplesText holds a small request for every hook.
//
//go:embed examples.yaml
var examplesText []byte

func readExamples() (map[string]any, error) {
	var examples map[string]any
	if err := yaml.UnmarshalStrict(examplesText, &examples); err != nil {
		return nil, fmt.Errorf("examples: %w", err)
	}
	return examples, nil
}

func assemble(
	hooks *catalog.Catalog, c *contract, schemas map[string]schema, examples map[string]any,
) (*document, error) {
	d := &document{
		OpenAPI: "3.0.3",
		Info: schema{
			"title":       "Cluster API Runtime Hooks",
			"version":     hook.Version,
			"description": description,
			"license":     schema{"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"},
		},
		Servers: []schema{{"url": "/", "description": "The server of this document"}},
		Paths:   map[string]pathItem{},
	}
	tags := map[string]bool{}
	for _, h := range hooks.Hooks() {
		if service := string(h.Category); !tags[service] {
			about, err := c.service(service + "Service")
			if err != nil {
				return nil, err
			}
			d.Tags, tags[service] = append(d.Tags, schema{"name": service, "description": about}), true
		}
		if err := d.add(h, c, schemas, examples[h.Hook]); err != nil {
			return nil, fmt.Errorf("hook %s: %w", h.Hook, err)
		}
	}
	d.Components = schema{
		"schemas": schemas, "parameters": parameters(), "headers": headers(), "responses": responses(),
	}
	schemas["Error"] = errorSchema()
	return d, nil
}

// add adds the paths of a hook.
func (d *document) add(h *catalog.Hook, c *contract, schemas map[string]schema, example any) error {
	about, err := c.method(h)
	if err != nil {
		return err
	}
	if example == nil {
		return errors.New("there is no example of a request")
	}
	request, answer := string(h.Request.Descriptor().Name()), string(h.Response.Descriptor().Name())
	for _, kind := range []string{request, answer} {
		members := schemas["hooks.v1alpha1."+kind]["properties"].(map[string]any)
		members["apiVersion"] = schema{"type": "string", "enum": []string{h.APIVersion()},
			"description": "apiVersion is the group and version of the hook."}
		members["kind"] = schema{"type": "string", "enum": []string{kind},
			"description": "kind is the name of this type."}
	}
	body := example.(map[string]any)
	body["apiVersion"], body["kind"] = h.APIVersion(), request
	summary, _, _ := strings.Cut(about, ". ")
	op := operation{
		Tags:        []string{string(h.Category)},
		OperationID: h.Version + h.Hook,
		Summary:     strings.TrimSuffix(summary, ".") + ".",
		Description: about,
		Parameters:  []schema{ref("parameters", "timeout"), ref("parameters", "callID")},
		RequestBody: schema{"required": true, "content": schema{"application/json": schema{
			"schema": ref("schemas", "hooks.v1alpha1."+request), "example": body,
		}}},
		Responses: schema{
			"200": schema{
				"description": "The hook was called; status says whether it succeeded.",
				"headers":     schema{"Hookgate-Call-Id": ref("headers", "callID")},
				"content":     schema{"application/json": schema{"schema": ref("schemas", "hooks.v1alpha1."+answer)}},
			},
			"default": ref("responses", "error"),
		},
	}
	switch {
	case h.Singleton():
	case h.Mergeable:
		op.Description += "\n\nAt the gateway, all matching handlers answer, and their answers are merged."
	default:
		op.Description += "\n\nAt the gateway, exactly one handler may match; otherwise the call is refused with their names."
	}
	d.Paths[h.Path("")] = pathItem{op}
	if h.Singleton() {
		return nil
	}
	op.OperationID += "Handler"
	op.Summary = "Call one handler."
	op.Description = about
	op.Parameters = append([]schema{ref("parameters", "name")}, op.Parameters...)
	d.Paths[h.Path("{name}")] = pathItem{op}
	return nil
}

func ref(kind, name string) schema { return schema{"$ref": "#/components/" + kind + "/" + name} }

func parameters() schema {
	return schema{
		"name": schema{
			"name": "name", "in": "path", "required": true, "schema": schema{"type": "string", "minLength": 1},
			"description": "The handler to call, in lower case: a name from the extension's Discovery or, at the gateway, " +
				"also `<name>.<ExtensionConfig>`.",
		},
		"timeout": schema{
			"name": "timeout", "in": "query", "schema": schema{"type": "string",
				"pattern": `^([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+$`},
			"example": "10s", "description": "How long the caller waits, such as 10s or 1m30s.",
		},
		"callID": schema{
			"name": "Hookgate-Call-Id", "in": "header", "schema": schema{"type": "string"},
			"description": "The caller's id of this call, for logs and the answer. Without it, the gateway chooses one.",
		},
	}
}

func headers() schema {
	var kinds []string
	for _, k := range hook.Kinds() {
		kinds = append(kinds, k.String())
	}
	return schema{
		"callID": schema{"required": true, "schema": schema{"type": "string"},
			"description": "The id of the call in the gateway's log."},
		"errorKind": schema{"required": true, "schema": schema{"type": "string", "enum": kinds},
			"description": "The kind of the gateway's error."},
		"retryAfter": schema{"schema": schema{"type": "integer", "minimum": 1},
			"description": "After how many seconds a new attempt may succeed, if that is known."},
	}
}

func responses() schema {
	return schema{"error": schema{
		"description": "The hook could not be called. The body has the form of the hook's answer, with status Failure.",
		"headers": schema{"Hookgate-Call-Id": ref("headers", "callID"),
			"Hookgate-Error-Kind": ref("headers", "errorKind"), "Retry-After": ref("headers", "retryAfter")},
		"content": schema{"application/json": schema{"schema": ref("schemas", "Error")}},
	}}
}

func errorSchema() schema {
	return schema{
		"type":        "object",
		"description": "Error is the answer to a failed call: the members that all answers of hooks have in common.",
		"required":    []string{"apiVersion", "message", "status"},
		"properties": schema{
			"apiVersion": schema{"type": "string", "description": "apiVersion is the group and version of the hook."},
			"kind": schema{"type": "string",
				"description": "kind is the kind of the hook's answer. It is missing if the path is not a path of a hook."},
			"status": schema{"type": "string", "enum": []string{"Failure"}, "description": "status is Failure."},
			"message": schema{"type": "string",
				"description": "message states the cause. It is the same for the same failure."},
		},
	}
}
