// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package manifest

import (
	"encoding/base64"
	"encoding/pem"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/kinds/extensionpolicy"
	"github.com/hookgate/hookgate/internal/sources/discovery/discoverytest"
	"github.com/hookgate/hookgate/registry"
)

// caPEM returns the certificate of a test server.
func caPEM(t *testing.T) []byte {
	t.Helper()
	server := httptest.NewTLSServer(nil)
	defer server.Close()
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
}

func decodeAll(t testing.TB, content string) (objects []*Object, problems []string) {
	t.Helper()
	docs, found := parse("configs/acme.yaml", []byte(content))
	words := newDecoder(t)
	for i := range docs {
		o, more := decode(&docs[i], words)
		if o != nil {
			objects = append(objects, o)
		}
		found = append(found, more...)
	}
	for _, p := range found {
		problems = append(problems, p.Error())
	}
	return objects, problems
}

func TestDecodeExtensionConfig(t *testing.T) {
	ca := caPEM(t)
	encoded := base64.StdEncoding.EncodeToString(ca)
	v1alpha1 := func(manifest string) string { return strings.Replace(manifest, "/v1beta2", "/v1alpha1", 1) }
	service := "apiVersion: runtime.cluster.x-k8s.io/v1beta2\nkind: ExtensionConfig\nmetadata: {name: acme}\n" +
		"spec:\n  clientConfig:\n    service:\n      name: hooks\n      namespace: acme-system\n"

	cases := map[string]struct {
		reason  string
		content string
		want    registry.Registration
		paused  bool
	}{
		"URL": {
			reason: "All members of the spec arrive; caBundle is base64.",
			content: config("acme", "https://acme.example.com:9443/prefix", "    caBundle: "+encoded,
				"  namespaceSelector:", "    matchLabels: {team: a}", "  settings: {day: 2024-01-01, quoted: \"1\"}"),
			want: registry.Registration{
				Name:         "acme",
				ClientConfig: registry.ClientConfig{URL: "https://acme.example.com:9443/prefix", CABundle: ca},
				Settings:     map[string]string{"day": "2024-01-01", "quoted": "1"},
			},
		},
		"URLv1alpha1": {
			reason:  "The older version means the same.",
			content: v1alpha1(config("acme", "https://acme.example.com", "    caBundle: "+encoded)),
			want: registry.Registration{
				Name: "acme", ClientConfig: registry.ClientConfig{URL: "https://acme.example.com", CABundle: ca},
			},
		},
		"OursV1alpha1": {
			reason: "The gateway's own group has the same schema and versions.",
			content: strings.Replace(v1alpha1(config("acme", "https://acme.example.com", "    caBundle: "+encoded)),
				"runtime.cluster.x-k8s.io", "runtime.hookgate.dev", 1),
			want: registry.Registration{
				Name: "acme", ClientConfig: registry.ClientConfig{URL: "https://acme.example.com", CABundle: ca},
			},
		},
		"Service": {
			reason:  "The port defaults to 443, and the host to the Service's.",
			content: service,
			want: registry.Registration{
				Name: "acme", ClientConfig: registry.ClientConfig{URL: "https://hooks.acme-system.svc:443", InCluster: true},
			},
		},
		"ServiceWithPathAndPort": {
			reason:  "Both are part of the URL.",
			content: service + "      path: /a b\n      port: 8443\n",
			want: registry.Registration{
				Name: "acme", ClientConfig: registry.ClientConfig{URL: "https://hooks.acme-system.svc:8443/a%20b", InCluster: true},
			},
		},
		"Servicev1alpha1": {
			reason:  "Pointers of the older version are members of the newer.",
			content: v1alpha1(service + "      path: /x\n"),
			want: registry.Registration{
				Name: "acme", ClientConfig: registry.ClientConfig{URL: "https://hooks.acme-system.svc:443/x", InCluster: true},
			},
		},
		"Paused": {
			reason:  "The annotation counts by being there.",
			content: strings.Replace(config("acme", "https://a.example.com"), "  name: acme", "  name: acme\n  annotations: {cluster.x-k8s.io/paused: \"\"}", 1),
			want:    registry.Registration{Name: "acme", ClientConfig: registry.ClientConfig{URL: "https://a.example.com"}},
			paused:  true,
		},
		"AsKubectlPrintsIt": {
			reason: "Members that the API server adds are known, and times need no quotes.",
			content: "apiVersion: runtime.cluster.x-k8s.io/v1beta2\nkind: ExtensionConfig\nmetadata:\n  name: acme\n  uid: x\n" +
				"  creationTimestamp: 2024-01-01T00:00:00Z\n  resourceVersion: \"12\"\n  generation: 2\n" +
				"  managedFields:\n  - {manager: kubectl, operation: Update, fieldsV1: {f:spec: {f:any: {}}}, time: \"2024-01-01T00:00:00Z\"}\n" +
				"spec:\n  clientConfig: {url: https://a.example.com}\n  namespaceSelector: {}\n",
			want: registry.Registration{Name: "acme", ClientConfig: registry.ClientConfig{URL: "https://a.example.com"}},
		},
	}
	for name, tc := range cases {
		tc.want.ClientConfig.Owner = "acme"
		t.Run(name, func(t *testing.T) {
			objects, problems := decodeAll(t, tc.content)
			if len(problems) > 0 || len(objects) != 1 || objects[0].Extension == nil {
				t.Fatalf("%s\ngot %d objects and %v", tc.reason, len(objects), problems)
			}
			got := objects[0].Extension.Registration
			if selector := got.NamespaceSelector; (selector != nil) != strings.Contains(tc.content, "matchLabels") {
				t.Errorf("namespace selector is %v", selector)
			} else if selector != nil && selector.String() != "team=a" {
				t.Errorf("namespace selector is %v, want team=a", selector)
			}
			got.NamespaceSelector = nil
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s\n-want +got\n%s", tc.reason, diff)
			}
			if objects[0].Extension.Paused != tc.paused {
				t.Errorf("paused is %t, want %t", objects[0].Extension.Paused, tc.paused)
			}
		})
	}
}

