// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package localgateway

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/gateway"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/hookversion"
	"github.com/hookgate/hookgate/internal/kinds/allkinds"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/internal/kinds/extensionpolicy"
	"github.com/hookgate/hookgate/internal/kinds/handlerchain"
	"github.com/hookgate/hookgate/internal/kinds/hookjob"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
	"github.com/hookgate/hookgate/internal/kinds/rollout"
)

// mistake is a mistake of an object of a kind, as docs/mistakes.md has it.
type mistake struct {
	kind, what string
	manifest   string // {…} is the spec; a whole object begins with apiVersion
	// closed and open are calls: a hook, and a handler behind a slash.
	closed, open string
}

// beside is what there is besides the object: rules that answer, and an ExtensionConfig whose server is away.
const beside = `
apiVersion: hookgate.dev/v1alpha1
kind: HookRule
metadata: {name: gate}
spec: {hook: BeforeClusterCreate, hold: [{if: 'false', message: '"no"'}]}
---
apiVersion: hookgate.dev/v1alpha1
kind: HookRule
metadata: {name: upgrades}
spec: {hook: BeforeClusterUpgrade, hold: [{if: 'false', message: '"no"'}]}
---
apiVersion: hookgate.dev/v1alpha1
kind: HookRule
metadata: {name: after}
spec: {hook: AfterClusterUpgrade, hold: [{if: 'false', message: '"no"'}]}
---
apiVersion: hookgate.dev/v1alpha1
kind: HookRule
metadata: {name: inplace}
spec: {hook: CanUpdateMachine, allow: [{paths: [/machine/spec/version]}]}
`

// policyOf returns the manifest of a valid ExtensionPolicy.
func policyOf(target string) string {
	return "apiVersion: hookgate.dev/v1alpha1\nkind: ExtensionPolicy\nmetadata: {name: object}\n" +
		"spec: {targetRef: {name: " + target + "}, order: 1}\n"
}

