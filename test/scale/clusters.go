// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/envtest"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/test/anykind"
	"github.com/hookgate/hookgate/test/process"
)

const (
	// mostDoubling is how much more everything may take for twice the Clusters.
	mostDoubling = 2.2
	// placesOfRule is how many Clusters have places of one HookRule: the largest limit that there is.
	placesOfRule = 500
	restingTime  = time.Minute
	callers      = 8
)

// clusterRow is what was measured with one number of Clusters. Each of them has moved in an ExtensionRollout, has a place
// of one HookRule, and is held by a second one. A third one holds its Machine before the drain.
type clusterRow struct {
	clusters        int
	ready           time.Duration // from the start of the process
	machines        time.Duration // from that start until all were asked about again
	resident, peak  int64
	hold            time.Duration // of a call, on average
	status, page    answer
	get             answer // of the command: get holds
	requests, moved float64
	written         float64 // of the API server at rest, in a minute: requests, bytes of watches, requests that write
}

// answer is how long an answer took, and its size.
type answer struct {
	took time.Duration
	size int
}

// measureClusters starts an API server with n Clusters, and a gateway that knows all of them.
func measureClusters(ctx context.Context, o options, dir string, n int) (r clusterRow, err error) {
	r.clusters = n
	w, stop, err := start(o, dir)
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	if err := w.fillClusters(ctx, n); err != nil {
		return r, err
	}
	if err := w.holdMachines(ctx, n); err != nil {
		return r, err
	}

	before, err := w.served(ctx)
	if err != nil {
		return r, err
	}
	time.Sleep(restingTime)
	alone, err := w.served(ctx)
	if err != nil {
		return r, err
	}

	began := time.Now()
	g, err := w.startGateway(ctx, "--machines")
	if err != nil {
		return r, err
	}
	defer g.Stop()
	pids, err := g.PIDs()
	if err != nil {
		return r, err
	}
	peak := process.WatchMemory(pids)
	for g.Ready(ctx) != http.StatusOK {
		if err := pause(ctx, began); err != nil {
			return r, fmt.Errorf("not ready: %w:%s", err, g.LogTail())
		}
	}
	r.ready = time.Since(began)
	if r.machines, err = g.awaitHeld(ctx, began, n); err != nil {
		return r, err
	}
	if r.hold, err = w.holdAll(ctx, g, n); err != nil {
		return r, err
	}
	if err := w.ask(ctx, g, &r); err != nil {
		return r, err
	}
	time.Sleep(15 * time.Second) // what was read at the start is given back at rest
	if r.resident, err = process.Resident(pids); err != nil {
		return r, err
	}
	r.peak = peak()
	start, err := w.served(ctx)
	if err != nil {
		return r, err
	}
	time.Sleep(restingTime)
	end, err := w.served(ctx)
	if err != nil {
		return r, err
	}
	r.requests = end.requests - start.requests - (alone.requests - before.requests)
	r.written = end.writes - start.writes - (alone.writes - before.writes)
	r.moved = end.watched - start.watched - (alone.watched - before.watched)
	return r, nil
}

// runClusters measures each number of Clusters, and prints what came of it.
func runClusters(ctx context.Context, o options, dir string, stdout, stderr io.Writer) error {
	var rows []clusterRow
	for _, n := range o.clusters {
		if _, err := fmt.Fprintf(stderr, "%d Clusters …\n", n); err != nil {
			return err
		}
		r, err := measureClusters(ctx, o, filepath.Join(dir, strconv.Itoa(n)), n)
		if err != nil {
			return fmt.Errorf("%d Clusters: %w", n, err)
		}
		rows = append(rows, r)
	}
	missed, err := reportClusters(stdout, rows)
	if err == nil && missed && o.check {
		err = errors.New("a bar was missed")
	}
	return err
}