func TestDecodeExtensionConfigErrors(t *testing.T) {
	spec := func(lines string) string {
		return "apiVersion: runtime.cluster.x-k8s.io/v1beta2\nkind: ExtensionConfig\nmetadata:\n  name: acme\nspec:\n" + lines
	}
	service := func(lines string) string { return spec("  clientConfig:\n    service:\n" + lines) }
	at := func(line, text string) []string {
		return []string{"configs/acme.yaml:" + line + `: ExtensionConfig "acme": ` + text}
	}
	long := strings.Repeat("a", 64)
	cases := map[string]struct {
		content string
		want    []string
	}{
		"NotHTTPS":      {config("acme", "http://a.example.com"), at("7", `spec.clientConfig.url: Invalid value: "http://a.example.com": must begin with https://, not with "http"`)},
		"NoURL":         {config("acme", `"::"`), at("7", `spec.clientConfig.url: Invalid value: must begin with https://`)},
		"Password":      {config("acme", "https://u:secret@a.example.com"), at("7", `spec.clientConfig.url: Invalid value: "https://u:xxxxx@a.example.com": must not have a user`)},
		"Query":         {config("acme", "https://a.example.com?x=1"), at("7", `spec.clientConfig.url: Invalid value: "https://a.example.com?x=1": must not have a query`)},
		"Fragment":      {config("acme", `"https://a.example.com#x"`), at("7", `spec.clientConfig.url: Invalid value: "https://a.example.com#x": must not have a fragment`)},
		"Port":          {config("acme", "https://a.example.com:70000"), at("7", `spec.clientConfig.url: Invalid value: "https://a.example.com:70000": port 70000 is not between 1 and 65535`)},
		"LongURL":       {config("acme", "https://a.example.com/"+strings.Repeat("x", 512)), at("7", `spec.clientConfig.url: Too long: may not be more than 512 bytes`)},
		"Neither":       {spec("  settings: {}\n"), at("5", `spec.clientConfig: Required value: must have url or service`)},
		"EmptyService":  {spec("  clientConfig:\n    service: {}\n"), at("6", `spec.clientConfig: Required value: must have url or service`)},
		"Both":          {config("acme", "https://a.example.com", "    service: {name: a, namespace: b}"), at("6", `spec.clientConfig: Forbidden: must have url or service, not both`)},
		"NoServiceName": {service("      namespace: b\n"), at("7", `spec.clientConfig.service.name: Required value: must be the name of a Service`)},
		"ServiceName": {service("      name: 1a\n      namespace: b\n"),
			at("8", `spec.clientConfig.service.name: Invalid value: "1a": a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, and end with an alphanumeric character (e.g. 'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')`)},
		"NoNamespace":   {service("      name: b\n"), at("7", `spec.clientConfig.service.namespace: Required value: must be the namespace of the Service`)},
		"ServicePort":   {service("      name: b\n      namespace: b\n      port: 0\n"), at("10", `spec.clientConfig.service.port: Invalid value: 0: must be between 1 and 65535, inclusive`)},
		"ServicePath":   {service("      name: b\n      namespace: b\n      path: x\n"), at("10", `spec.clientConfig.service.path: Invalid value: "x": must begin with /`)},
		"CANotBase64":   {config("acme", "https://a.example.com", "    caBundle: '-----'"), at("8", `spec.clientConfig.caBundle: Invalid value: must be base64 of PEM`)},
		"CANotPEM":      {config("acme", "https://a.example.com", "    caBundle: aGVsbG8="), at("8", `spec.clientConfig.caBundle: Invalid value: must be base64 of at least one certificate in PEM`)},
		"CALong":        {config("acme", "https://a.example.com", "    caBundle: "+strings.Repeat("aGVs", 13000)), at("8", `spec.clientConfig.caBundle: Too long: may not be more than 51200 bytes`)},
		"Selector":      {config("acme", "https://a.example.com", "  namespaceSelector:", "    matchExpressions:", "    - key: a", "      operator: Near"), at("11", `spec.namespaceSelector.matchExpressions[0].operator: Invalid value: "Near": not a valid selector operator`)},
		"UnknownField":  {config("acme", "https://a.example.com", "    cabundle: x", "  setings: {}"), append(at("8", `unknown field "spec.clientConfig.cabundle": did you mean "caBundle"?`), at("9", `unknown field "spec.setings": did you mean "settings"?`)...)},
		"UnknownAtRoot": {config("acme", "https://a.example.com") + "Spec: {}\n", at("8", `unknown field "Spec": did you mean "spec"?`)},
		"DuplicateKey":  {config("acme", "https://a.example.com", "    url: https://b.example.com"), at("8", `mapping key "url" already defined at line 7`)},
		"SettingType":   {config("acme", "https://a.example.com", "  settings:", "    a: x", "    retries: 3"), at("10", `spec.settings[retries]: Invalid type: number, must be a string; put it in quotes`)},
		"PortType":      {service("      name: b\n      namespace: b\n      port: https\n"), at("10", `spec.clientConfig.service.port: Invalid type: string, must be a whole number`)},
		"SpecType":      {spec("  - a\n"), at("5", `spec: Invalid type: list, must be a mapping`)},
		"Version":       {strings.Replace(config("acme", "https://a.example.com"), "/v1beta2", "/v9", 1), at("1", `apiVersion: Unsupported value: "runtime.cluster.x-k8s.io/v9": supported values: "runtime.cluster.x-k8s.io/v1beta2", "runtime.cluster.x-k8s.io/v1alpha1"`)},
		"VersionOfOurs": {strings.Replace(config("acme", "https://a.example.com"), "runtime.cluster.x-k8s.io/v1beta2", "runtime.hookgate.dev/v9", 1), at("1", `apiVersion: Unsupported value: "runtime.hookgate.dev/v9": supported values: "runtime.hookgate.dev/v1beta2", "runtime.hookgate.dev/v1alpha1"`)},
		"Several":       {config("acme", "http://a.example.com", "    caBundle: aGVsbG8="), append(at("7", `spec.clientConfig.url: Invalid value: "http://a.example.com": must begin with https://, not with "http"`), at("8", `spec.clientConfig.caBundle: Invalid value: must be base64 of at least one certificate in PEM`)...)},
		"NoName":        {"apiVersion: runtime.cluster.x-k8s.io/v1beta2\nkind: ExtensionConfig\nspec: {clientConfig: {url: https://a.example.com}}\n", []string{`configs/acme.yaml:1: ExtensionConfig: metadata.name: Required value: must be a DNS-1123 label`}},
		"LongName":      {config(long, "https://a.example.com"), []string{`configs/acme.yaml:4: ExtensionConfig "` + long + `": metadata.name: Invalid value: "` + long + `": must have at most 63 characters, has 64`}},
		"DottedName":    {config("a.b", "https://a.example.com"), []string{`configs/acme.yaml:4: ExtensionConfig "a.b": metadata.name: Invalid value: "a.b": "a.b" must consist of lower case letters, digits and '-', and begin and end with a letter or digit`}},
		"HookJob": {"apiVersion: hookgate.dev/v1alpha1\nkind: HookJob\nmetadata: {name: j}\nspec: {hook: BeforeClusterCreate, jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: a, image: b}]}}}}}\n",
			[]string{`configs/acme.yaml:4: HookJob "j": spec: Forbidden: this gateway runs no Jobs: to run Jobs, it needs a cluster that it may write to, and --hook-jobs-namespace`}},
		"OtherKind":     {"apiVersion: v1\nkind: Service\nmetadata: {name: x}\n", []string{`configs/acme.yaml:1: Service "x": v1 is ignored here; only ExtensionConfig of runtime.cluster.x-k8s.io and runtime.hookgate.dev, ExtensionPolicy, HandlerChain, HookRule, ExtensionRollout, Namespace and CustomResourceDefinition are read`}},
		"KindMisspelt":  {"apiVersion: runtime.cluster.x-k8s.io/v1beta2\nkind: ExtensionConfg\nmetadata: {name: x}\n", []string{`configs/acme.yaml:2: ExtensionConfg "x": no such kind: ExtensionConfg of runtime.cluster.x-k8s.io/v1beta2: did you mean ExtensionConfig of runtime.cluster.x-k8s.io/v1beta2?`}},
		"KindOfOurs":    {"apiVersion: runtime.hookgate.dev/v1beta2\nkind: ExtensionConfg\nmetadata: {name: x}\n", []string{`configs/acme.yaml:2: ExtensionConfg "x": no such kind: ExtensionConfg of runtime.hookgate.dev/v1beta2: did you mean ExtensionConfig of runtime.hookgate.dev/v1beta2?`}},
		"GroupMisspelt": {"apiVersion: runtime.hookgat.dev/v1beta2\nkind: ExtensionConfig\nmetadata: {name: x}\n", []string{`configs/acme.yaml:2: ExtensionConfig "x": no such kind: ExtensionConfig of runtime.hookgat.dev/v1beta2: did you mean ExtensionConfig of runtime.hookgate.dev/v1beta2?`}},
		"RuleMessage": {"apiVersion: hookgate.dev/v1alpha1\nkind: HookRule\nmetadata: {name: r}\nspec:\n  hook: BeforeClusterUpgrade\n  hold:\n  - {if: 'true', message: 5}\n",
			[]string{`configs/acme.yaml:6: HookRule "r": spec.hold.message: Invalid type: number, must be a string; put it in quotes`}},
		"RuleParams": {"apiVersion: hookgate.dev/v1alpha1\nkind: HookRule\nmetadata: {name: r}\nspec:\n  hook: BeforeClusterUpgrade\n  params:\n  - {name: self, self: true}\n  hold:\n  - {if: 'params.self == null', message: '\"x\"'}\n",
			[]string{`configs/acme.yaml:6: HookRule "r": spec.params: Forbidden: the gateway reads params from a cluster, and takes no rules with params from a directory`}},
		"CAFromSecret": {strings.Replace(config("acme", "https://a.example.com"), "  name: acme", "  name: acme\n  annotations:\n    runtime.cluster.x-k8s.io/inject-ca-from-secret: a/b", 1),
			at("6", `annotation runtime.cluster.x-k8s.io/inject-ca-from-secret needs a cluster and is ignored here`)},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			_, problems := decodeAll(t, tc.content)
			if diff := cmp.Diff(tc.want, problems); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestDecodeStatus(t *testing.T) {
	handler := func(name string, more ...string) string {
		return strings.Join(append([]string{
			"  - name: " + name, "    requestHook: {apiVersion: hooks.runtime.cluster.x-k8s.io/v1alpha1, hook: BeforeClusterCreate}",
		}, more...), "\n")
	}
	status := func(lines ...string) string {
		return config("acme", "https://a.example.com", append([]string{"status:", "  handlers:"}, lines...)...)
	}
	two := discoverytest.Handlers("a", "b")
	two[0].Timeout, two[0].FailurePolicy = 3*time.Second, hook.Ignore
	cases := map[string]struct {
		reason  string
		content string
		want    []registry.Handler
		problem string
	}{
		"TwoHandlers": {
			reason:  "Defaults are the same as in discovery, and the order is by name.",
			content: status(handler("b.acme"), handler("a.acme", "    timeoutSeconds: 3", "    failurePolicy: Ignore")),
			want:    two,
		},
		"v1alpha1": {
			reason:  "The older version has pointers.",
			content: strings.Replace(status(handler("b.acme"), handler("a.acme", "    timeoutSeconds: 3", "    failurePolicy: Ignore")), "/v1beta2", "/v1alpha1", 1),
			want:    two,
		},
		"UnknownHook": {
			reason:  "A hook of a newer Cluster API costs only its own handler.",
			content: status(handler("a.acme"), "  - name: b.acme", "    requestHook: {apiVersion: hooks.runtime.cluster.x-k8s.io/v1alpha1, hook: New}"),
			want:    discoverytest.Handlers("a"),
			problem: `status.handlers: handler "b.acme" is left out: there is no hook hooks.runtime.cluster.x-k8s.io/v1alpha1/New that can have handlers`,
		},
		"OtherExtension": {
			reason:  "Registered names end with the name of the ExtensionConfig.",
			content: status(handler("a.other")),
			problem: `status.handlers[0].name: Invalid value: "a.other": must end with .acme`,
		},
		"Timeout": {
			reason:  "The rule is the same as in discovery.",
			content: status(handler("a.acme", "    timeoutSeconds: 31")),
			problem: "status.handlers[0].timeoutSeconds: Invalid value: 31: must be between 0 and 30",
		},
		"Policy": {
			reason:  "The rule is the same as in discovery.",
			content: status(handler("a.acme", "    failurePolicy: Maybe")),
			problem: `status.handlers[0].failurePolicy: Unsupported value: "Maybe": supported values: "Fail", "Ignore"`,
		},
		"Duplicate": {
			reason:  "The rule is the same as in discovery.",
			content: status(handler("a.acme"), handler("a.acme")),
			problem: `status.handlers[1].name: Duplicate value: "a.acme"`,
		},
		"UnknownField": {
			reason:  "The author did not write the status, so that the spec counts all the same.",
			content: status(handler("a.acme", "    novel: 1")),
			problem: `unknown field "status.handlers[0].novel"`,
		},
		"Type": {
			reason:  "As above.",
			content: config("acme", "https://a.example.com", "status: []"),
			problem: "status: Invalid type: list, must be a mapping",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			objects, problems := decodeAll(t, tc.content)
			if len(objects) != 1 || objects[0].Extension == nil {
				t.Fatalf("%s: the spec must count: %v", tc.reason, problems)
			}
			if diff := cmp.Diff(tc.want, objects[0].Extension.LastKnown); diff != "" {
				t.Errorf("%s\n-want +got\n%s", tc.reason, diff)
			}
			if got := strings.Join(problems, "\n"); tc.problem == "" && got != "" || !strings.HasSuffix(got, tc.problem) {
				t.Errorf("%s\ngot  %s\nwant %s", tc.reason, got, tc.problem)
			}
		})
	}
}

// TestDecodeHandlerNamesThatDifferOnlyInCase: such names collide in paths.
func TestDecodeHandlerNamesThatDifferOnlyInCase(t *testing.T) {
	requestHook := "    requestHook: {apiVersion: hooks.runtime.cluster.x-k8s.io/v1alpha1, hook: BeforeClusterCreate}"
	objects, problems := decodeAll(t, config("acme", "https://a.example.com",
		"status:", "  handlers:", "  - name: scan.acme", requestHook, "  - name: Scan.acme", requestHook))
	want := []string{`configs/acme.yaml:12: ExtensionConfig "acme": status.handlers[1].name: Invalid value: "Scan.acme": ` +
		`"Scan" must be in lower case: in paths, upper and lower case are the same`}
	if diff := cmp.Diff(want, problems); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if len(objects) != 1 || objects[0].Extension == nil || objects[0].Extension.LastKnown != nil {
		t.Errorf("the spec must count and the status not: %+v", objects)
	}
}

func TestDecodeNamespace(t *testing.T) {
	objects, problems := decodeAll(t, "apiVersion: v1\nkind: Namespace\nmetadata:\n  name: team-a\n  labels: {tier: gold, kubernetes.io/metadata.name: other}\n"+
		"spec: {finalizers: [kubernetes]}\nstatus: {phase: Active}\n---\n"+
		"apiVersion: v1\nkind: Namespace\nmetadata: {name: bad, labels: {a b: c}}\n---\n"+
		"apiVersion: v1\nkind: Namespace\nmetadata:\n  name: typo\n  label: {a: b}\n")
	if len(objects) != 3 || objects[1].Labels != nil || objects[2].Labels != nil {
		t.Fatalf("got %d objects: %v", len(objects), problems)
	}
	want := map[string]string{"tier": "gold", "kubernetes.io/metadata.name": "team-a"}
	if diff := cmp.Diff(want, objects[0].Labels); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if len(problems) != 2 || !strings.HasPrefix(problems[0], `configs/acme.yaml:11: Namespace "bad": metadata.labels: Invalid value: "a b":`) ||
		problems[1] != `configs/acme.yaml:17: Namespace "typo": unknown field "metadata.label": did you mean "labels"?` {
		t.Errorf("problems are %q", problems)
	}
}

// A manifest that was saved from a cluster has what was stated there.
func TestDecodeStatedVersions(t *testing.T) {
	manifest := func(versions string) string {
		return strings.Replace(config("acme", "https://a.example.com", "status:", "  handlers:", "  - name: a.acme",
			"    requestHook: {apiVersion: hooks.runtime.cluster.x-k8s.io/v1alpha1, hook: BeforeClusterCreate}"),
			"  name: acme", "  name: acme\n  annotations:\n    x: z\n    runtime.hookgate.dev/cluster-api-versions: '"+versions+"'", 1)
	}
	objects, problems := decodeAll(t, manifest(`{"a":"v1beta1"}`))
	if len(problems) > 0 || len(objects) != 1 || objects[0].Extension.LastKnown[0].ClusterAPIVersion != "v1beta1" {
		t.Errorf("got %+v, %v", objects, problems)
	}
	objects, problems = decodeAll(t, manifest(`{"a":`))
	if len(objects) != 1 || objects[0].Extension == nil || len(objects[0].Extension.LastKnown) != 1 {
		t.Errorf("the handlers must count without the annotation: %+v", objects)
	}
	if len(problems) != 1 || !strings.HasPrefix(problems[0], `configs/acme.yaml:7: ExtensionConfig "acme": metadata.annotations[runtime.hookgate.dev/cluster-api-versions]: Invalid value: `) {
		t.Errorf("problems are %q", problems)
	}
}

// TestDecodeWithNamespace holds that an object which belongs to no namespace is used in spite of one, as kubectl takes it.
func TestDecodeWithNamespace(t *testing.T) {
	objects, problems := decodeAll(t, strings.Replace(config("acme", "https://a.example.com"), "  name: acme", "  name: acme\n  namespace: team-a", 1)+
		"---\napiVersion: hookgate.dev/v1alpha1\nkind: ExtensionPolicy\nmetadata:\n  name: p\n  namespace: team-a\nspec: {targetRef: {name: acme}, timeoutSeconds: 3}\n")
	if len(objects) != 2 || objects[0].Extension == nil || objects[1].Compiled == nil {
		t.Fatalf("got %+v, %v", objects, problems)
	}
	if len(problems) != 2 ||
		problems[0] != `configs/acme.yaml:5: ExtensionConfig "acme": metadata.namespace: ExtensionConfig belongs to no namespace: use spec.namespaceSelector to choose the namespaces of Clusters` ||
		!strings.HasSuffix(problems[1], `ExtensionPolicy "p": metadata.namespace: ExtensionPolicy belongs to no namespace: use spec.objectSelector to choose Clusters`) {
		t.Errorf("problems are %q", problems)
	}
}

// A condition that suits no hook is said with its line, and its policy is used, so that its handlers are not called for
// what it was to leave out.
func TestMisspelledConditions(t *testing.T) {
	words, err := NewDecoder(catalog.New())
	if err != nil {
		t.Fatal(err)
	}
	manifests := manifestsOf(map[string]string{"p.yaml": "apiVersion: hookgate.dev/v1alpha1\nkind: ExtensionPolicy\nmetadata: {name: p}\n" +
		"spec:\n  targetRef: {name: acme}\n  matchConditions:\n  - name: a\n    expression: request.cluster.metadata.nmespace == 'a'\n"})
	inventory, problems := (&Inventory{}).Next(manifests, words)
	const want = `p.yaml:8: ExtensionPolicy "p": spec.matchConditions[0].expression: Invalid value: does not suit the requests of any hook; ` +
		"in a request of AfterClusterUpgrade: line 1, column 25: undefined field 'nmespace'"
	if len(problems) != 1 || !strings.HasSuffix(problems[0].Error(), want) || !problems[0].Warning {
		t.Errorf("got %v, want %s", problems, want)
	}
	if p := inventory.Of(extensionpolicy.Kind)["p"]; !p.Valid() || p.Compiled.(extensionpolicy.Policy).Compiled.Conditions == nil {
		t.Errorf("the policy is %+v", p)
	}
}
