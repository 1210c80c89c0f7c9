// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/kinds/rollout"
	"github.com/hookgate/hookgate/test/anykind"
	"github.com/hookgate/hookgate/test/process"
)

// rollouts runs hookgate rollout against an API server of its own.
type rollouts struct {
	client.Client
	kubeconfig string
}

// run runs a command with an answer to what it asks, and returns what it says.
func (r *rollouts) run(t *testing.T, answer string, args ...string) (out string, ok bool) {
	t.Helper()
	var says bytes.Buffer
	cmd := exec.CommandContext(t.Context(), os.Getenv(gatewayVariable),
		append(append([]string{"rollout"}, args...), "--kubeconfig", r.kubeconfig)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(answer), &says, &says
	err := cmd.Run()
	return says.String(), err == nil
}

// wants runs a command that is to succeed or to fail, and checks texts of what it says.
func (r *rollouts) wants(t *testing.T, ok bool, answer, command string, texts ...string) {
	t.Helper()
	out, did := r.run(t, answer, strings.Fields(command)...)
	if did != ok {
		t.Errorf("%s: succeeded %t, want %t", command, did, ok)
	}
	for _, want := range texts {
		if !strings.Contains(out, want) {
			t.Errorf("%s: no %q in\n%s", command, want, out)
		}
	}
}

func (r *rollouts) spec(t *testing.T, want v1alpha1.ExtensionRolloutSpec) {
	t.Helper()
	of := &v1alpha1.ExtensionRollout{}
	if err := r.Get(t.Context(), client.ObjectKey{Name: "acme"}, of); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, of.Spec); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// record stores what is known of a Cluster in the namespace team-a, or of no Cluster if its name is empty.
func (r *rollouts) record(t *testing.T, name string, state v1alpha1.RolloutState) {
	t.Helper()
	of := types.NamespacedName{Namespace: "team-a", Name: name}
	record := &v1alpha1.ExtensionRolloutRecord{Spec: v1alpha1.ExtensionRolloutRecordSpec{
		Rollout: "acme", Candidate: "acme-v7", State: state, Message: "the answers differ", Since: metav1.Now(),
		Differences: []v1alpha1.RolloutDifference{{
			Handler: "patch", Object: "KubeadmConfigTemplate x", Path: "/spec/a", Stable: "1", Candidate: "2",
			Machines: "replaces 3 Machines of MachineDeployment " + name,
		}},
	}}
	record.Namespace = of.Namespace
	if record.Name = rollout.RecordName("acme", types.NamespacedName{}); name != "" {
		record.Name = rollout.RecordName("acme", of)
		record.Spec.Cluster = &v1alpha1.RolloutCluster{Namespace: of.Namespace, Name: of.Name}
	}
	if state == v1alpha1.RolloutStateAborted {
		record.Name, record.Spec.Cluster = rollout.AbortedName("acme"), nil
	}
	create(t, r.Client, record)
}

func (r *rollouts) cluster(t *testing.T, name string) {
	t.Helper()
	c := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"topology": map[string]any{"version": "v1"}}}}
	c.SetAPIVersion("cluster.x-k8s.io/v1beta2")
	c.SetKind("Cluster")
	c.SetNamespace("team-a")
	c.SetName(name)
	create(t, r.Client, c)
}

// newRollouts returns the commands for a server with the kinds of this project and of Clusters, and the namespace team-a.
func newRollouts(t *testing.T) (*rest.Config, *rollouts) {
	t.Helper()
	if os.Getenv(gatewayVariable) == "" {
		t.Skipf("%s does not name a program: run `make test`, which builds it", gatewayVariable)
	}
	config, c := emptyServer(t, filepath.Join("..", "..", "deploy", "crd"))
	if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{MaxTime: process.ServerPatience, CRDs: []*apiextensionsv1.CustomResourceDefinition{
		anykind.Of("cluster.x-k8s.io", "v1beta2", "Cluster")}}); err != nil {
		t.Fatal(err)
	}
	create(t, c, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team-a"}})
	return config, &rollouts{c, kubeconfigOf(t, config)}
}

