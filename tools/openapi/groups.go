// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"embed"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/contract/openapi/document"
)

var license = schema{"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"}

// The descriptions of the documents, in Markdown.
var (
	hooksDescription = strings.Join([]string{
		"The hooks through which Cluster API calls Runtime Extensions, as JSON over HTTPS. An extension serves these " +
			"paths; the gateway serves them for all extensions that it knows.\n",
		"- The last segment of the path is the name of the handler, as Discovery returns it. At the gateway, all " +
			"matching handlers answer a path without that segment, or the only one if answers cannot be merged.",
		"- Members that a schema does not have are allowed everywhere, and the gateway passes them on, because Cluster " +
			"API adds members within a version. Ignore what you do not know.",
		"- A Kubernetes object that may be of any kind is an open object. Integers in it may be larger than 2^53.",
		bodies,
		failures,
		"- Hooks are repeated, so extensions must be idempotent; GeneratePatches, ValidateTopology and " +
			"DiscoverVariables must return the same answer to the same request.",
	}, "\n")
	infrastructureDescription = strings.Join([]string{
		"The hooks through which an extension is an infrastructure provider of Cluster API, as JSON over HTTPS. An " +
			"extension serves these paths; the gateway serves them for all extensions that it knows.\n",
		"- The last segment of the path is the name of the handler, as DiscoverInfrastructure returns it. At the " +
			"gateway, a path without that segment is answered by the only matching handler.",
		"- A request says what should exist, and the answer, within seconds, says what exists. The hook is called again " +
			"until both agree, and from time to time afterwards. Name or tag whatever you make with subject.externalId.",
		"- Members that a schema does not have are allowed everywhere, and the gateway passes them on. Ignore what you " +
			"do not know. Members that are empty are left out, except for status and retryAfterSeconds.",
		"- Objects of Kubernetes are open objects of Cluster API's version v1beta2, unless the extension is registered " +
			"for another one. Integers in them may be larger than 2^53.",
		bodies,
		failures,
	}, "\n")
	machinesDescription = strings.Join([]string{
		"The hooks that accompany single Machines and the end of a Cluster, as JSON over HTTPS. An extension serves these " +
			"paths; Hookgate's controllers call them through the gateway.\n",
		"- The last segment of the path is the name of the handler, as DiscoverMachineHooks returns it. At the gateway, " +
			"all matching handlers answer a path without that segment, or the only one for RemediateMachine.",
		"- A handler of a hook whose name begins with Before holds the Machine with retryAfterSeconds, and is called " +
			"again until it lets the Machine go on. RemediateMachine is called again while its answer has retryAfterSeconds.",
		"- Members that a schema does not have are allowed everywhere, and the gateway passes them on. Ignore what you " +
			"do not know. Members that are empty are left out, except for status and retryAfterSeconds.",
		"- Objects of Kubernetes are open objects of Cluster API's version v1beta2, unless the extension is registered " +
			"for another one. Integers in them may be larger than 2^53.",
		bodies,
		failures,
	}, "\n")
)

const (
	bodies   = "- A body may have 20 MiB in each direction, after decompression."
	failures = "- A hook that an extension refuses is answered with 200 and status Failure. Every other status code " +
		"comes with an answer of the same form, whose message states the cause."
)

// What the documents have that neither protos nor types do: examples, and rules that only comments state.
//
//go:embed requests.yaml answers.yaml infrastructure-answers.yaml infrastructure-schemas.yaml
//go:embed machines-answers.yaml machines-schemas.yaml
var written embed.FS

// read decodes one of the files.
func read[T any](name string) (T, error) {
	var value T
	text, err := written.ReadFile(name)
	if err == nil {
		err = yaml.UnmarshalStrict(text, &value)
	}
	if err != nil {
		return value, fmt.Errorf("%s: %w", name, err)
	}
	return value, nil
}

// clusterAPI returns the document of Cluster API's hooks, whose schemas are those of its Go types.
func clusterAPI(root string, c *contract) (*document.Document, error) {
	hooks := catalog.New()
	schemas, err := readTypes(root, hooks)
	if err != nil {
		return nil, err
	}
	ahead := (&document.Group{Hooks: hooks.Hooks(), Comments: c.comments}).Schemas()
	if err := c.describe("hookgate.hooks", schemas, ahead); err != nil {
		return nil, err
	}
	requests, err := read[map[string]schema]("requests.yaml")
	if err != nil {
		return nil, err
	}
	answers, err := read[map[string]schema]("answers.yaml")
	if err != nil {
		return nil, err
	}
	return assemble(&document.Group{
		Title: "Cluster API Runtime Hooks", Description: hooksDescription, License: license,
		Hooks: hooks.Hooks(), Comments: c.comments, Requests: requests, Answers: answers,
	}, c, schemas)
}

