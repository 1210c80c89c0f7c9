// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// outcome is what a run of the program did.
type outcome struct {
	code        int
	out, errOut string
}

func render(t *testing.T, args ...string) outcome {
	t.Helper()
	var out, errOut bytes.Buffer
	code := run(t.Context(), args, strings.NewReader(""), &out, &errOut, func(string) (string, bool) { return "", false })
	return outcome{code, out.String(), errOut.String()}
}

// flags are those of all renders of the Cluster in testdata.
func (x *extension) flags(more ...string) []string {
	return append([]string{"-f", "testdata/class.yaml", "-f", "testdata/cluster.yaml", "-f", "testdata/extensionconfig.yaml",
		"--server", x.URL, "--ca", x.caFile}, more...)
}

// objects renders, and returns the objects by kind and name.
func objects(t *testing.T, args ...string) map[string]map[string]any {
	t.Helper()
	got := render(t, append(args, "-o", "json")...)
	if got.code != cmdline.ExitDone {
		t.Fatalf("exit status %d: %s", got.code, got.errOut)
	}
	var list struct{ Items []map[string]any }
	if err := json.Unmarshal([]byte(got.out), &list); err != nil {
		t.Fatal(err)
	}
	all := map[string]map[string]any{}
	for _, o := range list.Items {
		metadata, _ := o["metadata"].(map[string]any)
		all[fmt.Sprint(o["kind"], " ", metadata["name"])] = o
	}
	return all
}

// at returns a value of an object, as JSON.
func at(o map[string]any, path string) string {
	var v any = o
	for name := range strings.SplitSeq(path, ".") {
		m, _ := v.(map[string]any)
		v = m[name]
	}
	body, _ := json.Marshal(v)
	return string(body)
}

// A render has the patches of extensions and of the class, one after the other, and the settings of both. It asks for
// each patch once, and calls no lifecycle hook.
func TestPatchesOfExtensionsAreRendered(t *testing.T) {
	x := startExtension(t, "v1")
	all := objects(t, x.flags()...)
	for _, want := range []struct{ object, path, value string }{
		{"KubeadmConfigTemplate c-md-xxxxx", "spec.template.spec.preKubeadmCommands", `["first","v1","here"]`},
		{"KubeadmConfig c-mp-xxxxx", "spec.preKubeadmCommands", `["first"]`},
		{"KubeadmControlPlane c-xxxxx", "spec.kubeadmConfigSpec.files", `[{"content":"north","path":"/etc/acme"}]`},
		{"KubeadmControlPlane c-xxxxx", "spec.machineTemplate.spec.infrastructureRef.name", `"c-xxxxx"`},
		{"MachineDeployment c-md-xxxxx", "spec.template.spec.bootstrap.configRef.name", `"c-md-xxxxx"`},
		{"Cluster c", "spec.topology.variables", `[{"name":"size","value":7},{"name":"zone","value":"here"}]`},
	} {
		if got := at(all[want.object], want.path); got != want.value {
			t.Errorf("%s: %s is %s, want %s", want.object, want.path, got, want.value)
		}
	}
	if want := "map[DiscoverVariables:1 GeneratePatches:2]"; x.requests() != want {
		t.Errorf("the extension was asked %s, want %s", x.requests(), want)
	}
	if again := objects(t, x.flags()...); cmp.Diff(all, again) != "" {
		t.Errorf("a second render (-first +second):\n%s", cmp.Diff(all, again))
	}
}

// The example renders by itself, and its patch is seen.
func TestExampleIsRendered(t *testing.T) {
	got := render(t, "--file", "../../examples/render", "-o", "table")
	if !regexp.MustCompile(`MachineDeployment/md/bootstrap +KubeadmConfigTemplate +prod-1-md-xxxxx +patch zone`).MatchString(got.out) {
		t.Errorf("got %v", got)
	}
}

