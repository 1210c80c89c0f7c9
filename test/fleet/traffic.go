// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/util/uuid"
)

// The phases of a recording.
const (
	phaseCreate  = "create"
	phaseSteady  = "steady"
	phaseUpgrade = "upgrade"
	phaseRestart = "restart"
)

// coreSync is how often Cluster API reconciles each Cluster by default (--sync-period).
const coreSync = 10 * time.Minute

// traffic is what the real core sent for some Clusters, as TestTraffic of test/e2e records it.
type traffic struct {
	ClusterAPI string             `json:"clusterAPI"`
	Recorded   string             `json:"recorded"`
	Clusters   []string           `json:"clusters"`
	Sync       float64            `json:"syncSeconds"`
	Phases     map[string]float64 `json:"phaseSeconds"`

	// calls has, by phase, the calls of each Cluster in their order.
	calls map[string][][]call
	hooks []string // all of them, sorted
}

// call is a recorded call.
type call struct {
	hook string
	body *body
}

// body is a request in which the names of its Cluster and the UIDs of its items are replaced.
type body struct{ parts []part }

type part struct {
	text []byte // nil for the name of the Cluster, or the UID of an item
	item int    // 0 for the name
}

// line is a line of a recording after the first.
type line struct {
	Phase   string          `json:"phase"`
	Cluster string          `json:"cluster"`
	Hook    string          `json:"hook"`
	Body    int             `json:"body"`
	Request json.RawMessage `json:"request"`
}

// readTraffic reads a recording.
func readTraffic(file string) (*traffic, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	zip, err := gzip.NewReader(bufio.NewReader(f))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	t, err := decodeTraffic(zip)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return t, nil
}

func decodeTraffic(from io.Reader) (*traffic, error) {
	lines := json.NewDecoder(from)
	t := &traffic{calls: map[string][][]call{}}
	if err := lines.Decode(t); err != nil {
		return nil, err
	}
	if len(t.Clusters) == 0 || t.Sync <= 0 || t.Phases[phaseSteady] < t.Sync {
		return nil, errors.New("the first line names no Clusters, or no steady state of a sync period or more")
	}
	bodies := map[int]*body{}
	for {
		var l line
		if err := lines.Decode(&l); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, err
		}
		cluster := slices.Index(t.Clusters, l.Cluster)
		if cluster < 0 {
			return nil, fmt.Errorf("a call is for Cluster %q, which the first line does not name", l.Cluster)
		}
		if l.Request != nil {
			bodies[l.Body] = newBody(l.Request, l.Cluster)
		}
		if bodies[l.Body] == nil {
			return nil, fmt.Errorf("no call before it has body %d", l.Body)
		}
		if t.calls[l.Phase] == nil {
			t.calls[l.Phase] = make([][]call, len(t.Clusters))
		}
		t.calls[l.Phase][cluster] = append(t.calls[l.Phase][cluster], call{l.Hook, bodies[l.Body]})
		if !slices.Contains(t.hooks, l.Hook) {
			t.hooks = append(t.hooks, l.Hook)
		}
	}
	slices.Sort(t.hooks)
	for _, phase := range []string{phaseSteady, phaseRestart} {
		if t.calls[phase] == nil {
			return nil, fmt.Errorf("no call of the phase %s", phase)
		}
	}
	return t, nil
}

// placeholder is the UID of an item in a recording.
var placeholder = regexp.MustCompile(`"@([0-9]+)"`)

func newBody(request []byte, cluster string) *body {
	b := &body{}
	text := func(from []byte) {
		for i, piece := range bytes.Split(from, []byte(cluster)) {
			if i > 0 {
				b.parts = append(b.parts, part{})
			}
			if len(piece) > 0 {
				b.parts = append(b.parts, part{text: piece})
			}
		}
	}
	at := 0
	for _, m := range placeholder.FindAllSubmatchIndex(request, -1) {
		text(request[at : m[0]+1])
		n, _ := strconv.Atoi(string(request[m[2]:m[3]])) // digits
		b.parts = append(b.parts, part{item: n})
		at = m[1] - 1
	}
	text(request[at:])
	return b
}

// of returns the request for a Cluster with new UIDs, as core makes it.
func (b *body) of(cluster string) []byte {
	var request []byte
	uids := map[int]string{}
	for _, p := range b.parts {
		switch {
		case p.text != nil:
			request = append(request, p.text...)
		case p.item == 0:
			request = append(request, cluster...)
		default:
			if uids[p.item] == "" {
				uids[p.item] = string(uuid.NewUUID())
			}
			request = append(request, uids[p.item]...)
		}
	}
	return request
}

// nameOf returns the name of the i-th Cluster of a fleet, which does as the recorded one does that its name begins with.
func (t *traffic) nameOf(i int) string {
	return fmt.Sprintf("%s-%05d", t.Clusters[i%len(t.Clusters)], i)
}

// callsOf returns what the i-th Cluster of a fleet calls in a phase.
func (t *traffic) callsOf(phase string, i int) []call {
	if t.calls[phase] == nil {
		return nil
	}
	return t.calls[phase][i%len(t.Clusters)]
}

// reconcile returns the calls of one reconciliation of the i-th Cluster in the steady state: the last that was recorded.
func (t *traffic) reconcile(i int) []call {
	calls := t.callsOf(phaseSteady, i)
	for at := len(calls) - 1; at > 0; at-- {
		if calls[at].hook == calls[0].hook {
			return calls[at:]
		}
	}
	return calls
}

// reconcilesPerSecond returns how often core reconciles any Cluster of a fleet in the steady state, by its own period.
func (t *traffic) reconcilesPerSecond(clusters int) float64 {
	reconciles := 0.0
	for i := range t.Clusters {
		if calls, one := len(t.callsOf(phaseSteady, i)), len(t.reconcile(i)); one > 0 {
			reconciles += float64(calls) / float64(one)
		}
	}
	syncs := t.Phases[phaseSteady] / t.Sync
	return reconciles / float64(len(t.Clusters)) / syncs * float64(clusters) / coreSync.Seconds()
}

// callsPerReconcile returns how many calls a reconciliation in the steady state has on average.
func (t *traffic) callsPerReconcile() float64 {
	n := 0
	for i := range t.Clusters {
		n += len(t.reconcile(i))
	}
	return float64(n) / float64(len(t.Clusters))
}
