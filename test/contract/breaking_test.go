// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package contract

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/test/process"
)

// root is the root of the repository.
var root = filepath.Join("..", "..")

// edit is one change of one proto.
type edit struct {
	file     string
	old, new string
}

// importers are the protos of other packages that import the contract, seen from its folder.
var importers = []string{
	"../../infrastructure/v1alpha1/common.proto", "../../infrastructure/v1alpha1/discovery.proto",
	"../../infrastructure/v1alpha1/cluster.proto", "../../infrastructure/v1alpha1/machine.proto",
	"../../infrastructure/v1alpha1/machine_pool.proto", "../../machines/v1alpha1/discovery.proto",
	"../../machines/v1alpha1/lifecycle.proto", "../../machines/v1alpha1/remediation.proto",
}

// renamed returns the edits that make the contract one of another package, for those that import it, too.
func renamed(before, after string) []edit {
	edits := everywhere("package "+before+";", "package "+after+";")
	for _, file := range importers {
		edits = append(edits, edit{file, before + ".", after + "."})
	}
	return edits
}

// everywhere returns the edit of every proto.
func everywhere(before, after string) []edit {
	var edits []edit
	for _, file := range []string{"common", "discovery", "in_place_update", "lifecycle_hooks", "topology_mutation", "upgrade_plan"} {
		edits = append(edits, edit{file + ".proto", before, after})
	}
	return edits
}