// The table says which patches have changed an object, in their order.
func TestTableNamesThePatches(t *testing.T) {
	got := render(t, startExtension(t, "v1").flags("-o", "table")...)
	for _, want := range []string{
		"MachineDeployment/md/bootstrap        KubeadmConfigTemplate   c-md-xxxxx   commands.acme, patch zone\n",
		"ControlPlane                          KubeadmControlPlane     c-xxxxx      files.acme\n",
		"InfrastructureCluster                 DevCluster              c-xxxxx      -\n",
	} {
		if !strings.Contains(got.out, want) {
			t.Errorf("it lacks %q:\n%s%s", want, got.out, got.errOut)
		}
	}
}

// compared renders and compares.
func compared(t *testing.T, status int, args ...string) result {
	t.Helper()
	got := render(t, append(args, "-o", "json")...)
	if got.code != status {
		t.Fatalf("exit status %d, want %d: %s%s", got.code, status, got.out, got.errOut)
	}
	var r result
	if err := json.Unmarshal([]byte(got.out), &r); err != nil {
		t.Fatal(err)
	}
	return r
}

// lines returns a result as lines for comparison.
func (r *result) lines() (lines []string) {
	for _, d := range r.Differences {
		lines = append(lines, fmt.Sprintf("%s%s: %s -> %s by %v", d.Object, d.Path, compact(d.Was), compact(d.Now), d.ChangedBy))
	}
	for _, e := range r.Machines {
		lines = append(lines, fmt.Sprintf("%s: %s %d %q", e.Object, e.Effect, e.Machines, e.Why))
	}
	return lines
}

func compact(v json.RawMessage) string {
	var b bytes.Buffer
	if len(v) == 0 || json.Compact(&b, v) != nil {
		return "none"
	}
	return b.String()
}