// TestRolloutCommands leads an ExtensionConfig in use from its adoption to a promoted candidate, with all that the
// commands refuse on the way.
func TestRolloutCommands(t *testing.T) {
	_, r := newRollouts(t)
	c := r.Client

	r.wants(t, false, "", "adopt acme", `there is no ExtensionConfig "acme" of runtime.cluster.x-k8s.io`)
	x := &runtimev1.ExtensionConfig{ObjectMeta: metav1.ObjectMeta{Name: "acme"}}
	x.Spec.ClientConfig.URL = "https://acme.example"
	create(t, c, x)
	r.wants(t, false, "", "promote acme", `there is no ExtensionRollout "acme"`)
	r.wants(t, true, "", "adopt acme --candidate acme-v7 --dry-run", "stable: acme\n", "candidate: acme-v7\n", "compare: true\n")
	r.wants(t, true, "", "adopt acme --candidate acme-v7", "answers as before", `There is no ExtensionConfig "acme-v7" yet`)
	r.wants(t, false, "", "adopt acme", `there is an ExtensionRollout "acme" already`)
	spec := v1alpha1.ExtensionRolloutSpec{Stable: "acme", Candidate: "acme-v7", Compare: true}
	r.spec(t, spec)

	for name, state := range map[string]v1alpha1.RolloutState{
		"": v1alpha1.RolloutStateDifferent, "same": v1alpha1.RolloutStateEqual, "prod-1": v1alpha1.RolloutStateDifferent,
		"prod-2": v1alpha1.RolloutStateDifferent, "dev": v1alpha1.RolloutStateMoved, "aborted": v1alpha1.RolloutStateAborted,
	} {
		r.record(t, name, state)
	}

	// What is approved is shown, and nothing is done without a yes.
	shown := []string{"Cluster team-a/prod-1: different", "replaces 3 Machines of MachineDeployment prod-1", "patch: KubeadmConfigTemplate x /spec/a 1 → 2"}
	r.wants(t, false, "", "approve acme", "say what to approve")
	r.wants(t, false, "\n", "approve acme --cluster team-a/prod-1", append(shown, "[y/N]", "not confirmed")...)
	r.wants(t, false, "", "approve acme --yes --cluster team-a/none", "approve: there is no Cluster team-a/none")
	r.spec(t, spec)
	r.wants(t, true, "y\n", "approve acme --cluster team-a/prod-1", append(shown, "moves to acme-v7 once", "hookgate rollout resume acme")...)
	r.wants(t, true, "", "approve acme --yes --force --cluster team-a/none --cluster team-a/prod-1", "team-a/none: not compared")
	spec.Approved = []string{"team-a/prod-1", "team-a/none"}
	r.spec(t, spec)

	// promote counts, and refuses what nobody has seen. A Cluster of which only a record is left does not change.
	for _, name := range []string{"unseen", "same", "prod-1", "prod-2", "dev"} {
		r.cluster(t, name)
	}
	r.wants(t, false, "", "promote acme --yes", "1 have it already", "1 change, with equal answers",
		"1 change, with differences that are approved", "1 change, with differences that are not approved:\nCluster team-a/prod-2: different",
		"1 change, and were not compared", "the answers to calls that do not concern a Cluster, such as DiscoverVariables, differ", "the rollout is aborted",
		"the changes of 1 Cluster are not approved", "not all Clusters have been compared")
	r.wants(t, false, "", "promote acme --yes --force", "the answers to calls that do not concern a Cluster, such as DiscoverVariables, differ")
	r.wants(t, true, "", "approve acme --yes --variables", "Calls about no Cluster: different")
	r.wants(t, true, "", "approve acme --yes --all", "All Clusters, of which 2 are known to be different:\nCluster team-a/prod-1")
	spec.Approved = append(spec.Approved, "/", "*")
	r.spec(t, spec)
	r.wants(t, false, "", "promote acme --yes", "2 change, with differences that are approved")

	// pause and resume, and undo, which pauses first.
	r.wants(t, true, "", "pause acme", "Those that have moved stay with acme-v7")
	spec.Paused = true
	r.spec(t, spec)
	r.wants(t, true, "", "resume acme")
	spec.Paused = false
	r.spec(t, spec)
	r.wants(t, false, "", "undo acme --cluster team-a/prod-1 --yes", "Cluster team-a/prod-1 has not moved")
	r.wants(t, false, "n\n", "undo acme", "1 Cluster goes back to acme", "Cluster team-a/dev: moved", "replaces 3 Machines of MachineDeployment dev")
	r.spec(t, spec)
	r.wants(t, true, "yes\n", "undo acme", "from their next calls on, acme answers")
	spec.Paused = true
	r.spec(t, spec)
	records := &v1alpha1.ExtensionRolloutRecordList{}
	if err := c.List(t.Context(), records); err != nil {
		t.Fatal(err)
	}
	for i := range records.Items {
		if s := records.Items[i].Spec.State; s == v1alpha1.RolloutStateMoved || s == v1alpha1.RolloutStateAborted {
			t.Errorf("%s is still there", records.Items[i].Name)
		}
	}
	r.wants(t, true, "", "undo acme", "No Cluster has moved.")

	r.wants(t, true, "", "promote acme --yes --force", "0 have it already", "2 change, and were not compared", "acme-v7 is stable")
	r.spec(t, v1alpha1.ExtensionRolloutSpec{Stable: "acme-v7", Compare: true})
	r.wants(t, false, "", "promote acme", "has no candidate")
}
