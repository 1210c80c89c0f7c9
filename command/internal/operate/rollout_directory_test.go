// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package operate

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/kinds/rollout"
)

const rolloutManifestText = `# Two versions.
apiVersion: hookgate.dev/v1alpha1
kind: ExtensionConfig # of another group: it is left alone
metadata:
  name: other
---
apiVersion: hookgate.dev/v1alpha1
kind: ExtensionRollout
metadata:
  name: acme
spec:
  stable: acme # the one in use
  candidate: acme-v7
  candidateFor: # canaries
    clusterSelector:
      matchLabels:
        ring: canary
  approved:
    - team-a/old # said so
  compare: true
`

// rolloutDir is a directory of manifests and one with records.
type rolloutDir struct {
	*testing.T

	dir, state string
}

func newRolloutDir(t *testing.T, text string) *rolloutDir {
	t.Helper()
	d := &rolloutDir{t, t.TempDir(), t.TempDir()}
	d.write(filepath.Join(d.dir, "acme.yaml"), []byte(text))
	return d
}

func (d *rolloutDir) write(file string, text []byte) {
	d.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		d.Fatal(err)
	}
	if err := os.WriteFile(file, text, 0o640); err != nil {
		d.Fatal(err)
	}
}

// record writes the record of a Cluster, or of calls about none, and returns its file.
func (d *rolloutDir) record(cluster string, state v1alpha1.RolloutState) string {
	d.Helper()
	of := types.NamespacedName{}
	r := &v1alpha1.ExtensionRolloutRecord{Spec: v1alpha1.ExtensionRolloutRecordSpec{Rollout: "acme", Candidate: "acme-v7", State: state}}
	if namespace, name, ok := strings.Cut(cluster, "/"); ok {
		of = types.NamespacedName{Namespace: namespace, Name: name}
		r.Spec.Cluster = &v1alpha1.RolloutCluster{Namespace: namespace, Name: name}
	}
	r.SetGroupVersionKind(v1alpha1.GroupVersion.WithKind(rollout.RecordKind))
	r.Name = rollout.RecordName("acme", of)
	text, err := json.Marshal(r)
	if err != nil {
		d.Fatal(err)
	}
	file := filepath.Join(d.state, "rollouts", r.Name+".json")
	d.write(file, text)
	return file
}

// run runs a command, and returns what it says with its error.
func (d *rolloutDir) run(answer, command string) string {
	d.Helper()
	var out bytes.Buffer
	cmd := NewRolloutCommand()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs(append(strings.Fields(command), "--extension-configs", d.dir, "--state-dir", d.state))
	cmd.SetIn(strings.NewReader(answer))
	cmd.SetOut(&out)
	if err := cmd.ExecuteContext(d.Context()); err != nil {
		out.WriteString("error: " + err.Error())
	}
	return out.String()
}

func (d *rolloutDir) wants(text string, parts ...string) {
	d.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			d.Errorf("no %q in\n%s", part, text)
		}
	}
}

func (d *rolloutDir) manifest() string {
	d.Helper()
	text, err := os.ReadFile(filepath.Join(d.dir, "acme.yaml"))
	if err != nil {
		d.Fatal(err)
	}
	return string(text)
}

func TestApproveInADirectory(t *testing.T) {
	d := newRolloutDir(t, rolloutManifestText)
	d.wants(d.run("y\n", "approve acme --cluster team-a/prod-1"), "error: approve: Cluster team-a/prod-1 has not been compared")
	d.record("team-a/prod-1", v1alpha1.RolloutStateDifferent)
	edited := strings.Replace(rolloutManifestText, "# said so\n", "# said so\n    - team-a/prod-1\n", 1)
	for _, tt := range []struct{ answer, flags, want, text string }{
		{"n\n", "", "error: not confirmed: nothing was changed", rolloutManifestText},
		{"", "--dry-run", "+    - team-a/prod-1\n", rolloutManifestText},
		{"y\n", "", "Approved.", edited},
		{"", "--yes", "has it already.", edited},
	} {
		out := d.run(tt.answer, "approve acme --cluster team-a/prod-1 "+tt.flags)
		d.wants(out, "Cluster team-a/prod-1: different", tt.want)
		if got := d.manifest(); got != tt.text {
			t.Errorf("%+v: the manifest is\n%s", tt, got)
		}
	}
	info, err := os.Stat(filepath.Join(d.dir, "acme.yaml"))
	if err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the manifest has the mode %v, %v", info.Mode(), err)
	}
}