// ask measures what people look at.
func (w *fixture) ask(ctx context.Context, g *gateway, r *clusterRow) error {
	for url, to := range map[string]*answer{"/status": &r.status, "/": &r.page} {
		var body []byte
		var err error
		to.took, err = median(func() error {
			var code int
			code, body, err = get(ctx, "http://"+g.Diagnostics+url)
			if err == nil && code != http.StatusOK {
				err = fmt.Errorf("%s: HTTP %d: %s", url, code, body)
			}
			return err
		})
		if err != nil {
			return err
		}
		if to.size = len(body); url == "/status" {
			if err := known(body, r.clusters); err != nil {
				return err
			}
		}
	}
	var out []byte
	var err error
	r.get.took, err = median(func() error {
		out, err = exec.CommandContext(ctx, w.o.hookgate, "get", "holds", "-o", "wide",
			"--diagnostics", "http://"+g.Diagnostics).Output()
		return err
	})
	if err != nil {
		return fmt.Errorf("get holds: %w", err)
	}
	if r.get.size = len(out); bytes.Count(out, []byte("\n")) < r.clusters {
		return fmt.Errorf("get holds shows less than %d Clusters", r.clusters)
	}
	return nil
}

// known returns an error unless a status knows everything about n Clusters.
func known(body []byte, n int) error {
	var g status.Gateway
	if err := json.Unmarshal(body, &g); err != nil {
		return err
	}
	places := 0
	for i := range g.Rules {
		places += len(g.Rules[i].Places) + g.Rules[i].MissedPlaces
	}
	// A hold of the Cluster, and one of its Machine.
	if uint64(len(g.Holds))+g.MissedHolds != uint64(2*n) || len(g.Rollouts) != 1 || g.Rollouts[0].Moved != n || places != n {
		return fmt.Errorf("the gateway knows %d holds, %d places and %d rollouts, want two holds of each of %d Clusters, and one of the others", len(g.Holds), places, len(g.Rollouts), n)
	}
	return nil
}

// median returns how long a function takes: the third of five times.
func median(of func() error) (time.Duration, error) {
	var all []time.Duration
	for range 5 {
		began := time.Now()
		if err := of(); err != nil {
			return 0, err
		}
		all = append(all, time.Since(began))
	}
	slices.Sort(all)
	return all[2], nil
}

// holdAll calls BeforeClusterDelete for each Cluster, which a rule holds, and returns how long a call took.
func (w *fixture) holdAll(ctx context.Context, g *gateway, n int) (time.Duration, error) {
	began := time.Now()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(callers)
	for i := range n {
		group.Go(func() error {
			body := fmt.Sprintf(`{"cluster":{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster",`+
				`"metadata":{"name":%q,"namespace":"default"}}}`, clusterName(i))
			r, err := http.NewRequestWithContext(ctx, http.MethodPost,
				"https://"+g.HTTPS+"/hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclusterdelete", bytes.NewReader([]byte(body)))
			if err != nil {
				return err
			}
			resp, err := w.caller.Do(r)
			if err != nil {
				return err
			}
			defer func() { _ = resp.Body.Close() }()
			answer, err := io.ReadAll(resp.Body)
			if err == nil && !bytes.Contains(answer, []byte(`"retryAfterSeconds":60`)) {
				err = fmt.Errorf("BeforeClusterDelete: %s %s", resp.Status, answer)
			}
			return err
		})
	}
	err := group.Wait()
	return time.Since(began) / time.Duration(n), err
}

func clusterName(i int) string { return fmt.Sprintf("c%05d", i) }

