// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
)

// What `make bench-fleet` sets. The defaults are for a test that costs little.
var (
	fleetSize   = flag.Int("clusters", 20, "`number` of Clusters of TestFleet")
	fleetRounds = flag.Int("rounds", 1, "`number` of restarts that TestFleet measures each way")
	fleetQPS    = flag.Int("qps", 2000, "`number` of requests per second that Cluster API may send to the API server in TestFleet")
	fleetCPU    = flag.Duration("cpu", 20*time.Millisecond, "CPU `time` that the extension of TestFleet takes for GeneratePatches")
)

const (
	// atRest is for how long no Cluster is reconciled when all have been. Cluster API puts off what is due again by a second.
	atRest = 3 * time.Second
	// The bars, for a restart with the cache beside one without the gateway.
	mostTime, mostCalls = .5, .1
)

// way is how Cluster API gets its patches.
type way struct {
	name  string
	port  int
	spent []spent // in each round
}

// spent is what a restart of Cluster API took until all Clusters were reconciled.
type spent struct {
	time                time.Duration
	reconciled          int            // how often the topology controller has reconciled a Cluster
	patches, validation int            // calls that reached the extension
	cpu                 map[string]int // milliseconds, by program
}

// TestFleet restarts Cluster API's core, which then reconciles each Cluster and asks for its patches: an extension, the
// gateway in front of it, the gateway with a cache, and with a rollout that compares. Then it restarts the extension.
func TestFleet(t *testing.T) {
	w := begin(t, false)
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Minute) // of more Clusters than those of the other tests
	defer cancel()
	w.ctx = ctx
	w.installControlPlane("FleetControlPlane", "FleetControlPlaneTemplate")
	w.core.flags = append(w.core.flags, "--kube-api-qps", strconv.Itoa(*fleetQPS), "--kube-api-burst", strconv.Itoa(*fleetQPS))
	w.retire(w.core.process)
	w.core.process = w.core.start()
	w.ready(w.core)

	e := &patcher{}
	port := w.serve(
		handler{"patches", "GeneratePatches", answering(w, e.patch)},
		handler{"validation", "ValidateTopology", answering(w, e.validate)},
		handler{"variables", "DiscoverVariables", answering(w, discoverNothing)},
	)
	ways := []*way{
		{name: "direct", port: port},
		{name: "gateway", port: w.startFleetGateway(port, nil, "fleet")},
		{name: "with cache", port: w.startFleetGateway(port, map[string]any{"cache": map[string]any{"ttlSeconds": int64(3600)}}, "fleet")},
		{name: "with a rollout", port: w.startFleetGateway(port, nil, "stable", "candidate")},
	}
	config := &runtimev1.ExtensionConfig{ObjectMeta: objectMeta("", "fleet")}
	config.Spec.ClientConfig = runtimev1.ClientConfig{URL: "https://" + loopback(port), CABundle: w.ca}
	w.create(config)
	w.discovered("Cluster API discovered the extension", extensionConfig(runtimev1.GroupVersion.Group, "fleet"))
	for _, o := range read(t, "testdata/fleet.yaml") {
		w.create(o)
	}
	w.createFleet()
	w.logf("%d Clusters are reconciled", *fleetSize)
	e.cpu.Store(int64(*fleetCPU))

	w.restartCore(e) // the first restart after the Clusters were made takes longer than those after it
	for range *fleetRounds {
		for _, by := range ways {
			w.askThrough(by.port)
			s := w.restartCore(e)
			w.logf("%s: %+v", by.name, s)
			by.spent = append(by.spent, s)
		}
	}
	reportFleet(t, ways)
	e.cpu.Store(0)
	w.restartExtension(e, port)
}

// patcher is an extension that takes CPU time for GeneratePatches, and counts. It is safe for concurrent use.
type patcher struct {
	patches, validation atomic.Int64
	cpu                 atomic.Int64 // of each GeneratePatches, as a time.Duration
}

// patch sets a member of the control plane to the name of the Cluster.
func (e *patcher) patch(r *runtimehooksv1.GeneratePatchesRequest, a *runtimehooksv1.GeneratePatchesResponse) error {
	e.patches.Add(1)
	a.SetGroupVersionKind(runtimehooksv1.GroupVersion.WithKind("GeneratePatchesResponse"))
	a.Status = runtimehooksv1.ResponseStatusSuccess
	for _, item := range r.Items {
		if item.HolderReference.FieldPath != "spec.controlPlaneRef" {
			continue
		}
		patch, err := json.Marshal([]any{map[string]any{
			"op": "replace", "path": "/spec/template/spec/size", "value": item.HolderReference.Name,
		}})
		if err != nil {
			return err
		}
		a.Items = append(a.Items, runtimehooksv1.GeneratePatchesResponseItem{
			UID: item.UID, PatchType: runtimehooksv1.JSONPatchType, Patch: patch,
		})
	}
	compute(time.Duration(e.cpu.Load())) // there is nothing to wait for: what the answer depends on is in the request
	return nil
}