// mistakes has at least one row for each kind that decides what calls get.
func mistakes() []mistake {
	return []mistake{
		{extensionconfig.Kind, "a wrong field", "{clientConfig: {url: 'http://plain'}}", "BeforeClusterCreate AfterClusterUpgrade BeforeClusterCreate/x.object", "BeforeClusterCreate/rule.gate"},
		{extensionconfig.Kind, "a wrong field, but a readable namespaceSelector", "{clientConfig: {url: 'http://plain'}, namespaceSelector: {matchLabels: {team: red}}}", "BeforeClusterCreate/x.object BeforeClusterCreate@red", "BeforeClusterCreate"},
		{extensionconfig.Kind, "a misspelt kind", "apiVersion: runtime.cluster.x-k8s.io/v1beta2\nkind: ExtensionConfg\nmetadata: {name: object}\nspec: {clientConfig: {url: 'https://x'}}", "BeforeClusterCreate", "BeforeClusterCreate/rule.gate"},

		{extensionpolicy.Kind, "a wrong field", "{targetRef: {name: gate}, order: first}", "BeforeClusterCreate BeforeClusterCreate/rule.gate", "BeforeClusterUpgrade AfterClusterUpgrade"},
		{extensionpolicy.Kind, "an unknown field", "{targetRef: {name: gate}, ordr: 1}", "BeforeClusterCreate", "BeforeClusterUpgrade"},
		{extensionpolicy.Kind, "an unknown hook", "{targetRef: {name: gate}, hooks: [BeforeClusterCreat]}", "BeforeClusterCreate", "BeforeClusterUpgrade"},
		{extensionpolicy.Kind, "a release that is not known", "{targetRef: {name: gate}, clusterAPIRelease: v1.99}", "BeforeClusterCreate", "BeforeClusterUpgrade"},
		{extensionpolicy.Kind, "a condition that does not compile", "{targetRef: {name: gate}, matchConditions: [{name: c, expression: '1 +'}]}", "BeforeClusterCreate", "BeforeClusterUpgrade"},
		{extensionpolicy.Kind, "a wrong field in a policy for one handler", "{targetRef: {name: gate, handler: rule}, timeoutSeconds: 5s}", "BeforeClusterCreate/rule.gate", "BeforeClusterUpgrade"},
		{extensionpolicy.Kind, "a target that cannot be read", "{targetRef: {nam: gate}, timeoutSeconds: 5}", "BeforeClusterCreate BeforeClusterUpgrade AfterClusterUpgrade", "BeforeClusterCreate/rule.gate"},
		{extensionpolicy.Kind, "the name of another one", policyOf("gate") + "---\n" + policyOf("upgrades"), "BeforeClusterUpgrade", "BeforeClusterCreate"},
		{extensionpolicy.Kind, "a copy of another one", policyOf("gate") + "---\n" + policyOf("gate"), "", "BeforeClusterCreate"},
		{extensionpolicy.Kind, "a misspelt group", "apiVersion: hookgate.io/v1alpha1\nkind: ExtensionPolicy\nmetadata: {name: object}\nspec: {targetRef: {name: gate}, order: 1}", "BeforeClusterCreate", "BeforeClusterUpgrade"},

		{handlerchain.Kind, "a wrong field", "{hook: CanUpdateMachine, steps: [{handler: rule.inplace}], onPartialCoverage: block}", "CanUpdateMachine CanUpdateMachine/object CanUpdateMachine/rule.inplace", "BeforeClusterCreate"},
		{handlerchain.Kind, "a misspelt field", "{hook: BeforeClusterCreate, stepz: [{handler: rule.gate}]}", "BeforeClusterCreate BeforeClusterCreate/rule.gate", "BeforeClusterUpgrade"},
		{handlerchain.Kind, "steps that cannot be read", "{hook: CanUpdateMachine, steps: 5}", "CanUpdateMachine CanUpdateMachine/rule.inplace CanUpdateMachine/object", "BeforeClusterCreate"},
		{handlerchain.Kind, "a hook that cannot be read", "{hok: CanUpdateMachine, steps: [{handler: rule.inplace}]}", "BeforeClusterCreate CanUpdateMachine/rule.inplace", "AfterClusterUpgrade"},

		{hookrule.Kind, "a wrong field", "{hook: BeforeClusterCreate, hold: [{if: 'nothing', message: '\"no\"'}]}", "BeforeClusterCreate BeforeClusterCreate/rule.object", "BeforeClusterUpgrade AfterClusterUpgrade BeforeClusterCreate/rule.gate"},
		{hookrule.Kind, "a wrong field, but a readable namespaceSelector", "{hook: BeforeClusterCreate, hol: [], namespaceSelector: {matchLabels: {team: red}}}", "BeforeClusterCreate@red", "BeforeClusterCreate"},
		{hookrule.Kind, "a namespaceSelector that cannot be read", "{hook: BeforeClusterCreate, namespaceSelector: {matchLabel: {team: red}}}", "BeforeClusterCreate BeforeClusterCreate@red", "BeforeClusterUpgrade"},
		{hookrule.Kind, "a hook that cannot be read", "{hook: Upgrade, hold: [{if: 'true', message: '\"no\"'}]}", "BeforeClusterCreate BeforeClusterUpgrade", "AfterClusterUpgrade"},
		{hookrule.Kind, "a name that is not valid", "apiVersion: hookgate.dev/v1alpha1\nkind: HookRule\nmetadata: {name: Not_Valid}\nspec: {hook: BeforeClusterCreate, hold: [{if: 'true', message: '\"no\"'}]}", "BeforeClusterCreate", "BeforeClusterUpgrade"},
		{hookrule.Kind, "no name", "apiVersion: hookgate.dev/v1alpha1\nkind: HookRule\nspec: {hook: BeforeClusterCreate, hold: [{if: 'true', message: '\"no\"'}]}", "BeforeClusterCreate", "BeforeClusterUpgrade"},
		{hookrule.Kind, "the name of another one", "apiVersion: hookgate.dev/v1alpha1\nkind: HookRule\nmetadata: {name: gate}\nspec: {hook: BeforeClusterUpgrade, hold: [{if: 'true', message: '\"no\"'}]}", "BeforeClusterUpgrade", "BeforeClusterCreate BeforeClusterCreate/rule.gate"},
		{hookrule.Kind, "a misspelt kind", "apiVersion: hookgate.dev/v1alpha1\nkind: hookrules\nmetadata: {name: object}\nspec: {hook: BeforeClusterCreate, hold: [{if: 'true', message: '\"no\"'}]}", "BeforeClusterCreate", "BeforeClusterUpgrade"},
		{hookrule.Kind, "a mistake, with action: Audit", "{hook: BeforeClusterCreate, action: Audit, hol: []}", "", "BeforeClusterCreate"},

		{hookjob.Kind, "a wrong field", "{hook: BeforeClusterCreate, jobb: {}}", "BeforeClusterCreate BeforeClusterCreate/job.object", "BeforeClusterUpgrade"},
		{hookjob.Kind, "a hook that cannot be read", "{hook: 5}", "BeforeClusterCreate BeforeClusterUpgrade", "AfterClusterUpgrade"},

		{rollout.Kind, "a wrong field", "{stable: away, candidate: other, onDifference: hold}", "BeforeClusterCreate/x.away BeforeClusterCreate/x.object BeforeClusterCreate/x.other", "AfterClusterUpgrade"},
		{rollout.Kind, "a misspelt field", "{stabel: away}", "BeforeClusterCreate/x.away BeforeClusterCreate/x.object", "AfterClusterUpgrade"},

		{"an unknown kind of hookgate.dev", "any", "apiVersion: hookgate.dev/v1alpha1\nkind: Frobnicator\nmetadata: {name: object}", "BeforeClusterCreate AfterClusterUpgrade", "BeforeClusterCreate/rule.gate"},
	}
}