func TestPromoteInADirectory(t *testing.T) {
	d := newRolloutDir(t, rolloutManifestText)
	different := d.record("team-a/prod-1", v1alpha1.RolloutStateDifferent)
	d.wants(d.run("", "promote acme --yes"), "their number is not known", "the changes of 1 Cluster are not approved")
	if err := os.Remove(different); err != nil {
		t.Fatal(err)
	}
	d.wants(d.run("", "promote acme --yes"), "-  stable: acme # the one in use", "+  stable: acme-v7 # the one in use", "acme-v7 is stable.")
	want := strings.Replace(rolloutManifestText, rolloutManifestText[strings.Index(rolloutManifestText, "  stable:"):strings.Index(rolloutManifestText, "  compare:")], "  stable: acme-v7 # the one in use\n", 1)
	if got := d.manifest(); got != want {
		t.Errorf("the manifest is\n%s\nwant\n%s", got, want)
	}
}

func TestUndoInADirectory(t *testing.T) {
	d := newRolloutDir(t, strings.Replace(rolloutManifestText, "team-a/old", "team-a/prod-1", 1))
	moved, other := d.record("team-a/prod-1", v1alpha1.RolloutStateMoved), d.record("team-a/prod-2", v1alpha1.RolloutStateMoved)
	if filepath.Base(moved) != "acme.team-a.prod-1.json" {
		t.Errorf("the record of a Cluster is %s", moved)
	}
	d.wants(d.run("y\n", "undo acme --cluster team-a/prod-1"), "+  paused: true", "-    - team-a/prod-1", "delete "+moved, "1 Cluster goes back")
	if _, err := os.Stat(moved); err == nil {
		t.Error("the Cluster has not moved back")
	}
	if _, err := os.Stat(other); err != nil {
		t.Errorf("another Cluster has moved back: %v", err)
	}
	d.wants(d.run("", "resume acme"), "-  paused: true")
	if got := d.manifest(); strings.Contains(got, "paused") || strings.Contains(got, "approved") {
		t.Errorf("the manifest is\n%s", got)
	}
}

func TestRolloutInADirectoryRefuses(t *testing.T) {
	for name, tt := range map[string]struct{ text, command, want string }{
		"no rollout":   {rolloutManifestText, "pause acne", `there is no ExtensionRollout "acne" in `},
		"not YAML":     {rolloutManifestText + "---\n[", "pause acne", "in the readable manifests in "},
		"twice":        {rolloutManifestText + "---\n" + rolloutManifestText, "pause acme", "delete one of them"},
		"flow style":   {"{apiVersion: hookgate.dev/v1alpha1, kind: ExtensionRollout, metadata: {name: acme}, spec: {stable: acme, candidate: acme-v7}}", "pause acme", "edit the file by hand"},
		"no candidate": {strings.Replace(rolloutManifestText, "  candidate: acme-v7\n", "", 1), "promote acme", "has no candidate"},
		"not compared": {rolloutManifestText, "approve acme --yes --cluster team-a/none", "Cluster team-a/none has not been compared with acme-v7: wait until Cluster API"},
		"no compare":   {strings.Replace(rolloutManifestText, "  compare: true\n", "", 1), "approve acme --yes --cluster team-a/none", "acme-v7: set spec.compare, and wait until Cluster API"},
		"cluster too":  {rolloutManifestText, "pause acme --context management", "--extension-configs cannot be used with --kubeconfig or --context"},
	} {
		d := newRolloutDir(t, tt.text)
		if got := d.run("", tt.command); !strings.Contains(got, tt.want) {
			t.Errorf("%s: %q, want %q", name, got, tt.want)
		}
		if d.manifest() != tt.text {
			t.Errorf("%s: the manifest was changed", name)
		}
	}
	cmd := NewRolloutCommand()
	cmd.SilenceErrors, cmd.SilenceUsage = true, true
	cmd.SetArgs([]string{"pause", "acme", "--extension-configs", t.TempDir()})
	if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), "belong together") {
		t.Errorf("without --state-dir: %v", err)
	}
}
