// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// rolledOut is how many Clusters TestRollout has, and different how many of them the new version patches otherwise.
	rolledOut, different = 40, 10
	// calm is how long no Machine may be touched though the new version is there.
	calm = 3 * time.Minute
)

// acme is a version of the extension of TestRollout.
type acme struct {
	version string
	down    atomic.Bool
}

// patch patches the control plane with the version: the later one does so only for the first of the Clusters.
func (a *acme) patch(r *runtimehooksv1.GeneratePatchesRequest, to *runtimehooksv1.GeneratePatchesResponse) error {
	to.SetGroupVersionKind(runtimehooksv1.GroupVersion.WithKind("GeneratePatchesResponse"))
	to.Status = runtimehooksv1.ResponseStatusSuccess
	version := a.version
	for _, v := range r.Variables {
		var builtin struct {
			Cluster struct{ Name string }
		}
		if v.Name == "builtin" && json.Unmarshal(v.Value.Raw, &builtin) == nil && builtin.Cluster.Name >= acmeCluster(different) {
			version = "v6"
		}
	}
	for _, item := range r.Items {
		if item.HolderReference.FieldPath != "spec.controlPlaneRef" {
			continue
		}
		patch := fmt.Appendf(nil, `{"spec":{"template":{"spec":{"kubeadmConfigSpec":{"preKubeadmCommands":[%q]}}}}}`, "echo "+version)
		to.Items = append(to.Items, runtimehooksv1.GeneratePatchesResponseItem{
			UID: item.UID, PatchType: runtimehooksv1.JSONMergePatchType, Patch: patch,
		})
	}
	return nil
}

// serveAcme serves a version, until it is down, and returns its port.
func (w *fixture) serveAcme(a *acme) int {
	answer := answering(w, a.patch)
	return w.serve(handler{"patch", "GeneratePatches", func(rw http.ResponseWriter, r *http.Request) {
		if a.down.Load() {
			http.Error(rw, "down", http.StatusServiceUnavailable)
			return
		}
		answer(rw, r)
	}})
}

func acmeCluster(i int) string { return fmt.Sprintf("c%02d", i) }