func (e *patcher) validate(_ *runtimehooksv1.ValidateTopologyRequest, a *runtimehooksv1.ValidateTopologyResponse) error {
	e.validation.Add(1)
	a.SetGroupVersionKind(runtimehooksv1.GroupVersion.WithKind("ValidateTopologyResponse"))
	a.Status = runtimehooksv1.ResponseStatusSuccess
	return nil
}

func discoverNothing(_ *runtimehooksv1.DiscoverVariablesRequest, a *runtimehooksv1.DiscoverVariablesResponse) error {
	a.SetGroupVersionKind(runtimehooksv1.GroupVersion.WithKind("DiscoverVariablesResponse"))
	a.Status = runtimehooksv1.ResponseStatusSuccess
	return nil
}

// compute takes CPU time.
func compute(d time.Duration) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	const thread = 1 // RUSAGE_THREAD of Linux
	for began := used(thread); used(thread)-began < d; {
		for n := range 10000 {
			_ = n * n
		}
	}
}

// used returns the CPU time of this process, or of a thread of it.
func used(who int) time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(who, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// startFleetGateway starts a gateway that offers an extension's handlers under their own names, and returns its port. It
// knows each extension at the port under these names, and has the fields of a policy for it.
func (w *fixture) startFleetGateway(port int, policy map[string]any, names ...string) int {
	w.t.Helper()
	extensions := map[string]int{}
	for _, name := range names {
		extensions[name] = port
	}
	d := w.startDirectory(extensions, "--state-dir", w.t.TempDir())
	for _, name := range names {
		spec := map[string]any{"targetRef": map[string]any{"name": name}, "offerAs": "Original"}
		maps.Copy(spec, policy)
		d.write(object("hookgate.dev/v1alpha1", "ExtensionPolicy", name, spec))
	}
	if len(names) > 1 {
		d.write(object("hookgate.dev/v1alpha1", "ExtensionRollout", "fleet", map[string]any{
			"stable": names[0], "candidate": names[1], "compare": true,
		}))
	}
	d.discovered()
	return w.gateway.port
}

// installControlPlane installs kinds of a control plane provider without controllers.
func (w *fixture) installControlPlane(kinds ...string) {
	w.t.Helper()
	schema := &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}}
	var crds []*apiextensionsv1.CustomResourceDefinition
	for _, kind := range kinds {
		group, plural := "controlplane.cluster.x-k8s.io", strings.ToLower(kind)+"s"
		crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: objectMeta("", plural+"."+group)}
		crd.Labels = map[string]string{clusterv1.GroupVersion.String(): "v1beta2"} // the contract
		crd.Spec = apiextensionsv1.CustomResourceDefinitionSpec{
			Group: group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: kind, ListKind: kind + "List", Plural: plural, Singular: strings.ToLower(kind)},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: "v1beta2", Served: true, Storage: true, Schema: schema,
			}},
		}
		crds = append(crds, crd)
	}
	if _, err := envtest.InstallCRDs(w.rest, envtest.CRDInstallOptions{CRDs: crds, MaxTime: patience}); err != nil {
		w.t.Fatal(err)
	}
}

// createFleet creates the Clusters, and waits until all are reconciled.
func (w *fixture) createFleet() {
	w.t.Helper()
	var creating sync.WaitGroup
	for from := range 8 {
		creating.Go(func() {
			for i := from; i < *fleetSize; i += 8 {
				c := &clusterv1.Cluster{ObjectMeta: objectMeta(namespace, fmt.Sprintf("c%04d", i))}
				c.Spec.Topology = clusterv1.Topology{ClassRef: clusterv1.ClusterClassRef{Name: "fleet"}, Version: oldVersion}
				if err := w.Create(w.ctx, c); err != nil {
					w.t.Error(err)
				}
			}
		})
	}
	creating.Wait()
	w.eventuallyWithin(10*time.Minute, "all Clusters have their topology", func() (string, bool) {
		list := &clusterv1.ClusterList{}
		if err := w.List(w.ctx, list); err != nil {
			return err.Error(), false
		}
		for _, c := range list.Items {
			if !meta.IsStatusConditionTrue(c.Status.Conditions, clusterv1.ClusterTopologyReconciledCondition) {
				return fmt.Sprint(c.Name, ": ", meta.FindStatusCondition(c.Status.Conditions, clusterv1.ClusterTopologyReconciledCondition)), false
			}
		}
		return "", true
	})
	w.awaitRest(0)
}

