// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package document_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
	dnsv1alpha1 "github.com/hookgate/hookgate/examples/own-hooks/gen/acme/dns/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/contract/openapi/document"
)

// hooksOf returns the hooks of a group: of Cluster API, of infrastructure, or of the example that manages DNS.
func hooksOf(t *testing.T, group string) []*catalog.Hook {
	t.Helper()
	all, err := catalog.With(append(catalog.Infrastructure(), catalog.Source{
		Group: "dns.acme.example", Version: "v1alpha1",
		Files: []protoreflect.FileDescriptor{dnsv1alpha1.File_acme_dns_v1alpha1_dns_proto},
	})...)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(slices.Clone(all.Hooks()), func(h *catalog.Hook) bool { return h.Group != group })
}

// made returns the document of a group as JSON that was read again.
func made(t *testing.T, g *document.Group) map[string]any {
	t.Helper()
	text, err := g.Document(g.Schemas()).JSON()
	if err != nil {
		t.Fatal(err)
	}
	var d map[string]any
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// at returns what is at a path of members.
func at(t *testing.T, d map[string]any, path ...string) any {
	t.Helper()
	var value any = d
	for i, name := range path {
		members, _ := value.(map[string]any)
		var ok bool
		if value, ok = members[name]; !ok {
			t.Fatalf("there is no %s in %s", name, strings.Join(path[:i], " "))
		}
	}
	return value
}

// TestSchemas has every form of a member that package codec has.
func TestSchemas(t *testing.T) {
	dns := made(t, &document.Group{Title: "DNS", Hooks: hooksOf(t, "dns.acme.example")})
	infrastructure := made(t, &document.Group{Title: "infrastructure", Hooks: hooksOf(t, hook.InfrastructureGroup)})
	for name, c := range map[string]struct {
		document  map[string]any
		component string
		member    string
		want      any
	}{
		"string": {dns, "acme.dns.v1alpha1.EnsureRecordRequest", "name", map[string]any{"type": "string"}},
		"list of strings": {dns, "acme.dns.v1alpha1.EnsureRecordRequest", "addresses",
			map[string]any{"type": "array", "items": map[string]any{"type": "string"}}},
		"optional int32": {dns, "acme.dns.v1alpha1.EnsureRecordRequest", "ttlSeconds",
			map[string]any{"type": "integer", "format": "int32"}},
		"map": {dns, "acme.dns.v1alpha1.EnsureRecordRequest", "settings",
			map[string]any{"type": "object", "additionalProperties": map[string]any{"type": "string"}}},
		"Kubernetes object": {dns, "acme.dns.v1alpha1.EnsureRecordRequest", "cluster",
			map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
		"enum": {dns, "acme.dns.v1alpha1.EnsureRecordResponse", "state",
			map[string]any{"$ref": "#/components/schemas/acme.dns.v1alpha1.State"}},
		"enum of the project": {dns, "acme.dns.v1alpha1.EnsureRecordResponse", "status",
			map[string]any{"$ref": "#/components/schemas/hooks.v1alpha1.ResponseStatus"}},
		"list of messages": {dns, "acme.dns.v1alpha1.DiscoverDNSResponse", "handlers", map[string]any{"type": "array",
			"items": map[string]any{"$ref": "#/components/schemas/hooks.v1alpha1.ExtensionHandler"}}},
		"kind": {dns, "acme.dns.v1alpha1.EnsureRecordResponse", "kind", map[string]any{"type": "string",
			"enum": []any{"EnsureRecordResponse"}, "description": "kind is the name of this type."}},
		"apiVersion": {dns, "acme.dns.v1alpha1.EnsureRecordResponse", "apiVersion", map[string]any{"type": "string",
			"enum":        []any{"dns.acme.example/v1alpha1"},
			"description": "apiVersion is the group and version of the hook."}},
		"bool": {infrastructure, "infrastructure.v1alpha1.FailureDomain", "controlPlane",
			map[string]any{"type": "boolean"}},
		"bytes": {infrastructure, "infrastructure.v1alpha1.Bootstrap", "data",
			map[string]any{"type": "string", "format": "byte"}},
		"any JSON": {infrastructure, "infrastructure.v1alpha1.Subject", "parameters",
			map[string]any{"nullable": true, "x-kubernetes-preserve-unknown-fields": true}},
		"message": {infrastructure, "infrastructure.v1alpha1.ReconcileMachineRequest", "subject",
			map[string]any{"$ref": "#/components/schemas/infrastructure.v1alpha1.Subject"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := at(t, c.document, "components", "schemas", c.component, "properties", c.member)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("%s.%s (-want +got):\n%s", c.component, c.member, diff)
			}
		})
	}

	for component, want := range map[string]any{
		"acme.dns.v1alpha1.EnsureRecordRequest":  nil,
		"acme.dns.v1alpha1.EnsureRecordResponse": []any{"retryAfterSeconds", "status"},
		"hooks.v1alpha1.ExtensionHandler":        []any{"name", "requestHook"},
		"acme.dns.v1alpha1.RemoveRecordResponse": []any{"status"},
		"acme.dns.v1alpha1.DiscoverDNSRequest":   nil,
		"hooks.v1alpha1.GroupVersionHook":        []any{"apiVersion", "hook"},
		"acme.dns.v1alpha1.DiscoverDNSResponse":  []any{"status"},
		"acme.dns.v1alpha1.State":                nil,
		"hooks.v1alpha1.ResponseStatus":          nil,
		"acme.dns.v1alpha1.RemoveRecordRequest":  nil,
		"hooks.v1alpha1.FailurePolicy":           nil,
	} {
		schema := at(t, dns, "components", "schemas", component).(map[string]any)
		if diff := cmp.Diff(want, schema["required"]); diff != "" {
			t.Errorf("required members of %s (-want +got):\n%s", component, diff)
		}
	}
	if got := at(t, dns, "components", "schemas", "acme.dns.v1alpha1.State", "enum"); !cmp.Equal(got,
		[]any{"Pending", "Published"}) {
		t.Errorf("values of State: %v", got)
	}
	members, _ := at(t, dns, "components", "schemas", "acme.dns.v1alpha1.EnsureRecordRequest",
		"properties").(map[string]any)
	for _, name := range []string{"handler", "unknownMembers", "unknown_members"} {
		if _, ok := members[name]; ok {
			t.Errorf("EnsureRecordRequest has the member %s, which is none in JSON", name)
		}
	}
}

// TestOperations looks at who can be called, and how.
func TestOperations(t *testing.T) {
	dns := made(t, &document.Group{Title: "DNS", Hooks: hooksOf(t, "dns.acme.example")})
	paths := at(t, dns, "paths").(map[string]any)
	const prefix = "/dns.acme.example/v1alpha1/"
	for _, path := range []string{
		"discoverdns", "ensurerecord", "ensurerecord/{name}", "removerecord", "removerecord/{name}",
	} {
		if _, ok := paths[prefix+path]; !ok {
			t.Errorf("the document has no %s", prefix+path)
		}
	}
	if len(paths) != 5 { // DiscoverDNS has no handler
		t.Errorf("the document has %d paths, want 5", len(paths))
	}
	if got := at(t, dns, "info", "version"); got != "v1alpha1" {
		t.Errorf("version %v", got)
	}
	if first := at(t, dns, "tags").([]any)[0].(map[string]any)["name"]; first != "Discovery" {
		t.Errorf("the first tag is %v, want Discovery", first)
	}
	if _, ok := at(t, dns, "components", "parameters").(map[string]any)["extension"]; ok {
		t.Error("the document has the parameter of a discovery with a handler, and no such discovery")
	}
	infrastructure := made(t, &document.Group{Title: "infrastructure", Hooks: hooksOf(t, hook.InfrastructureGroup)})
	one := at(t, infrastructure, "paths", "/infrastructure.hookgate.dev/v1alpha1/discoverinfrastructure/{name}", "post")
	if got := at(t, one.(map[string]any), "parameters").([]any)[0]; !cmp.Equal(got,
		map[string]any{"$ref": "#/components/parameters/extension"}) {
		t.Errorf("DiscoverInfrastructure of one extension has the parameter %v", got)
	}
}

// TestCommentsAndExamples adds what descriptors lack.
func TestCommentsAndExamples(t *testing.T) {
	g := &document.Group{
		Title: "DNS", Description: "Records.", License: document.Schema{"name": "MIT"},
		Hooks: hooksOf(t, "dns.acme.example"),
		Comments: map[protoreflect.FullName]string{
			"acme.dns.v1alpha1.RecordHooksService":              "RecordHooksService manages records.",
			"acme.dns.v1alpha1.RecordHooksService.EnsureRecord": "EnsureRecord creates a record. It is repeated.",
			"acme.dns.v1alpha1.EnsureRecordResponse.state":      "state is the state of the record.",
			"acme.dns.v1alpha1.State":                           "State is a state.",
			"acme.dns.v1alpha1.STATE_PENDING":                   "\"Pending\": not yet.",
			"acme.dns.v1alpha1.STATE_UNSPECIFIED":               "Not set.",
		},
		Requests: map[string]document.Schema{"EnsureRecord": {"name": "a.example"}},
		Answers:  map[string]document.Schema{"EnsureRecord": {"status": "Success"}},
	}
	d := made(t, g)
	post := at(t, d, "paths", "/dns.acme.example/v1alpha1/ensurerecord", "post").(map[string]any)
	schemas := at(t, d, "components", "schemas").(map[string]any)
	for name, c := range map[string]struct{ got, want any }{
		"summary": {post["summary"], "EnsureRecord creates a record."},
		"description": {post["description"], "EnsureRecord creates a record. It is repeated.\n\n" +
			"At the gateway, exactly one handler may match; otherwise the call is refused with their names."},
		"request": {at(t, post, "requestBody", "content", "application/json", "example"), map[string]any{
			"apiVersion": "dns.acme.example/v1alpha1", "kind": "EnsureRecordRequest", "name": "a.example"}},
		"answer": {at(t, post, "responses", "200", "content", "application/json", "example"), map[string]any{
			"apiVersion": "dns.acme.example/v1alpha1", "kind": "EnsureRecordResponse", "status": "Success"}},
		"reference with a comment": {at(t, schemas, "acme.dns.v1alpha1.EnsureRecordResponse", "properties", "state"),
			map[string]any{"allOf": []any{map[string]any{"$ref": "#/components/schemas/acme.dns.v1alpha1.State"}},
				"description": "state is the state of the record."}},
		"enum": {at(t, schemas, "acme.dns.v1alpha1.State", "description"), "State is a state.\n- \"Pending\": not yet."},
		"tag": {at(t, d, "tags").([]any)[1], map[string]any{"name": "RecordHooks",
			"description": "RecordHooksService manages records."}},
		"license": {at(t, d, "info", "license"), map[string]any{"name": "MIT"}},
		"without a comment": {at(t, d, "paths", "/dns.acme.example/v1alpha1/removerecord", "post", "summary"),
			"Call RemoveRecord."},
	} {
		if diff := cmp.Diff(c.want, c.got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if _, ok := g.Requests["EnsureRecord"]["kind"]; ok {
		t.Error("the example of the caller was changed")
	}
}