// TestRollout moves Clusters from one version of an extension to the next, which patches a quarter of them otherwise:
// these stay as they are until they are approved, whatever happens to the gateway.
func TestRollout(t *testing.T) {
	w := begin(t, true)
	recordings := t.TempDir()
	w.prepareGateway("--record", recordings)
	w.gateway.process = w.gateway.start()
	w.ready(w.gateway)
	v6, v7 := &acme{version: "v6"}, &acme{version: "v7"}
	w.registerExtension("acme", w.serveAcme(v6), nil)
	w.registerGateway(gateway)
	for _, o := range append(read(t, "testdata/clusterclass.yaml")[1:], read(t, "testdata/rollout.yaml")...) {
		w.create(o)
	}
	var all, changed []string
	for i := range rolledOut {
		all = append(all, acmeCluster(i))
		if i < different {
			changed = append(changed, "e2e/"+acmeCluster(i))
		}
		c := w.ruledCluster(acmeCluster(i))
		set(t, c, "acme", "spec", "topology", "classRef", "name")
		unstructured.RemoveNestedField(c.Object, "spec", "topology", "variables")
		w.create(c)
	}
	w.eventuallyWithin(2*stepPatience, "all Clusters run", func() (string, bool) {
		list := &clusterv1.MachineList{}
		if err := w.List(w.ctx, list, client.InNamespace(namespace)); err != nil {
			return err.Error(), false
		}
		running := slices.DeleteFunc(list.Items, func(m clusterv1.Machine) bool {
			return m.Status.Phase != string(clusterv1.MachinePhaseRunning)
		})
		return fmt.Sprintf("%d run", len(running)), len(running) == rolledOut
	})
	before := w.acmeMachines()
	w.logf("%d Clusters run, on v6", rolledOut)

	w.hookgate("rollout", "adopt", "acme", "--candidate", "acme-v7", "--extension-config-group", ownGroup)
	w.patchRollout(`{"spec":{"compare":true}}`)
	w.registerExtension("acme-v7", w.serveAcme(v7), nil)
	began := time.Now()
	kills := 0
	w.eventuallyWithin(2*stepPatience, "the Clusters that differ are known, and no Machine is touched", func() (string, bool) {
		w.poke(all)
		if diff := cmp.Diff(before, w.acmeMachines()); diff != "" {
			t.Fatalf("Machines (-before +now):\n%s", diff)
		}
		if at := time.Since(began); kills < 2 && at > time.Duration(kills+1)*calm/3 {
			kills++
			w.end(w.gateway)
			w.poke(all)
			w.gateway.process = w.gateway.start()
			w.ready(w.gateway)
		}
		equal, differs := w.acmeRecords("Equal"), w.acmeRecords("Different")
		return fmt.Sprintf("%d Clusters are equal, and differ: %v", len(equal), differs),
			kills == 2 && time.Since(began) > calm && len(equal) == rolledOut-different && len(differs) == different
	})
	if got := w.acmeRecords("Different"); !slices.Equal(got, changed) {
		t.Errorf("different are %v, want %v", got, changed)
	}
	w.logf("the gateway was killed twice, and in %s no Machine was touched", time.Since(began).Round(time.Second))
	shown := w.hookgate("describe", "rollout", "acme")
	for _, want := range append([]string{
		"/spec/template/spec/kubeadmConfigSpec/preKubeadmCommands", "echo v6", "echo v7", "replaces 1 Machine",
	}, changed...) {
		if !strings.Contains(shown, want) {
			t.Errorf("describe rollout lacks %q:\n%s", want, shown)
		}
	}
	w.replayed(recordings, changed)

	first := acmeCluster(0)
	w.hookgate("rollout", "approve", "acme", "--cluster", "e2e/"+first, "--yes")
	w.untilReplaced(all, before, first)
	w.logf("the Cluster that was approved has a new Machine")

	v7.down.Store(true)
	w.eventually("the Cluster that has moved waits for the candidate", func() (string, bool) {
		w.poke(all)
		message := w.acmeMessage(first)
		return message, strings.Contains(message, "patch.acme-v7")
	})
	for _, name := range all[1:] {
		if message := w.acmeMessage(name); strings.Contains(message, "acme") {
			t.Errorf("Cluster %s notices that the candidate is down: %s", name, message)
		}
	}
	v7.down.Store(false)
	w.logf("with the candidate down, only that one waited")

	moved := w.acmeMachines()
	shown = w.hookgate("rollout", "undo", "acme", "--cluster", "e2e/"+first, "--yes")
	if !strings.Contains(shown, first) {
		t.Errorf("undo does not show what it moves back:\n%s", shown)
	}
	w.untilReplaced(all, moved, first)
	w.logf("it was moved back")

	back := w.acmeMachines()
	w.hookgate("rollout", "approve", "acme", "--all", "--yes")
	shown = w.hookgate("rollout", "promote", "acme", "--yes")
	if !strings.Contains(shown, "acme-v7") {
		t.Errorf("promote does not show what it does:\n%s", shown)
	}
	w.untilReplaced(all, back, all[:different]...)
	w.logf("promoted: the %d that differed have new Machines, and no others", different)
}

