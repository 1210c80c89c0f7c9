// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// tally counts things of the fake cloud.
type tally struct{ Exist, Created, Deleted, Vanished int }

// counts is what the fake cloud has counted since it started.
type counts struct {
	Networks, Machines, Groups tally
	// Repeated has the keys for which a machine was made more than once.
	Repeated map[string]int
}

// ledger follows what the fake cloud makes and takes away, and the Nodes of its clusters.
type ledger struct {
	w    *fixture
	url  string
	last int // event that was read
	// fleets are sets of machines whose names begin alike; the first that fits is that of a machine.
	fleets []*fleet
	// clusters has the API servers of the clusters, and nodes the provider IDs of their Nodes.
	clusters map[string]client.Client
	nodes    map[string]map[string]string
}

// newLedger returns the ledger of the cloud at a URL, with clusters of these names.
func (w *fixture) newLedger(cloud string, clusters ...string) *ledger {
	l := &ledger{w: w, url: cloud, clusters: map[string]client.Client{}, nodes: map[string]map[string]string{}}
	for _, name := range clusters {
		l.clusters[name] = nil // until it can be reached
	}
	return l
}

// fleet is a set of machines whose number is watched.
type fleet struct {
	prefix string
	tally
	least, most int
}

// between sets how many machines of a fleet may exist from now on, at any time.
func (f *fleet) between(least, most int) { f.least, f.most = least, most }

// watch adds the machines whose names begin so.
func (l *ledger) watch(prefix string) *fleet {
	f := &fleet{prefix: prefix}
	l.fleets = append(l.fleets, f)
	return f
}

// is reports whether the fleet has so many machines, and has made so many since the beginning. It never makes more.
func (l *ledger) is(f *fleet, exist, made int) (string, bool) {
	l.w.t.Helper()
	if f.Created > made {
		l.w.t.Fatalf("the cloud has made %d machines of %s, want %d", f.Created, f.prefix, made)
	}
	return fmt.Sprintf("machines of %s: %+v", f.prefix, f.tally), f.Exist == exist && f.Created == made
}

// follow reads the events since the last call, checks the number of machines after each of them, and looks at the Nodes.
func (l *ledger) follow() {
	l.w.t.Helper()
	var events struct {
		Items []struct {
			Sequence                  int
			Verb, Kind, Name, Message string
		}
	}
	l.ask(fmt.Sprintf("/events?after=%d", l.last), &events)
	for _, e := range events.Items {
		l.last = e.Sequence
		if e.Kind != "machine" {
			continue
		}
		f := l.fleetOf(e.Name)
		if f == nil {
			l.w.t.Errorf("the cloud has a machine that belongs to no fleet: %+v", e)
			continue
		}
		switch e.Verb {
		case "create":
			f.Created++
			f.Exist++
		case "delete":
			f.Deleted++
			f.Exist--
		case "vanish":
			f.Vanished++
			f.Exist--
		case "fail":
			l.w.t.Errorf("machine %s failed: %s", e.Name, e.Message)
		}
		if f.Exist < f.least || f.Exist > f.most {
			l.w.t.Errorf("after %s of %s, %d machines of %s exist, want %d to %d", e.Verb, e.Name, f.Exist, f.prefix, f.least, f.most)
		}
	}
	for cluster := range l.clusters {
		l.followNodes(cluster)
	}
}

func (l *ledger) fleetOf(name string) *fleet {
	for _, f := range l.fleets {
		if strings.HasPrefix(name, f.prefix) {
			return f
		}
	}
	return nil
}

// followNodes checks that a Node goes only with its machine. It leaves out clusters that cannot be reached.
func (l *ledger) followNodes(cluster string) {
	l.w.t.Helper()
	if l.clusters[cluster] == nil {
		l.clusters[cluster] = l.connect(cluster)
	}
	list := &corev1.NodeList{}
	if l.clusters[cluster] == nil || l.clusters[cluster].List(l.w.ctx, list) != nil {
		return
	}
	now := map[string]string{}
	for _, n := range list.Items {
		now[n.Name] = n.Spec.ProviderID
	}
	for name, id := range l.nodes[cluster] {
		if _, ok := now[name]; ok {
			continue
		}
		for _, m := range l.machines() {
			if m.ProviderID == id && m.State != "deleting" {
				l.w.t.Errorf("Node %s was deleted, and its machine is %s", name, m.State)
			}
		}
	}
	l.nodes[cluster] = now
}

// connect returns a client of a cluster's API server, or nil while there is no kubeconfig.
func (l *ledger) connect(cluster string) client.Client {
	l.w.t.Helper()
	s := &corev1.Secret{}
	if l.w.Get(l.w.ctx, client.ObjectKey{Namespace: namespace, Name: cluster + "-kubeconfig"}, s) != nil {
		return nil
	}
	config, err := clientcmd.RESTConfigFromKubeConfig(s.Data["value"])
	if err != nil {
		l.w.t.Fatal(err)
	}
	config.Timeout = 30 * time.Second
	c, err := client.New(config, client.Options{Scheme: l.w.Scheme()})
	if err != nil {
		return nil
	}
	return c
}

// machine is a machine of the fake cloud.
type machine struct{ ID, Name, Node, ProviderID, State, Version string }

func (l *ledger) machines() []machine {
	l.w.t.Helper()
	var list struct{ Items []machine }
	l.ask("/machines", &list)
	return list.Items
}

func (l *ledger) counts() counts {
	l.w.t.Helper()
	var c counts
	l.ask("/counts", &c)
	return c
}

// vanish takes a machine of a fleet away without a trace, as a failure of its host does.
func (l *ledger) vanish(f *fleet) {
	l.w.t.Helper()
	for _, m := range l.machines() {
		if l.fleetOf(m.Name) != f {
			continue
		}
		resp, err := http.Post(l.url+"/machines/"+m.ID+"/vanish", "", nil)
		if err != nil {
			l.w.t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusNoContent {
			l.w.t.Fatalf("make machine %s vanish: %s", m.Name, resp.Status)
		}
		return
	}
	l.w.t.Fatalf("there is no machine of %s", f.prefix)
}

// ask decodes an answer of the cloud.
func (l *ledger) ask(path string, result any) {
	l.w.t.Helper()
	if err := get(l.url+path, result); err != nil {
		l.w.t.Fatal(err)
	}
}

func get(url string, result any) error {
	resp, err := http.Get(url)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return err
	}
	return json.Unmarshal(body, result)
}