// An object with a mistake closes what its readable fields name, and nothing else, in each row of the page.
func TestMistakes(t *testing.T) {
	page, err := os.ReadFile("../../../docs/mistakes.md")
	if err != nil {
		t.Fatal(err)
	}
	hooks := catalog.New()
	versions := hookversion.New(hooks)
	for _, m := range mistakes() {
		t.Run(m.kind+"/"+m.what, func(t *testing.T) {
			if !strings.Contains(string(page), "| "+m.kind+" | "+m.what+" |") {
				t.Errorf("docs/mistakes.md has no row %q, %q", m.kind, m.what)
			}
			dir := t.TempDir()
			manifest := m.manifest
			if strings.HasPrefix(manifest, "{") {
				group := v1alpha1.GroupVersion.String()
				if m.kind == extensionconfig.Kind {
					group = "runtime.cluster.x-k8s.io/v1beta2"
				}
				manifest = "apiVersion: " + group + "\nkind: " + m.kind + "\nmetadata: {name: object}\nspec: " + manifest
			}
			namespaces := "apiVersion: v1\nkind: Namespace\nmetadata: {name: plain}\n---\napiVersion: v1\nkind: Namespace\n" +
				"metadata: {name: red, labels: {team: red}}\n"
			for name, content := range map[string]string{"beside.yaml": beside, "n.yaml": namespaces, "object.yaml": manifest} {
				if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			g, err := Open(t.Context(), dir, hooks, versions, false, io.Discard)
			if err != nil {
				t.Fatal(err)
			}
			defer g.Close()
			for call := range strings.FieldsSeq(m.closed) {
				if err := g.ask(t, hooks, call); hook.KindOf(err) != hook.NotReady {
					t.Errorf("%s: got %v, want %s", call, err, hook.NotReady)
				} else if !strings.Contains(err.Error(), "mistake") {
					t.Errorf("%s: %v does not name the mistake", call, err)
				}
			}
			for call := range strings.FieldsSeq(m.open) {
				if err := g.ask(t, hooks, call); err != nil {
					t.Errorf("%s: %v", call, err)
				}
			}
		})
	}
}

// ask makes a call: a hook, perhaps a handler behind a slash, perhaps a namespace behind an @.
func (g *Gateway) ask(t *testing.T, hooks *catalog.Catalog, call string) error {
	t.Helper()
	call, namespace, _ := strings.Cut(call, "@")
	name, handler, _ := strings.Cut(call, "/")
	if namespace == "" {
		namespace = "plain"
	}
	cluster := &hooksv1alpha1.RawExtension{Raw: []byte(`{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"name":"c","namespace":"` + namespace + `"},"spec":{}}`)}
	machine := &hooksv1alpha1.RawExtension{Raw: []byte(`{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Machine","metadata":{"name":"m","namespace":"` + namespace + `"},"spec":{}}`)}
	objects := &hooksv1alpha1.CanUpdateMachineRequestObjects{Machine: machine, InfrastructureMachine: machine}
	message := map[string]proto.Message{
		"BeforeClusterCreate":  &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: cluster, Handler: handler},
		"BeforeClusterUpgrade": &hooksv1alpha1.BeforeClusterUpgradeRequest{Cluster: cluster, Handler: handler},
		"AfterClusterUpgrade":  &hooksv1alpha1.AfterClusterUpgradeRequest{Cluster: cluster, Handler: handler},
		"CanUpdateMachine":     &hooksv1alpha1.CanUpdateMachineRequest{Current: objects, Desired: objects, Handler: handler},
	}[name]
	h, ok := hooks.ByName(name)
	if !ok || message == nil {
		t.Fatalf("no call of %q", name)
	}
	_, err := g.Dispatch(t.Context(), gateway.Request{Hook: h, Message: message, Handler: handler})
	return err
}

// Every kind of hookgate.dev that users write is in the table of kinds, and has rows.
func TestEveryKindHasMistakes(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	for kind := range scheme.KnownTypes(v1alpha1.GroupVersion) {
		written := !strings.HasSuffix(kind, "List") && !strings.HasSuffix(kind, "Options") && kind != "WatchEvent" &&
			kind != "ExtensionRolloutRecord" && kind != "ClusterRecord" // which gateways write
		if written && !allkinds.Is(kind) {
			t.Errorf("%s is not in the table of kinds", kind)
		}
	}
	for _, k := range allkinds.Table() {
		if !slices.ContainsFunc(mistakes(), func(m mistake) bool { return m.kind == k.Name }) {
			t.Errorf("%s has no mistakes", k.Name)
		}
	}
}
