// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	kubejson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/test/crd"
)

// object returns an object of a kind with that text below the root, in YAML.
func object(t testing.TB, kind, text string) map[string]any {
	t.Helper()
	content, err := yaml.YAMLToJSON([]byte(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	o := map[string]any{}
	if err := kubejson.UnmarshalCaseSensitivePreserveInts(content, &o); err != nil {
		t.Fatal(err)
	}
	o["apiVersion"], o["kind"], o["metadata"] = "infrastructure.hookgate.dev/v1alpha1", kind, map[string]any{"name": "o"}
	return o
}

func quoted(n int) string { return `"` + strings.Repeat("x", n) + `"` }

// members returns n members of an object in YAML's flow style.
func members(n int) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf("m%d: 1", i)
	}
	return strings.Join(list, ", ")
}

// elements returns n elements of a list, made from a format that takes their number.
func elements(n int, format string) string {
	list := make([]string, n)
	for i := range list {
		list[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(list, ", ")
}

const (
	exclusive = "only one of identityRef and credentialsRef can be set: both name credentials"
	condition = "{type: T%d, status: 'True', reason: R, message: '', lastTransitionTime: '2026-01-01T00:00:00Z'}"
	class     = "infrastructureClassName: acme"
	template  = "spec: {template: {spec: {%s}}}"
)

// Each rule and limit of the schemas: at it, and one beyond.
func TestRules(t *testing.T) {
	tests := []struct {
		reason string
		kind   string
		old    string // the object before, if it is updated
		object string
		want   string // a part of the error; empty if the object is valid
	}{
		{"two credentials", "HookgateCluster", "", "spec: {" + class + ", identityRef: {name: i}, credentialsRef: {name: s}}", exclusive},
		{"two credentials", "HookgateClusterTemplate", "", fmt.Sprintf(template, class+", identityRef: {name: i}, credentialsRef: {name: s}"), exclusive},
		{"an identity", "HookgateCluster", "", "spec: {" + class + ", identityRef: {name: i}}", ""},
		{"everybody", "HookgateClusterIdentity", "", "spec: {credentialsRef: {name: s}, allowedNamespaces: {selector: {}}}", ""},
		{"nobody", "HookgateClusterIdentity", "", "spec: {credentialsRef: {name: s}}", "spec.allowedNamespaces: Required value"},
		{"no Secret", "HookgateClusterIdentity", "", "spec: {allowedNamespaces: {names: [a]}}", "spec.credentialsRef: Required value"},
		{"another namespace", "HookgateClusterIdentity", "", "spec: {credentialsRef: {name: s, namespace: a}, allowedNamespaces: {names: [a]}}", "unknown field spec.credentialsRef.namespace"},
		{"the least class", "InfrastructureClass", "", "spec: {extensionRef: {name: acme}}", ""},
		{"a class has an extension", "InfrastructureClass", "", "spec: {}", "spec.extensionRef: Required value"},
		{"an object has a spec", "InfrastructureClass", "", "{}", "spec: Required value"},
		{"a full class", "InfrastructureClass", "", `{spec: {extensionRef: {name: acme}, handlers: {reconcileCluster: a, deleteCluster: b, reconcileMachine: c, deleteMachine: d, reconcileMachinePool: e, deleteMachinePool: f},
  allowedNamespaces: {names: [a, b], selector: {matchLabels: {a: b}}}, credentialsRef: {name: s, namespace: ns}, defaultParameters: {cluster: {a: 1}, machine: {b: {c: []}}, machinePool: {}}},
  status: {conditions: [` + elements(32, condition) + `], providerIDPrefix: "acme://", handlers: {reconcileCluster: a}, schemas: {cluster: {type: object}, machine: {}, machinePool: {}}}}`, ""},
		{"an ExtensionConfig is named as a label", "InfrastructureClass", "", "spec: {extensionRef: {name: a.b}}", "spec.extensionRef.name: Invalid value"},
		{"that is short", "InfrastructureClass", "", "spec: {extensionRef: {name: " + quoted(64) + "}}", "spec.extensionRef.name: Too long"},
		{"a handler's name is the one of discovery", "InfrastructureClass", "", "spec: {extensionRef: {name: a}, handlers: {deleteMachine: a.b}}", "leave out the name of the ExtensionConfig"},
		{"no handlers say nothing", "InfrastructureClass", "", "spec: {extensionRef: {name: a}, handlers: {}}", "spec.handlers"},
		{"no namespaces say nothing", "InfrastructureClass", "", "spec: {extensionRef: {name: a}, allowedNamespaces: {}}", "spec.allowedNamespaces"},
		{"nor does an empty list", "InfrastructureClass", "", "spec: {extensionRef: {name: a}, allowedNamespaces: {names: []}}", "spec.allowedNamespaces.names"},
		{"a namespace is named once", "InfrastructureClass", "", "spec: {extensionRef: {name: a}, allowedNamespaces: {names: [a, a]}}", "Duplicate value"},
		{"1,000 names", "InfrastructureClass", "", "spec: {extensionRef: {name: a}, allowedNamespaces: {names: [" + elements(1000, "n%d") + "]}}", ""},
		{"and not one more", "InfrastructureClass", "", "spec: {extensionRef: {name: a}, allowedNamespaces: {names: [" + elements(1001, "n%d") + "]}}", "Too many"},
		{"an empty selector is all namespaces", "InfrastructureClass", "", "spec: {extensionRef: {name: a}, allowedNamespaces: {selector: {}}, credentialsRef: {name: s, namespace: ns}}", ""},
		{"credentials are not for all by accident", "InfrastructureClass", "", "spec: {extensionRef: {name: a}, credentialsRef: {name: s, namespace: ns}}", "allowedNamespaces must be set if credentialsRef is set"},
		{"a class has no namespace", "InfrastructureClass", "", "spec: {extensionRef: {name: a}, allowedNamespaces: {selector: {}}, credentialsRef: {name: s}}", "credentialsRef.namespace must be set"},
		{"a Secret has a name", "InfrastructureClass", "", "spec: {extensionRef: {name: a}, allowedNamespaces: {selector: {}}, credentialsRef: {namespace: ns}}", "spec.credentialsRef.name: Required value"},
		{"parameters are an object", "InfrastructureClass", "", "spec: {extensionRef: {name: a}, defaultParameters: {cluster: [1]}}", "spec.defaultParameters.cluster: Invalid value"},
		{"a class can have another extension", "InfrastructureClass", "spec: {extensionRef: {name: a}}", "spec: {extensionRef: {name: b}}", ""},
		{"33 conditions", "InfrastructureClass", "", "{spec: {extensionRef: {name: a}}, status: {conditions: [" + elements(33, condition) + "]}}", "Too many"},
		{"a schema is an object", "InfrastructureClass", "", "{spec: {extensionRef: {name: a}}, status: {schemas: {cluster: true}}}", "status.schemas.cluster: Invalid value"},

		{"the least cluster", "HookgateCluster", "", "spec: {" + class + "}", ""},
		{"a full cluster", "HookgateCluster", "", `{spec: {` + class + `, parameters: {` + members(256) + `}, credentialsRef: {name: s}, externalID: c-1, controlPlaneEndpoint: {host: h, port: 65535}},
  status: {initialization: {provisioned: true}, failureDomains: [` + elements(100, "{name: d%d, controlPlane: true, attributes: {a: b}}") + `], outputs: {a: b}}}`, ""},
		{"257 parameters", "HookgateCluster", "", "spec: {" + class + ", parameters: {" + members(257) + "}}", "spec.parameters: Too many"},
		{"a cluster has a class", "HookgateCluster", "", "spec: {parameters: {}}", "spec.infrastructureClassName: Required value"},
		{"with a name", "HookgateCluster", "", `spec: {infrastructureClassName: ""}`, "spec.infrastructureClassName"},
		{"that is not longer than names are", "HookgateCluster", "", "spec: {infrastructureClassName: " + quoted(254) + "}", "spec.infrastructureClassName: Too long"},
		{"the class stays", "HookgateCluster", "spec: {" + class + "}", "spec: {infrastructureClassName: other}", "the infrastructure belongs to the extension that made it"},
		{"parameters are an object", "HookgateCluster", "", "spec: {" + class + ", parameters: text}", "spec.parameters: Invalid value"},
		{"also not a list", "HookgateCluster", "", "spec: {" + class + ", parameters: []}", "spec.parameters: Invalid value"},
		{"an external ID is minted", "HookgateCluster", "spec: {" + class + "}", "spec: {" + class + ", externalID: c-1}", ""},
		{"an external ID stays", "HookgateCluster", "spec: {" + class + ", externalID: c-1}", "spec: {" + class + ", externalID: c-2}", "externalID must not change"},
		{"an external ID is not removed", "HookgateCluster", "spec: {" + class + ", externalID: c-1}", "spec: {" + class + "}", "externalID must not change"},
		{"an external ID names anything", "HookgateCluster", "", "spec: {" + class + ", externalID: A_b}", "spec.externalID: Invalid value"},
		{"an external ID is a label", "HookgateCluster", "", "spec: {" + class + ", externalID: " + quoted(63) + "}", ""},
		{"and no longer", "HookgateCluster", "", "spec: {" + class + ", externalID: " + quoted(64) + "}", "spec.externalID: Too long"},
		{"a hosted control plane sets the endpoint", "HookgateCluster", "spec: {" + class + "}", "spec: {" + class + ", controlPlaneEndpoint: {host: h, port: 6443}}", ""},
		{"in two steps", "HookgateCluster", "", "spec: {" + class + ", controlPlaneEndpoint: {port: 6443}}", ""},
		{"and may change it", "HookgateCluster", "spec: {" + class + ", controlPlaneEndpoint: {host: h, port: 6443}}", "spec: {" + class + ", controlPlaneEndpoint: {host: i, port: 6443}}", ""},
		{"a port is one", "HookgateCluster", "", "spec: {" + class + ", controlPlaneEndpoint: {host: h, port: 65536}}", "spec.controlPlaneEndpoint.port: Invalid value"},
		{"101 failure domains", "HookgateCluster", "", "{spec: {" + class + "}, status: {failureDomains: [" + elements(101, "{name: d%d}") + "]}}", "Too many"},
		{"no failure domains", "HookgateCluster", "", "{spec: {" + class + "}, status: {failureDomains: []}}", "status.failureDomains"},
		{"a failure domain is there once", "HookgateCluster", "", "{spec: {" + class + "}, status: {failureDomains: [{name: a}, {name: a}]}}", "Duplicate value"},
		{"65 attributes", "HookgateCluster", "", "{spec: {" + class + "}, status: {failureDomains: [{name: a, attributes: {" + strings.ReplaceAll(members(65), ": 1", ": x") + "}}]}}", "Too many"},
		{"initialization says something", "HookgateCluster", "", "{spec: {" + class + "}, status: {initialization: {}}}", "status.initialization"},
		{"outputs are an object", "HookgateCluster", "", "{spec: {" + class + "}, status: {outputs: 1}}", "status.outputs: Invalid value"},
		{"a cluster has no failure reason", "HookgateCluster", "", "{spec: {" + class + "}, status: {failureReason: x}}", "unknown field status.failureReason"},

		{"the least machine", "HookgateMachine", "", "spec: {}", ""},
		{"a full machine", "HookgateMachine", "", `{spec: {parameters: {size: 1}, externalID: m-1, providerID: ` + quoted(512) + `}, status: {initialization: {provisioned: true}, failureDomain: a, addresses: [` + elements(256, "{type: InternalIP, address: 10.0.0.%d}") + `]}}`, ""},
		{"257 addresses", "HookgateMachine", "", "{spec: {}, status: {addresses: [" + elements(257, "{type: InternalIP, address: a%d}") + "]}}", "Too many"},
		{"a kind of address", "HookgateMachine", "", "{spec: {}, status: {addresses: [{type: Phone, address: '1'}]}}", "status.addresses[0].type: Unsupported value"},
		{"a long provider ID", "HookgateMachine", "", "spec: {providerID: " + quoted(513) + "}", "spec.providerID: Too long"},
		{"a provider ID is written", "HookgateMachine", "spec: {externalID: m-1}", "spec: {externalID: m-1, providerID: acme://1}", ""},
		{"once", "HookgateMachine", "spec: {providerID: acme://1}", "spec: {providerID: acme://2}", "providerID must not change"},
		{"and stays", "HookgateMachine", "spec: {providerID: acme://1}", "spec: {}", "providerID must not change"},
		{"an external ID stays", "HookgateMachine", "spec: {externalID: m-1}", "spec: {externalID: m-2}", "externalID must not change"},
		{"an external ID is not removed", "HookgateMachine", "spec: {externalID: m-1}", "spec: {}", "externalID must not change"},
		{"parameters change with an update extension", "HookgateMachine", "spec: {parameters: {a: 1}}", "spec: {parameters: {a: 2}}", ""},
		{"the failure domain is the Machine's", "HookgateMachine", "", "spec: {failureDomain: a}", "unknown field spec.failureDomain"},
		{"the class is the cluster's", "HookgateMachine", "", "spec: {" + class + "}", "unknown field spec.infrastructureClassName"},

		{"the least pool", "HookgateMachinePool", "", "spec: {}", ""},
		{"a full pool", "HookgateMachinePool", "", `{spec: {parameters: {size: 1}, instanceManagement: Group, externalID: p-1, providerID: "acme://p", providerIDList: [` + elements(10000, "acme://%d") + `]},
  status: {ready: true, replicas: 0, initialization: {provisioned: true}, infrastructureMachineKind: HookgateMachine, instances: [` + elements(1000, "{instanceName: i%d, ready: false, addresses: [{type: InternalDNS, address: a}]}") + `]}}`, ""},
		{"10,001 provider IDs", "HookgateMachinePool", "", "spec: {providerIDList: [" + elements(10001, "acme://%d") + "]}", "Too many"},
		{"a provider ID is not empty", "HookgateMachinePool", "", `spec: {providerIDList: [""]}`, "spec.providerIDList[0]"},
		{"a long provider ID", "HookgateMachinePool", "", "spec: {providerIDList: [" + quoted(513) + "]}", "spec.providerIDList[0]: Too long"},
		{"1,001 instances", "HookgateMachinePool", "", "{spec: {}, status: {instances: [" + elements(1001, "{instanceName: i%d}") + "]}}", "Too many"},
		{"an instance is there once", "HookgateMachinePool", "", "{spec: {}, status: {instances: [{instanceName: a}, {instanceName: a}]}}", "Duplicate value"},
		{"17 addresses of an instance", "HookgateMachinePool", "", "{spec: {}, status: {instances: [{instanceName: a, addresses: [" + elements(17, "{type: InternalIP, address: a%d}") + "]}]}}", "Too many"},
		{"instances are not fewer than none", "HookgateMachinePool", "", "{spec: {}, status: {replicas: -1}}", "status.replicas: Invalid value"},
		{"there are two ways", "HookgateMachinePool", "", "spec: {instanceManagement: Both}", "spec.instanceManagement: Unsupported value"},
		{"a pool stays one of machines", "HookgateMachinePool", "spec: {}", "spec: {instanceManagement: Group}", "instanceManagement must not change"},
		{"a pool stays a group", "HookgateMachinePool", "spec: {instanceManagement: Group}", "spec: {}", "instanceManagement must not change"},
		{"machines are meant if nothing is set", "HookgateMachinePool", "spec: {}", "spec: {instanceManagement: Machines}", ""},
		{"an external ID stays", "HookgateMachinePool", "spec: {externalID: p-1}", "spec: {externalID: p-2}", "externalID must not change"},
		{"a provider ID stays", "HookgateMachinePool", "spec: {providerID: p-1}", "spec: {}", "providerID must not change"},
		{"the list changes", "HookgateMachinePool", "spec: {providerIDList: [a, b]}", "spec: {providerIDList: [b]}", ""},
		{"a failure would make Cluster API panic", "HookgateMachinePool", "", "{spec: {}, status: {failureMessage: x}}", "unknown field status.failureMessage"},

		{"a template of clusters", "HookgateClusterTemplate", "", fmt.Sprintf(template, class+", parameters: {a: 1}, credentialsRef: {name: s}"), ""},
		{"has a class", "HookgateClusterTemplate", "", fmt.Sprintf(template, ""), "spec.template.spec.infrastructureClassName: Required value"},
		{"and no external ID", "HookgateClusterTemplate", "", fmt.Sprintf(template, class+", externalID: a"), "unknown field spec.template.spec.externalID"},
		{"nor an endpoint", "HookgateClusterTemplate", "", fmt.Sprintf(template, class+", controlPlaneEndpoint: {host: a}"), "unknown field spec.template.spec.controlPlaneEndpoint"},
		{"its Secret is where its clusters are", "HookgateClusterTemplate", "", fmt.Sprintf(template, class+", credentialsRef: {name: s, namespace: ns}"), "credentialsRef.namespace must be left out"},
		{"a template of machines", "HookgateMachineTemplate", "", "{spec: {template: {metadata: {labels: {a: b}}, spec: {}}}, status: {capacity: {cpu: 2, memory: 4Gi, nvidia.com/gpu: 1}, nodeInfo: {architecture: arm64, operatingSystem: linux}}}", ""},
		{"a template makes a spec", "HookgateMachineTemplate", "", "spec: {template: {}}", "spec.template.spec: Required value"},
		{"and has a template", "HookgateMachineTemplate", "", "spec: {}", "spec.template: Required value"},
		{"and no provider ID", "HookgateMachineTemplate", "", fmt.Sprintf(template, "providerID: a"), "unknown field spec.template.spec.providerID"},
		{"an architecture of Kubernetes", "HookgateMachineTemplate", "", "{" + fmt.Sprintf(template, "") + ", status: {nodeInfo: {architecture: x86}}}", "status.nodeInfo.architecture: Unsupported value"},
		{"64 resources", "HookgateMachineTemplate", "", "{" + fmt.Sprintf(template, "") + ", status: {capacity: {" + members(64) + "}}}", ""},
		{"65 resources", "HookgateMachineTemplate", "", "{" + fmt.Sprintf(template, "") + ", status: {capacity: {" + members(65) + "}}}", "must have at most 64 resources"},
		{"a template of pools", "HookgateMachinePoolTemplate", "", fmt.Sprintf(template, "parameters: {a: 1}, instanceManagement: Machines"), ""},
		{"has no list", "HookgateMachinePoolTemplate", "", fmt.Sprintf(template, "providerIDList: [a]"), "unknown field spec.template.spec.providerIDList"},
		{"a template's spec is left to the webhook, which knows dry runs", "HookgateMachineTemplate", fmt.Sprintf(template, "parameters: {a: 1}"), fmt.Sprintf(template, "parameters: {a: 2}"), ""},
	}
	definitionOf := map[string]*crd.Definition{}
	for kind, d := range definitions(t) {
		definitionOf[kind] = crd.Compile(t, d)
	}
	for _, test := range tests {
		t.Run(test.kind+" "+test.reason, func(t *testing.T) {
			d := definitionOf[test.kind]
			var old map[string]any
			if test.old != "" {
				old = object(t, test.kind, test.old)
				if got := d.Problems(t, old, nil); len(got) > 0 {
					t.Fatalf("the object before: %s", got)
				}
			}
			got := strings.Join(d.Problems(t, object(t, test.kind, test.object), old), "\n")
			if test.want == "" && got != "" || !strings.Contains(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// The Go types and the schemas have the same fields: what is written from Go is known, and comes back as it was.
func TestGoTypesMatchTheSchemas(t *testing.T) {
	all := definitions(t)
	for kind, full := range fullObjects() {
		d := crd.Compile(t, all[kind])
		content, err := json.Marshal(full)
		if err != nil {
			t.Fatal(err)
		}
		o := object(t, kind, string(content))
		if got := strings.Join(d.Problems(t, o, nil), "\n"); got != "" && !strings.HasSuffix(got, exclusive) {
			t.Errorf("%s: %s", kind, got)
		}
		schema := all[kind].Spec.Versions[0].Schema.OpenAPIV3Schema
		for _, part := range []string{"spec", "status"} {
			fields, _ := o[part].(map[string]any)
			for name := range schema.Properties[part].Properties {
				if _, ok := fields[name]; !ok {
					t.Errorf("%s.%s.%s is not in the Go type, or not in the test's object", kind, part, name)
				}
			}
		}
	}
}