// fillClusters creates n Clusters, with what a gateway has written about each.
func (w *fixture) fillClusters(ctx context.Context, n int) error {
	if _, err := envtest.InstallCRDs(w.config, envtest.CRDInstallOptions{
		Paths: []string{filepath.Join(w.o.crds, "machines")}, ErrorIfPathMissing: true, MaxTime: process.ServerPatience,
		CRDs: []*apiextensionsv1.CustomResourceDefinition{anykind.OfClusterAPI("Cluster"), anykind.OfClusterAPI("Machine")},
	}); err != nil {
		return err
	}
	objects := []client.Object{&v1alpha1.ExtensionRollout{
		ObjectMeta: metav1.ObjectMeta{Name: "acme"},
		Spec:       v1alpha1.ExtensionRolloutSpec{Stable: "acme-v6", Candidate: "acme-v7"},
	}, rule("approval", v1alpha1.HookRuleSpec{
		Hook: "BeforeClusterDelete",
		Hold: []v1alpha1.HookRuleHold{{
			HookRuleDecision: v1alpha1.HookRuleDecision{If: "true", Message: "'waits'"}, RetryAfterSeconds: new(int32(60)),
		}},
	}), rule("drains", v1alpha1.HookRuleSpec{
		Hook: "BeforeMachineDrain",
		Hold: []v1alpha1.HookRuleHold{{
			HookRuleDecision: v1alpha1.HookRuleDecision{If: "true", Message: "'no drain by day'"}, RetryAfterSeconds: new(int32(3600)),
		}},
	})}
	for _, name := range []string{"acme-v6", "acme-v7"} {
		c := &runtimev1.ExtensionConfig{ObjectMeta: metav1.ObjectMeta{Name: name}}
		c.Spec.ClientConfig = runtimev1.ClientConfig{URL: w.extension.URL + "/" + name, CABundle: w.pair.CAPEM}
		objects = append(objects, c)
	}
	for i := 0; i < n; i += placesOfRule {
		objects = append(objects, rule(ruleOf(i), v1alpha1.HookRuleSpec{
			Hook: "BeforeClusterUpgrade", Concurrency: &v1alpha1.HookRuleConcurrency{Limit: placesOfRule},
		}))
	}
	for _, o := range objects {
		if err := w.client.Create(ctx, o); err != nil {
			return err
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(16)
	for i := range n {
		group.Go(func() error { return w.createCluster(ctx, i) })
	}
	return group.Wait()
}

// createCluster creates one Cluster with its records.
func (w *fixture) createCluster(ctx context.Context, i int) error {
	name := clusterName(i)
	c := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"topology": map[string]any{"version": "v1.34.0", "classRef": map[string]any{"name": "class"}}},
	}}
	c.SetAPIVersion("cluster.x-k8s.io/v1beta2")
	c.SetKind("Cluster")
	c.SetNamespace("default")
	c.SetName(name)
	if err := w.client.Create(ctx, c); err != nil {
		return err
	}
	owned := metav1.ObjectMeta{Namespace: "default", OwnerReferences: []metav1.OwnerReference{{
		APIVersion: c.GetAPIVersion(), Kind: "Cluster", Name: name, UID: c.GetUID(),
	}}}
	moved := &v1alpha1.ExtensionRolloutRecord{ObjectMeta: *owned.DeepCopy()}
	moved.Name = "acme.default." + name
	moved.Spec = v1alpha1.ExtensionRolloutRecordSpec{
		Rollout: "acme", Candidate: "acme-v7", State: v1alpha1.RolloutStateMoved, Since: metav1.Now(),
		Cluster: &v1alpha1.RolloutCluster{Namespace: "default", Name: name},
	}
	place := &v1alpha1.ClusterRecord{ObjectMeta: *owned.DeepCopy()}
	place.Name, place.Labels = ruleOf(i)+"."+name, map[string]string{"hookgate.dev/hook-rule": ruleOf(i)}
	place.Spec = v1alpha1.ClusterRecordSpec{ClusterName: name, Place: &v1alpha1.ClusterPlace{
		Rule: ruleOf(i), TopologyVersion: "v1.34.0", Since: metav1.Now(),
	}}
	return errors.Join(w.client.Create(ctx, moved), w.client.Create(ctx, place), w.createMachine(ctx, i))
}

func ruleOf(i int) string { return "places-" + strconv.Itoa(i/placesOfRule) }