// A comparison names each value that differs, who has set it, and what it does to Machines.
func TestComparisons(t *testing.T) {
	v1, v2 := startExtension(t, "v1"), startExtension(t, "v2")
	both := filepath.Join(t.TempDir(), "ca.crt")
	one, err := os.ReadFile(v1.caFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(both, one, 0o600); err != nil { // httptest has one certificate
		t.Fatal(err)
	}
	unchanged := []string{
		`ControlPlane: Unchanged 3 []`, `MachineDeployment/md: Unchanged 5 []`, `MachinePool/mp: Unchanged 2 []`,
	}
	for name, tc := range map[string]struct {
		flags  []string
		status int
		want   []string
	}{
		"SameExtension": {[]string{"--diff", "render"}, cmdline.ExitDone, unchanged},
		"OtherExtension": {[]string{"--against-server", v2.URL}, exitDifferent, []string{
			`MachineDeployment/md/bootstrap/spec/template/spec/preKubeadmCommands: ["first","v2","here"] -> ["first","v1","here"] by [commands.acme patch zone]`,
			`ControlPlane: Unchanged 3 []`,
			`MachineDeployment/md: Replaced 5 ["KubeadmConfig is not up-to-date" "can-update.acme cannot change the bootstrap template in place"]`,
			`MachinePool/mp: Unchanged 2 []`,
		}},
		"Variable": {[]string{"--diff", "render", "--set", "variables.zone=there"}, exitDifferent, []string{
			`MachineDeployment/md/bootstrap/spec/template/spec/preKubeadmCommands: ["first","v1","here"] -> ["first","v1","there"] by [commands.acme patch zone]`,
			`ControlPlane: Unchanged 3 []`,
			`MachineDeployment/md: Replaced 5 ["KubeadmConfig is not up-to-date" "can-update.acme cannot change the bootstrap template in place"]`,
			`MachinePool/mp: Unchanged 2 []`,
		}},
		"Version": {[]string{"--diff", "render", "--set", "version=v1.36.0"}, exitDifferent, []string{
			`ControlPlane/spec/version: "v1.35.5" -> "v1.36.0" by []`,
			`MachineDeployment/md/spec/template/spec/version: "v1.35.5" -> "v1.36.0" by []`,
			`MachinePool/mp/spec/template/spec/version: "v1.35.5" -> "v1.36.0" by []`,
			`ControlPlane: Replaced 3 ["Version v1.35.5, v1.36.0 required" "KubeadmConfig is not up-to-date" "can-update-machine.acme cannot change the Machine in place"]`,
			`MachineDeployment/md: Replaced 5 ["Version v1.35.5, v1.36.0 required" "can-update.acme cannot change the MachineSet in place"]`,
			`MachinePool/mp: DecidedByProvider 2 ["MachinePool changes"]`,
		}},
		"OtherCluster": {[]string{"--against-file", "testdata/other.yaml"}, exitDifferent, []string{
			`MachineDeployment/md/spec/replicas: 2 -> 5 by []`,
			`MachineDeployment/md/spec/template/metadata/labels/team: "red" -> none by []`,
			`MachineDeployment/md/metadata/labels/team: "red" -> none by []`,
			`MachinePool/mp/infrastructure: none -> "new" by []`, `MachinePool/mp/bootstrap: none -> "new" by []`,
			`MachinePool/mp: none -> "new" by []`,
			`ControlPlane: Unchanged 3 []`, `MachineDeployment/md: Scaled 2 ["from 2 to 5"]`, `MachinePool/mp: Created 2 []`,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			r := compared(t, tc.status, v1.flags(append(tc.flags, "--ca", both)...)...)
			for i := range r.Differences {
				if r.Differences[i].Path == "" {
					r.Differences[i].Now = json.RawMessage(`"new"`)
				}
			}
			got := r.lines()
			slices.Sort(got)
			want := append([]string{}, tc.want...)
			slices.Sort(want)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Control planes of v1beta1 are compared as those of v1beta2.
func TestOldControlPlanes(t *testing.T) {
	r := compared(t, exitDifferent, "-f", "testdata/v1beta1.yaml", "--set", "variables.mode=ignition", "--diff", "render")
	want := []string{
		`ControlPlane/spec/kubeadmConfigSpec/format: "cloud-config" -> "ignition" by [patch mode]`,
		`ControlPlane: Replaced 3 ["KubeadmConfig is not up-to-date"]`,
	}
	if diff := cmp.Diff(want, r.lines()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A handler of CanUpdateMachineSet that covers the changes keeps Machines from being replaced.
func TestInPlace(t *testing.T) {
	v1, v2 := startExtension(t, "v1"), startExtension(t, "v2")
	v1.covers = true
	r := compared(t, exitDifferent, v1.flags("--against-server", v2.URL)...)
	want := `MachineDeployment/md: UpdatedInPlace 5 ["KubeadmConfig is not up-to-date" "can-update.acme can change them in place"]`
	if lines := strings.Join(r.lines(), "\n"); !strings.Contains(lines, want) {
		t.Errorf("it lacks %s:\n%s", want, lines)
	}
	if got := at(v1.last["can-update"], "settings.region"); got != `"north"` {
		t.Errorf("the handler got the region %s of its ExtensionConfig", got)
	}
	current, _ := v1.last["can-update"]["current"].(map[string]any)
	if got := at(current, "bootstrapConfigTemplate.spec.template.spec.preKubeadmCommands"); got != `["first","v2","here"]` {
		t.Errorf("the current template has %s", got)
	}
}

// A directory of ExtensionConfigs and HookRules answers as a gateway with it would.
func TestRulesAreRendered(t *testing.T) {
	x := startExtension(t, "v1")
	dir := t.TempDir()
	config := strings.Replace(read(t, "testdata/extensionconfig.yaml"), "https://acme.example", x.URL, 1)
	config += "  settings: {region: south}\n"
	config = strings.Replace(config, "  settings: {region: north, path: /not/used}\n", "", 1)
	config = strings.Replace(config, "clientConfig: {", "clientConfig: {caBundle: "+base64Of(t, x.caFile)+", ", 1)
	write(t, filepath.Join(dir, "acme.yaml"), config)
	write(t, filepath.Join(dir, "rule.yaml"), read(t, "testdata/rule.yaml"))
	class := strings.Replace(read(t, "testdata/class.yaml"), "files.acme", "rule.labels", 1)
	write(t, filepath.Join(dir, "class"), class)
	all := objects(t, "-f", filepath.Join(dir, "class"), "-f", "testdata/cluster.yaml", "--extension-configs", dir)
	for _, want := range []struct{ object, path, value string }{
		{"KubeadmConfigTemplate c-md-xxxxx", "spec.template.spec.preKubeadmCommands", `["first","v1","here"]`},
		{"KubeadmControlPlane c-xxxxx", "spec.kubeadmConfigSpec.verbosity", `7`},
	} {
		if got := at(all[want.object], want.path); got != want.value {
			t.Errorf("%s: %s is %s, want %s", want.object, want.path, got, want.value)
		}
	}
}

// What is wrong is said, with what to do, and with the exit status that other commands have. It is 2 with --diff.
func TestFailures(t *testing.T) {
	x := startExtension(t, "v1")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "class"), strings.Replace(read(t, "testdata/class.yaml"), "files.acme", "other.acme", 1))
	for name, tc := range map[string]struct {
		args  []string
		want  string
		usage bool
	}{
		"Nothing":     {nil, "say what to render: -f FILE, or cluster/NAME of a management cluster", true},
		"Two":         {[]string{"cluster/c", "cluster/d"}, "want one cluster/NAME at most, got 2 names", true},
		"UnknownFlag": {[]string{"--fil", "x"}, "unknown flag: --fil", true},
		"NoFile":      {[]string{"-f", "testdata/absent.yaml", "--diff", "render"}, "testdata/absent.yaml", false},
		"NoServer":    {[]string{"-f", "testdata/class.yaml", "-f", "testdata/cluster.yaml"}, "no server: give --server URL, or --extension-configs DIR", false},
		"NoClass":     {[]string{"-f", "testdata/cluster.yaml"}, `read ClusterClass "default/acme"`, false},
		"NoCluster": {[]string{"-f", "testdata/class.yaml"},
			"which Cluster? Add cluster/NAME to the command (the files have 0 Clusters with a topology)", true},
		"NoTemplate":      {x.flags("--set", "class=acme", "-n", "other", "cluster/d"), `read Cluster "other/d"`, false},
		"UnknownHandler":  {append([]string{"-f", filepath.Join(dir, "class")}, x.flags()[2:]...), `handler "other.acme": the server does not have this handler; it has commands, files`, false},
		"InvalidVariable": {x.flags("--set", "variables.zone=nowhere"), `Cluster.cluster.x-k8s.io "c" is invalid: spec.topology.variables[zone].value: Unsupported value: "\"nowhere\"": supported values: "here", "there"`, false},
		"UnknownSet":      {x.flags("--set", "replicas=3"), `--set "replicas=3": want version, class or variables.NAME`, true},
		"LiveWithoutAny":  {x.flags("--diff", "live"), "--diff live needs a cluster", true},
		"Unreachable":     {[]string{"-f", "testdata/class.yaml", "-f", "testdata/cluster.yaml", "--server", "https://127.0.0.1:1"}, "discover the handlers of the server: server https://127.0.0.1:1: ", false},
		"NoTLS":           {x.flags("--ca", "/dev/null"), "read --ca: /dev/null has no certificate in PEM", false},
	} {
		t.Run(name, func(t *testing.T) {
			got := render(t, tc.args...)
			code, usage := cmdline.ExitFailed, strings.HasSuffix(got.errOut, "\nRun \"hookgate render --help\" for help.\n")
			if usage || slices.Contains(tc.args, "--diff") {
				code = cmdline.ExitUsage
			}
			if got.code != code || usage != tc.usage || !strings.HasPrefix(got.errOut, "hookgate: ") || !strings.Contains(got.errOut, tc.want) || got.out != "" {
				t.Errorf("exit status %d, want %q in:\n%s%s", got.code, tc.want, got.errOut, got.out)
			}
		})
	}
}