// askThrough lets Cluster API call another port from now on, and reconcile all Clusters with it.
func (w *fixture) askThrough(port int) {
	w.t.Helper()
	config := &runtimev1.ExtensionConfig{ObjectMeta: objectMeta("", "fleet")}
	change := fmt.Appendf(nil, `{"spec":{"clientConfig":{"url":"https://%s"}}}`, loopback(port))
	if err := w.Patch(w.ctx, config, client.RawPatch("application/merge-patch+json", change)); err != nil {
		w.t.Fatal(err)
	}
	w.discovered("Cluster API discovered the other way", extensionConfig(runtimev1.GroupVersion.Group, "fleet"))
	before := w.reconciled()
	class := &clusterv1.ClusterClass{ObjectMeta: objectMeta(namespace, "fleet")}
	change = fmt.Appendf(nil, `{"metadata":{"annotations":{"asked-through":"%d"}}}`, port)
	if err := w.Patch(w.ctx, class, client.RawPatch("application/merge-patch+json", change)); err != nil {
		w.t.Fatal(err)
	}
	w.awaitRest(before)
}

// reconciled returns how often core has reconciled a Cluster's topology.
func (w *fixture) reconciled() int {
	w.t.Helper()
	return total(w.core.scrape(w.t, "controller_runtime_reconcile_total"), "controller", "topology/cluster", "result", "success")
}

// awaitRest waits until all Clusters have been reconciled since the count was so, and returns when the last one was.
func (w *fixture) awaitRest(count int) (last time.Time) {
	w.t.Helper()
	seen := count
	w.eventuallyWithin(10*time.Minute, "all Clusters are reconciled", func() (string, bool) {
		if n := w.reconciled(); n != seen {
			seen, last = n, time.Now()
		}
		return fmt.Sprintf("%d times", seen-count), seen-count >= *fleetSize && time.Since(last) > atRest
	})
	return last
}

// restartCore restarts Cluster API's core, and returns what it took until all Clusters were reconciled.
func (w *fixture) restartCore(e *patcher) spent {
	w.t.Helper()
	w.retire(w.core.process)
	s := spent{patches: -int(e.patches.Load()), validation: -int(e.validation.Load()), cpu: w.cpu()}
	began := time.Now()
	w.core.process = w.core.start()
	w.ready(w.core)
	s.time = w.awaitRest(0).Sub(began)
	s.patches, s.validation, s.reconciled = s.patches+int(e.patches.Load()), s.validation+int(e.validation.Load()), w.reconciled()
	for name, now := range w.cpu() {
		s.cpu[name] = now - s.cpu[name]
	}
	return s
}

// cpu returns the milliseconds of CPU time of the programs that the suite has started and that run, by their names. The
// extension's are those of the suite itself.
func (w *fixture) cpu() map[string]int {
	w.t.Helper()
	times := map[string]int{"extension": int(used(syscall.RUSAGE_SELF).Milliseconds())}
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil {
		w.t.Fatal(err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		before, after, _ := strings.Cut(string(text), ") ")
		_, name, _ := strings.Cut(before, "(")
		fields := strings.Fields(after) // from the third on, as proc(5) counts
		if len(fields) < 13 || fields[1] != strconv.Itoa(os.Getpid()) {
			continue
		}
		for _, ticks := range fields[11:13] { // of the user and the system, a hundred per second
			n, err := strconv.Atoi(ticks)
			if err != nil {
				w.t.Fatal(err)
			}
			times[name] += 10 * n
		}
	}
	return times
}

// reportFleet prints the median round of each way, and holds the cache to its bars. Its time depends on the machine, and
// so is only printed.
func reportFleet(t *testing.T, ways []*way) {
	t.Helper()
	var text strings.Builder
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(table, "\tall reconciled\treconciliations\tGeneratePatches\tValidateTopology\tCPU of extension\tgateway\tcore\tAPI server, etcd\t")
	for _, by := range ways {
		slices.SortFunc(by.spent, func(a, b spent) int { return cmp.Compare(a.time, b.time) })
		s := by.median()
		fmt.Fprintf(table, "%s\t%.1f s\t%d\t%d\t%d\t%.1f s\t%.1f s\t%.1f s\t%.1f s\t\n", by.name, s.time.Seconds(), s.reconciled, s.patches, s.validation,
			seconds(s.cpu["extension"]), seconds(s.cpu["hookgate"]), seconds(s.cpu["core"]), seconds(s.cpu["kube-apiserver"]+s.cpu["etcd"]))
	}
	_ = table.Flush() // into memory
	direct, cached := ways[0].median(), ways[2].median()
	inTime, inCalls := cached.time.Seconds()/direct.time.Seconds(), float64(cached.patches+cached.validation)/float64(direct.patches+direct.validation)
	t.Logf("a restart with %d Clusters; medians of %d\n%swith the cache, %.2f times the time of the direct way, at most %.1f; %.2f times the calls, at most %.1f",
		*fleetSize, *fleetRounds, &text, inTime, mostTime, inCalls, mostCalls)
	if inCalls > mostCalls {
		t.Errorf("with the cache, the extension gets %.2f times the calls of the direct way, want at most %.1f", inCalls, mostCalls)
	}
}

func (w *way) median() spent { return w.spent[len(w.spent)/2] }

func seconds(milliseconds int) float64 { return float64(milliseconds) / 1000 }