// infrastructure returns the document of the hooks of infrastructure.
func infrastructure(root string, c *contract) (*document.Document, error) {
	return own(root, c, hook.InfrastructureGroup, "infrastructure", &document.Group{
		Title: "Hookgate Infrastructure Hooks", Description: infrastructureDescription,
	})
}

// machines returns the document of the hooks of Machines.
func machines(root string, c *contract) (*document.Document, error) {
	return own(root, c, hook.MachinesGroup, "machines", &document.Group{
		Title: "Hookgate Machine Hooks", Description: machinesDescription,
	})
}

// own returns the document g of one of Hookgate's own groups, whose schemas are those of the protos. name begins the
// names of the files with what only comments state.
func own(root string, c *contract, group, name string, g *document.Group) (*document.Document, error) {
	all, err := catalog.With(catalog.Own()...)
	if err != nil {
		return nil, err
	}
	g.Hooks = slices.DeleteFunc(slices.Clone(all.Hooks()), func(h *catalog.Hook) bool {
		return h.Group != group
	})
	if g.Requests, err = exampleRequests(filepath.Join(root, "examples", "requests"), g.Hooks); err != nil {
		return nil, err
	}
	if g.Answers, err = read[map[string]schema](name + "-answers.yaml"); err != nil {
		return nil, err
	}
	g.License, g.Comments = license, c.comments
	schemas, file := g.Schemas(), name+"-schemas.yaml"
	rules, err := read[map[string]schema](file)
	if err != nil {
		return nil, err
	}
	for _, name := range slices.Sorted(maps.Keys(rules)) {
		of, ok := schemas[name]
		if !ok {
			return nil, fmt.Errorf("%s: there is no schema %s", file, name)
		}
		if err := sharpen(of, rules[name]); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", file, name, err)
		}
	}
	return assemble(g, c, schemas)
}

// exampleRequests reads the examples of the command line: BeforeClusterCreate is in before-cluster-create.yaml.
func exampleRequests(dir string, hooks []*catalog.Hook) (map[string]schema, error) {
	requests := map[string]schema{}
	for _, h := range hooks {
		var name strings.Builder
		for i, letter := range h.Hook {
			if i > 0 && letter >= 'A' && letter <= 'Z' {
				name.WriteByte('-')
			}
			name.WriteRune(letter)
		}
		text, err := os.ReadFile(filepath.Join(dir, strings.ToLower(name.String())+".yaml"))
		if err != nil {
			return nil, err
		}
		var request schema
		if err := yaml.UnmarshalStrict(text, &request); err != nil {
			return nil, fmt.Errorf("%s.yaml: %w", strings.ToLower(name.String()), err)
		}
		requests[h.Hook] = request
	}
	return requests, nil
}

// sharpen adds rules to a schema. Members that it does not have are a mistake in the rules.
func sharpen(s, rules schema) error {
	members, _ := s["properties"].(schema)
	for key, rule := range rules {
		switch key {
		case "properties":
			for name, more := range rule.(schema) {
				member, ok := members[name].(schema)
				if !ok {
					return fmt.Errorf("it has no member %s", name)
				}
				if err := sharpen(member, more.(schema)); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
			}
		case "required":
			required, _ := s["required"].([]string)
			for _, name := range rule.([]any) {
				if _, ok := members[name.(string)]; !ok {
					return fmt.Errorf("it has no member %s", name)
				}
				required = append(required, name.(string))
			}
			slices.Sort(required)
			s["required"] = slices.Compact(required)
		default:
			s[key] = rule
		}
		if key == "type" {
			delete(s, "nullable") // it no longer is any JSON
		}
	}
	return nil
}

// assemble returns the document of a group, each hook of which must have its comments and examples.
func assemble(g *document.Group, c *contract, schemas map[string]schema) (*document.Document, error) {
	if err := c.commented(g.Hooks); err != nil {
		return nil, err
	}
	for _, h := range g.Hooks {
		for of, examples := range map[string]map[string]schema{"a request": g.Requests, "an answer": g.Answers} {
			if examples[h.Hook] == nil {
				return nil, fmt.Errorf("hook %s: there is no example of %s", h.Hook, of)
			}
		}
	}
	return g.Document(schemas), nil
}