// Each edit is compared with the contract of the last release, by the tool and the configuration of `make verify`.
func TestBreakingEdits(t *testing.T) {
	buf := process.Program(t, "HOOKGATE_BUF")
	const lifecycle, topology, common = "lifecycle_hooks.proto", "topology_mutation.proto", "common.proto"
	for name, tc := range map[string]struct {
		edits []edit
		want  string // part of the complaint; empty where there shall be none
	}{
		"field removed":   {[]edit{{lifecycle, "  string from_kubernetes_version = 4;\n", ""}}, `Previously present field "4" with name "from_kubernetes_version" on message "BeforeClusterUpgradeRequest" was deleted`},
		"field renamed":   {[]edit{{lifecycle, "string from_kubernetes_version = 4;", "string from_version = 4;"}}, `with name "from_version" on message "BeforeClusterUpgradeRequest" changed`},
		"field moved":     {[]edit{{lifecycle, "string from_kubernetes_version = 4;", "string from_kubernetes_version = 40;"}}, `Previously present field "4"`},
		"type changed":    {[]edit{{lifecycle, "string from_kubernetes_version = 4;", "bytes from_kubernetes_version = 4;"}}, `changed type from "string" to "bytes"`},
		"became repeated": {[]edit{{lifecycle, "string from_kubernetes_version = 4;", "repeated string from_kubernetes_version = 4;"}}, `changed cardinality`},
		"JSON renamed":    {[]edit{{lifecycle, "string from_kubernetes_version = 4;", `string from_kubernetes_version = 4 [json_name = "from"];`}}, `changed option "json_name"`},
		"rpc removed":     {[]edit{{topology, "  rpc ValidateTopology(ValidateTopologyRequest) returns (ValidateTopologyResponse);\n", ""}}, `Previously present RPC "ValidateTopology" on service "TopologyMutationHooksService" was deleted`},
		"rpc's answer":    {[]edit{{topology, "returns (ValidateTopologyResponse)", "returns (GeneratePatchesResponse)"}}, `changed response type`},
		"became a stream": {[]edit{{topology, "returns (ValidateTopologyResponse)", "returns (stream ValidateTopologyResponse)"}}, `from server unary to server streaming`},
		"enum value":      {[]edit{{common, "RESPONSE_STATUS_FAILURE = 2;", "RESPONSE_STATUS_FAILURE = 3;"}}, `Previously present enum value "2"`},
		"package":         {renamed("hookgate.hooks.v1alpha1", "hookgate.hooks.v1alpha2"), `package changed from "hookgate.hooks.v1alpha1" to "hookgate.hooks.v1alpha2"`},
		"Java's package":  {everywhere(`option java_package = "dev.hookgate.hooks.v1alpha1";`, `option java_package = "dev.hookgate";`), `"java_package" changed`},
		"file removed":    {[]edit{{"upgrade_plan.proto", "", ""}}, `Previously present file "hookgate/hooks/v1alpha1/upgrade_plan.proto" was deleted`},
		"service renamed": {[]edit{{topology, "service TopologyMutationHooksService {", "service TopologyService {"}}, `Previously present service "TopologyMutationHooksService" was deleted`},

		"of infrastructure": {[]edit{{"../../infrastructure/v1alpha1/machine.proto", "  string provider_id = ", "  string providerid = "}}, `changed`},

		"nothing":     {nil, ""},
		"field added": {[]edit{{lifecycle, "  string from_kubernetes_version = 4;\n", "  string from_kubernetes_version = 4;\n  string reason = 40;\n"}}, ""},
		"rpc added": {[]edit{{topology, "  rpc ValidateTopology(ValidateTopologyRequest) returns (ValidateTopologyResponse);\n",
			"  rpc ValidateTopology(ValidateTopologyRequest) returns (ValidateTopologyResponse);\n  rpc ExplainTopology(ValidateTopologyRequest) returns (ValidateTopologyResponse);\n"}}, ""},
		"enum value added": {[]edit{{common, "RESPONSE_STATUS_FAILURE = 2;", "RESPONSE_STATUS_FAILURE = 2;\n  RESPONSE_STATUS_UNDECIDED = 3;"}}, ""},
		"comment changed":  {[]edit{{topology, "service TopologyMutationHooksService {", "// More.\nservice TopologyMutationHooksService {"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			copyContract(t, dir)
			for _, e := range tc.edits {
				e.apply(t, filepath.Join(dir, "proto", "hookgate", "hooks", "v1alpha1"))
			}
			cmd := exec.CommandContext(t.Context(), buf, "breaking", "proto", "--against", "proto/released.binpb")
			cmd.Dir = dir
			cmd.Env = append(os.Environ(), "BUF_CACHE_DIR="+t.TempDir())
			var output bytes.Buffer
			cmd.Stdout, cmd.Stderr = &output, &output
			err := cmd.Run()
			if tc.want == "" {
				if err != nil {
					t.Errorf("refused: %v\n%s", err, output.String())
				}
				return
			}
			if code := cmd.ProcessState.ExitCode(); code != 100 || !strings.Contains(output.String(), tc.want) {
				t.Errorf("exit status %d, want 100 and %q in\n%s", code, tc.want, output.String())
			}
		})
	}
}

// TestBreakBeforeTheLastCommits commits a break, and then two changes that break nothing.
func TestBreakBeforeTheLastCommits(t *testing.T) {
	buf := process.Program(t, "HOOKGATE_BUF")
	dir := t.TempDir()
	copyContract(t, dir)
	if err := os.CopyFS(filepath.Join(dir, "tools", "buf"), os.DirFS(filepath.Join(root, "tools", "buf"))); err != nil {
		t.Fatal(err)
	}
	run := func(name string, args ...string) (string, error) {
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "BUF_CACHE_DIR="+t.TempDir(), "MAKEFLAGS=")
		output, err := cmd.CombinedOutput()
		return string(output), err
	}
	commit := func() {
		t.Helper()
		for _, args := range [][]string{
			{"add", "--all"}, {"-c", "user.name=test", "-c", "user.email=test@example.com", "commit", "--quiet", "-m", "edit"},
		} {
			if output, err := run("git", args...); err != nil {
				t.Fatalf("git %v: %v\n%s", args, err, output)
			}
		}
	}
	if output, err := run("git", "init", "--quiet", "--initial-branch=main"); err != nil {
		t.Fatalf("git init: %v\n%s", err, output)
	}
	commit()
	verify := []string{"verify-proto", "BUF=" + buf, "--assume-old=" + buf}
	if output, err := run("make", verify...); err != nil {
		t.Fatalf("without a break: %v\n%s", err, output)
	}
	for _, e := range []edit{
		{"lifecycle_hooks.proto", "  string from_kubernetes_version = 4;\n", ""},
		{"common.proto", "RESPONSE_STATUS_FAILURE = 2;", "RESPONSE_STATUS_FAILURE = 2; // More."},
		{"topology_mutation.proto", "service TopologyMutationHooksService {", "// More.\nservice TopologyMutationHooksService {"},
	} {
		e.apply(t, filepath.Join(dir, "proto", "hookgate", "hooks", "v1alpha1"))
		if _, err := run(buf, "format", "-w"); err != nil {
			t.Fatal(err)
		}
		commit()
	}
	output, err := run("make", verify...)
	if want := `Previously present field "4" with name "from_kubernetes_version"`; err == nil || !strings.Contains(output, want) {
		t.Errorf("error %v, want one and %q in\n%s", err, want, output)
	}
}

// copyContract copies what `make verify-proto` reads to a folder, but for the tool.
func copyContract(t *testing.T, dir string) {
	t.Helper()
	for _, module := range []string{"proto", "test/hookversions/proto", "examples/own-hooks/proto"} {
		if err := os.CopyFS(filepath.Join(dir, module), os.DirFS(filepath.Join(root, module))); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{"buf.yaml", "Makefile"} {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, file), text, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// apply makes the edit, which must be possible.
func (e edit) apply(t *testing.T, dir string) {
	t.Helper()
	path := filepath.Join(dir, e.file)
	if e.old == "" {
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		return
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(text), e.old) {
		t.Fatalf("%s does not have %q: it was edited since", e.file, e.old)
	}
	count := 1
	if strings.HasSuffix(e.old, ".") { // the name of a package, wherever it stands
		count = -1
	}
	if err := os.WriteFile(path, []byte(strings.Replace(string(text), e.old, e.new, count)), 0o600); err != nil {
		t.Fatal(err)
	}
}
