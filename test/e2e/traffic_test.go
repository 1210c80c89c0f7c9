// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var trafficFile = flag.String("traffic", "", "`file` that TestTraffic writes; without one, it is skipped")

const (
	// trafficSync is how often core reconciles every Cluster in TestTraffic; by default it is every ten minutes.
	trafficSync = time.Minute
	// trafficSyncs is how many of these times the recording of the steady state has.
	trafficSyncs = 2
)

// trafficWorkers are the MachineDeployments of each Cluster of TestTraffic: most Clusters are small, and one is large.
var trafficWorkers = []int{1, 1, 1, 1, 1, 1, 1, 2, 3, 8}

// traffic is what TestTraffic writes: the first line of the file. The calls follow, one a line.
type traffic struct {
	ClusterAPI string             `json:"clusterAPI"`
	Recorded   string             `json:"recorded"` // the day
	Clusters   []string           `json:"clusters"`
	Sync       float64            `json:"syncSeconds"`
	Phases     map[string]float64 `json:"phaseSeconds"`
}

// trafficCall is a call of the recording. The body of each request is there once: others that are equal have its number.
// UIDs of items, which are new in each request, are "@1", "@2" and so on.
type trafficCall struct {
	Phase   string          `json:"phase"`
	At      float64         `json:"at"` // seconds since the phase began
	Cluster string          `json:"cluster"`
	Hook    string          `json:"hook"`
	Body    int             `json:"body"`
	Request json.RawMessage `json:"request,omitempty"`
}

// TestTraffic records the calls of the real core for test/fleet: it creates Clusters, lets core reconcile them again and
// again, upgrades a tenth of them, and restarts core. Cluster API's own extension answers, and holds nothing.
func TestTraffic(t *testing.T) {
	if *trafficFile == "" {
		t.Skip("`make record-traffic` says where to")
	}
	w := begin(t, true)
	ctx, cancel := context.WithTimeout(t.Context(), 40*time.Minute)
	defer cancel()
	w.ctx = ctx
	w.core.flags = append(w.core.flags, "--sync-period", trafficSync.String())
	w.retire(w.core.process)
	w.core.process = w.core.start()
	w.ready(w.core)
	dir := t.TempDir()
	w.startHub(filepath.Join(folder(t, "HOOKGATE_E2E_BIN"), "test-extension"), "--record", dir)
	w.register(map[string]any{"defaultAllHandlersToBlocking": "false"})
	w.registerGateway(gateway)
	for _, o := range read(t, "testdata/clusterclass.yaml") {
		w.create(o)
	}
	w.discoversVariables()

	of := traffic{ClusterAPI: "v1.14.2", Recorded: time.Now().Format(time.DateOnly), Sync: trafficSync.Seconds(), Phases: map[string]float64{}}
	var phases []phase
	during := func(name string, do func()) {
		began := time.Now()
		do()
		phases = append(phases, phase{name, began, time.Now()})
		of.Phases[name] = time.Since(began).Seconds()
		w.logf("%s: %.0f s", name, of.Phases[name])
	}
	during("create", func() {
		for i, workers := range trafficWorkers {
			of.Clusters = append(of.Clusters, w.createTraffic(i, workers))
		}
		w.allRun(of.Clusters, oldVersion)
	})
	w.quiet()
	during("steady", func() {
		select {
		case <-time.After(trafficSyncs * trafficSync):
		case <-w.ctx.Done():
		}
	})
	during("upgrade", func() {
		upgraded := of.Clusters[:len(of.Clusters)/10]
		for _, name := range upgraded {
			c := &clusterv1.Cluster{ObjectMeta: objectMeta(namespace, name)}
			change := fmt.Appendf(nil, `{"spec":{"topology":{"version":%q}}}`, newVersion)
			if err := w.Patch(w.ctx, c, client.RawPatch("application/merge-patch+json", change)); err != nil {
				t.Fatal(err)
			}
		}
		w.allRun(upgraded, newVersion)
	})
	w.quiet()
	during("restart", func() {
		w.retire(w.core.process)
		w.core.process = w.core.start()
		w.ready(w.core)
		w.quiet()
	})
	w.retire(w.gateway.process) // which writes the last of the recording
	calls := trafficOf(t, dir, phases)
	for name, want := range map[string]int{"create": 20, "steady": 20 * trafficSyncs, "upgrade": 2, "restart": 20} {
		if n := len(slices.DeleteFunc(slices.Clone(calls), func(c trafficCall) bool { return c.Phase != name })); n < want {
			t.Errorf("%s: %d calls were recorded, want %d or more", name, n, want)
		}
	}
	writeTraffic(t, of, calls)
}

// phase is a part of the recording.
type phase struct {
	name         string
	began, ended time.Time
}

// createTraffic creates a Cluster with so many MachineDeployments, and returns its name.
func (w *fixture) createTraffic(i, workers int) string {
	w.t.Helper()
	c := &clusterv1.Cluster{}
	convert(w.t, read(w.t, "testdata/cluster.yaml")[0], c)
	c.Name = fmt.Sprintf("traffic-%02d", i)
	c.Spec.Topology.ControlPlane.Replicas = new(int32(1))
	for n, v := range c.Spec.Topology.Variables {
		if v.Name == "kubeadmControlPlaneMaxSurge" { // none takes three replicas
			c.Spec.Topology.Variables[n].Value.Raw = []byte(`"1"`)
		}
	}
	one := c.Spec.Topology.Workers.MachineDeployments[0]
	c.Spec.Topology.Workers.MachineDeployments = nil
	for n := range workers {
		next := one.DeepCopy()
		next.Name = fmt.Sprintf("md-%d", n)
		c.Spec.Topology.Workers.MachineDeployments = append(c.Spec.Topology.Workers.MachineDeployments, *next)
	}
	w.create(c)
	return c.Name
}