func rule(name string, spec v1alpha1.HookRuleSpec) *v1alpha1.HookRule {
	return &v1alpha1.HookRule{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
}

// load is what an API server has served since its start.
type load struct{ requests, writes, watched float64 }

var (
	apiRequests = regexp.MustCompile(`(?m)^apiserver_request_total\{([^}]*)\} (\S+)$`)
	apiWatched  = regexp.MustCompile(`(?m)^apiserver_watch_events_sizes_sum\{[^}]*\} (\S+)$`)
	apiWrites   = regexp.MustCompile(`verb="(?:POST|PUT|PATCH|APPLY|DELETE)"`)
)

// served returns what the API server says that it has served.
func (w *fixture) served(ctx context.Context) (load, error) {
	httpClient, err := rest.HTTPClientFor(w.config)
	if err != nil {
		return load{}, err
	}
	defer httpClient.CloseIdleConnections()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(w.config.Host, "/")+"/metrics", http.NoBody)
	if err != nil {
		return load{}, err
	}
	resp, err := httpClient.Do(r)
	if err != nil {
		return load{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return load{}, err
	}
	if resp.StatusCode != http.StatusOK {
		return load{}, fmt.Errorf("metrics of the API server: %s", resp.Status)
	}
	var l load
	for _, m := range apiRequests.FindAllSubmatch(body, -1) {
		n, err := strconv.ParseFloat(string(m[2]), 64)
		if err != nil {
			return load{}, err
		}
		l.requests += n
		if apiWrites.Match(m[1]) {
			l.writes += n
		}
	}
	for _, m := range apiWatched.FindAllSubmatch(body, -1) {
		n, err := strconv.ParseFloat(string(m[1]), 64)
		if err != nil {
			return load{}, err
		}
		l.watched += n
	}
	return l, nil
}

// reportClusters prints the rows, and how much more the last one takes than the first, which has half of its Clusters.
func reportClusters(out io.Writer, rows []clusterRow) (missed bool, err error) {
	t := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "Clusters\tready\tMachines\tresident\tpeak\thold\t/status\t/\tget holds\trequests/min\twatched/min\twrites/min\t")
	of := func(a answer) string { return fmt.Sprintf("%s, %d KB", short(a.took), a.size>>10) }
	for i := range rows {
		r := &rows[i]
		fmt.Fprintf(t, "%d\t%s\t%s\t%d MiB\t%d MiB\t%s\t%s\t%s\t%s\t%.0f\t%.0f B\t%.0f\t\n", r.clusters, short(r.ready), short(r.machines), r.resident>>20,
			r.peak>>20, r.hold.Round(time.Microsecond), of(r.status), of(r.page), of(r.get), r.requests, r.moved, r.written)
	}
	if err := t.Flush(); err != nil {
		return false, err
	}
	half, all := &rows[0], &rows[len(rows)-1]
	for _, bar := range []struct {
		what     string
		was, now float64
	}{
		{"start until ready", half.ready.Seconds(), all.ready.Seconds()},
		{"start until Machines are held", half.machines.Seconds(), all.machines.Seconds()},
		{"memory at rest", float64(half.resident), float64(all.resident)},
		{"a call that is held", half.hold.Seconds(), all.hold.Seconds()},
		{"/status", half.status.took.Seconds(), all.status.took.Seconds()},
		{"the page", half.page.took.Seconds(), all.page.took.Seconds()},
		{"get holds", half.get.took.Seconds(), all.get.took.Seconds()},
		{"requests at rest", half.requests + 1, all.requests + 1},
	} {
		verdict, growth := "PASS", bar.now/bar.was
		if growth > mostDoubling {
			verdict, missed = "BELOW", true
		}
		if _, err := fmt.Fprintf(out, "%s: %s: %.2f times for %d Clusters what it is for %d, at most %.1f\n", verdict, bar.what, growth,
			all.clusters, half.clusters, mostDoubling); err != nil {
			return missed, err
		}
	}
	return missed, nil
}