// hookgate runs a command of the gateway's program against the management cluster.
func (w *fixture) hookgate(args ...string) string {
	w.t.Helper()
	if args[0] != "rollout" {
		args = append(args, "--diagnostics", "http://"+loopback(w.gateway.diagnostics))
	} else {
		args = append(args, "--kubeconfig", w.kubeconfig)
	}
	out, err := exec.CommandContext(w.ctx, folder(w.t, "HOOKGATE_BIN"), args...).CombinedOutput()
	if err != nil {
		w.t.Fatalf("hookgate %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

func (w *fixture) patchRollout(change string) {
	w.t.Helper()
	o := object("hookgate.dev/v1alpha1", "ExtensionRollout", "acme", nil)
	if err := w.Patch(w.ctx, o, client.RawPatch(types.MergePatchType, []byte(change))); err != nil {
		w.t.Fatal(err)
	}
}

// poke makes Cluster API reconcile Clusters.
func (w *fixture) poke(names []string) {
	w.t.Helper()
	for _, name := range names {
		change := fmt.Appendf(nil, `{"metadata":{"annotations":{"acme.example/poke":%q}}}`, time.Now().Format(time.RFC3339))
		c := &clusterv1.Cluster{ObjectMeta: objectMeta(namespace, name)}
		if err := w.Patch(w.ctx, c, client.RawPatch(types.MergePatchType, change)); err != nil {
			w.t.Fatal(err)
		}
	}
}

// acmeMachines returns the UIDs of the Machines that are there, by Cluster.
func (w *fixture) acmeMachines() map[string]string {
	w.t.Helper()
	list := &clusterv1.MachineList{}
	if err := w.List(w.ctx, list, client.InNamespace(namespace)); err != nil {
		w.t.Fatal(err)
	}
	found := map[string]string{}
	slices.SortFunc(list.Items, func(a, b clusterv1.Machine) int { return strings.Compare(a.Name, b.Name) })
	for i := range list.Items {
		found[list.Items[i].Spec.ClusterName] += string(list.Items[i].UID) + " "
	}
	return found
}

// untilReplaced waits until these Clusters have other Machines than before, one each, and checks that no other has.
func (w *fixture) untilReplaced(all []string, before map[string]string, names ...string) {
	w.t.Helper()
	w.eventuallyWithin(2*stepPatience, "the Machines of "+strings.Join(names, ", ")+" are replaced", func() (string, bool) {
		w.poke(all)
		now := w.acmeMachines()
		replaced := slices.Collect(maps.Keys(before))
		replaced = slices.DeleteFunc(replaced, func(name string) bool { return before[name] == now[name] })
		slices.Sort(replaced)
		for _, name := range replaced {
			if !slices.Contains(names, name) {
				w.t.Fatalf("the Machine of %s was replaced", name)
			}
			if strings.Count(now[name], " ") != 1 || strings.Contains(before[name], now[name]) {
				return fmt.Sprint(replaced, ": not at an end"), false
			}
		}
		return fmt.Sprint(replaced), slices.Equal(replaced, names)
	})
}

// acmeRecords returns the Clusters with records of a state.
func (w *fixture) acmeRecords(state string) (clusters []string) {
	w.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetAPIVersion("hookgate.dev/v1alpha1")
	list.SetKind("ExtensionRolloutRecordList")
	if err := w.List(w.ctx, list); err != nil {
		w.t.Fatal(err)
	}
	for _, o := range list.Items {
		spec, _ := o.Object["spec"].(map[string]any)
		cluster, _ := spec["cluster"].(map[string]any)
		if spec["state"] == state && cluster != nil {
			clusters = append(clusters, fmt.Sprint(cluster["namespace"], "/", cluster["name"]))
		}
	}
	slices.Sort(clusters)
	return clusters
}

// acmeMessage returns what Cluster API says of the topology of a Cluster.
func (w *fixture) acmeMessage(name string) string {
	w.t.Helper()
	c := &clusterv1.Cluster{}
	if err := w.Get(w.ctx, client.ObjectKey{Namespace: namespace, Name: name}, c); err != nil {
		w.t.Fatal(err)
	}
	for _, of := range c.Status.Conditions {
		if of.Type == clusterv1.ClusterTopologyReconciledCondition {
			return of.Message
		}
	}
	return ""
}

// replayed replays the last recorded call about each Cluster against v7, which finds the Clusters that differ.
func (w *fixture) replayed(recordings string, want []string) {
	w.t.Helper()
	files, err := filepath.Glob(filepath.Join(recordings, "*.jsonl"))
	if err != nil {
		w.t.Fatal(err)
	}
	last := map[string][]byte{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			w.t.Fatal(err)
		}
		for line := range strings.Lines(string(text)) {
			var record struct {
				Handler string
				Request struct {
					Variables []struct {
						Name  string
						Value json.RawMessage
					}
				}
			}
			if json.Unmarshal([]byte(line), &record) != nil || record.Handler != "patch.acme" {
				continue
			}
			for _, v := range record.Request.Variables {
				var builtin struct{ Cluster struct{ Name string } }
				if v.Name == "builtin" && json.Unmarshal(v.Value, &builtin) == nil {
					last[builtin.Cluster.Name] = []byte(line)
				}
			}
		}
	}
	file := filepath.Join(w.t.TempDir(), "last.jsonl")
	if err := os.WriteFile(file, slices.Concat(slices.Collect(maps.Values(last))...), 0o600); err != nil {
		w.t.Fatal(err)
	}
	v7 := w.get(ownGroup+"/v1beta2", "ExtensionConfig", "", "acme-v7")
	url, _, _ := unstructured.NestedString(v7.Object, "spec", "clientConfig", "url")
	out, err := exec.CommandContext(w.ctx, folder(w.t, "HOOKGATE_BIN"), "replay", file, "--server", url, "--ca",
		filepath.Join(w.certs, "ca.crt"), "--handler", "patch.acme", "-o", "json").Output()
	var result struct {
		Equal, Different int
		Calls            []struct{ Cluster string }
	}
	if jsonErr := json.Unmarshal(out, &result); jsonErr != nil {
		w.t.Fatalf("replay: %v, %v: %s", err, jsonErr, out)
	}
	var found []string
	for _, c := range result.Calls {
		found = append(found, c.Cluster)
	}
	if slices.Sort(found); !slices.Equal(found, want) || result.Equal != rolledOut-different {
		w.t.Errorf("replay finds %v, and %d equal ones; want %v", found, result.Equal, want)
	}
}