// allRun waits until Clusters have nothing left to do, with Machines of this version only.
func (w *fixture) allRun(names []string, version string) {
	w.t.Helper()
	w.eventuallyWithin(25*time.Minute, "the Clusters run "+version, func() (string, bool) {
		machines := &clusterv1.MachineList{}
		if err := w.List(w.ctx, machines, client.InNamespace(namespace)); err != nil {
			return err.Error(), false
		}
		for _, m := range machines.Items {
			if slices.Contains(names, m.Spec.ClusterName) && m.Spec.Version != version {
				return fmt.Sprintf("Machine %s has version %s", m.Name, m.Spec.Version), false
			}
		}
		for _, name := range names {
			c := &clusterv1.Cluster{}
			if err := w.Get(w.ctx, client.ObjectKey{Namespace: namespace, Name: name}, c); err != nil {
				return err.Error(), false
			}
			for _, kind := range []string{clusterv1.ClusterTopologyReconciledCondition, clusterv1.ClusterAvailableCondition} {
				if !meta.IsStatusConditionTrue(c.Status.Conditions, kind) {
					return fmt.Sprint(name, ": ", meta.FindStatusCondition(c.Status.Conditions, kind)), false
				}
			}
		}
		return "", true
	})
}

// quiet waits until no Cluster is reconciled any more but by core's period.
func (w *fixture) quiet() {
	w.t.Helper()
	seen, since := -1, time.Now()
	w.eventually("core is quiet", func() (string, bool) {
		if n := w.reconciled(); n != seen {
			seen, since = n, time.Now()
		}
		return fmt.Sprint(seen), time.Since(since) > 5*time.Second
	})
}

// trafficOf reads the recording of a gateway, as docs/recording.md describes it.
func trafficOf(t *testing.T, dir string, phases []phase) []trafficCall {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recording: %v", err)
	}
	slices.Sort(files)
	var calls []trafficCall
	bodies := map[[sha256.Size]byte]int{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		decoder := json.NewDecoder(bytes.NewReader(text))
		for {
			var line struct {
				Time    time.Time       `json:"time"`
				Hook    string          `json:"hook"`
				Request json.RawMessage `json:"request"`
			}
			if err := decoder.Decode(&line); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			i := slices.IndexFunc(phases, func(p phase) bool { return !line.Time.Before(p.began) && line.Time.Before(p.ended) })
			name := clusterOf(t, line.Request)
			if i < 0 || name == "" { // discovery, say
				continue
			}
			body := withoutUIDs(t, line.Request)
			c := trafficCall{Phase: phases[i].name, At: line.Time.Sub(phases[i].began).Seconds(), Cluster: name, Hook: line.Hook}
			sum := sha256.Sum256(body)
			if _, known := bodies[sum]; !known {
				bodies[sum], c.Request = len(bodies), body
			}
			c.Body = bodies[sum]
			calls = append(calls, c)
		}
	}
	slices.SortStableFunc(calls, func(a, b trafficCall) int {
		return slices.IndexFunc(phases, func(p phase) bool { return p.name == a.Phase }) -
			slices.IndexFunc(phases, func(p phase) bool { return p.name == b.Phase })
	})
	return calls
}

// clusterOf returns the name of the Cluster that a request is about; "" if it is about none.
func clusterOf(t *testing.T, request json.RawMessage) string {
	t.Helper()
	var r struct {
		Cluster   struct{ Metadata struct{ Name string } }
		Variables []struct {
			Name  string
			Value json.RawMessage
		}
	}
	if err := json.Unmarshal(request, &r); err != nil {
		t.Fatal(err)
	}
	for _, v := range r.Variables {
		var builtin struct{ Cluster struct{ Name string } }
		if v.Name == "builtin" && json.Unmarshal(v.Value, &builtin) == nil {
			return builtin.Cluster.Name
		}
	}
	return r.Cluster.Metadata.Name
}

// withoutUIDs replaces the UIDs of items, which core makes anew for each request.
func withoutUIDs(t *testing.T, request json.RawMessage) json.RawMessage {
	t.Helper()
	var r struct{ Items []struct{ UID string } }
	if err := json.Unmarshal(request, &r); err != nil {
		t.Fatal(err)
	}
	for i, item := range r.Items {
		if item.UID != "" {
			request = bytes.ReplaceAll(request, []byte(item.UID), fmt.Appendf(nil, "@%d", i+1))
		}
	}
	return request
}

func writeTraffic(t *testing.T, of traffic, calls []trafficCall) {
	t.Helper()
	var text bytes.Buffer
	zip, err := gzip.NewWriterLevel(&text, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	lines := json.NewEncoder(zip)
	lines.SetEscapeHTML(false)
	if err := lines.Encode(of); err != nil {
		t.Fatal(err)
	}
	for _, c := range calls {
		if err := lines.Encode(c); err != nil {
			t.Fatal(err)
		}
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(*trafficFile, text.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	t.Logf("%d calls, %d bytes", len(calls), text.Len())
}
