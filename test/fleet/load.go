// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	utilnet "k8s.io/apimachinery/pkg/util/net"
)

// mostWaiting bounds the reconciliations of an open loop that have not ended.
const mostWaiting = 5000

// caller calls as Cluster API's core does: with its transport (internal/runtime/client, createHTTPClient), which keeps
// one connection over HTTP/2 to the host of an extension.
type caller struct {
	client *http.Client
	suffix string // of names of handlers
	of     *traffic
}

// newCaller returns a caller whose connections dial makes.
func newCaller(of *traffic, config *tls.Config, suffix string, dial func(context.Context, string, string) (net.Conn, error)) *caller {
	transport := utilnet.SetTransportDefaults(&http.Transport{TLSClientConfig: config.Clone(), DialContext: dial})
	return &caller{client: &http.Client{Transport: transport}, suffix: suffix, of: of}
}

func (c *caller) close() { c.client.CloseIdleConnections() }

// call makes one call, and returns an error unless it is answered with Success.
func (c *caller) call(ctx context.Context, k call, cluster string) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	url := "https://localhost" + pathOf(k.hook, handlerOf(k.hook)+c.suffix) + "?timeout=" + callTimeout.String()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url, bytes.NewBuffer(k.body.of(cluster)))
	if err != nil {
		return err
	}
	response, err := c.client.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(response.Body)
	switch {
	case err != nil:
		return err
	case response.StatusCode != http.StatusOK || !bytes.Contains(answer, []byte(`"status":"Success"`)):
		return fmt.Errorf("%s: status %d: %.300s", k.hook, response.StatusCode, answer)
	}
	return nil
}

// callTimeout is the timeout of a handler that states none, which core gives each call.
const callTimeout = 10 * time.Second

// outcome is what callers have seen.
type outcome struct {
	took      time.Duration   // in all
	latencies []time.Duration // of calls that were answered
	lost      int
	first     error // of those that were lost
}

// tally adds up an outcome. It is safe for concurrent use.
type tally struct {
	mu sync.Mutex
	outcome
}

func (t *tally) add(took time.Duration, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err == nil {
		t.latencies = append(t.latencies, took)
		return
	}
	t.lost++
	if t.first == nil {
		t.first = err
	}
}

// join adds another outcome.
func (o *outcome) join(other outcome) {
	o.took += other.took
	o.latencies = append(o.latencies, other.latencies...)
	o.lost += other.lost
	if o.first == nil {
		o.first = other.first
	}
}

func (o outcome) calls() int { return len(o.latencies) + o.lost }

// percentile returns the latency that a part of the calls did not exceed (nearest rank); 0 without calls.
func (o outcome) percentile(part float64) time.Duration {
	if len(o.latencies) == 0 {
		return 0
	}
	slices.Sort(o.latencies)
	rank := int(math.Ceil(part * float64(len(o.latencies))))
	return o.latencies[min(max(rank, 1), len(o.latencies))-1]
}

// open begins so many reconciliations a second of Clusters of a fleet for some time, or until it is enough, however long
// they take, at random moments as those of many Clusters are. The first call of each counts from when it was due.
func (c *caller) open(
	ctx context.Context, clusters int, perSecond float64, d time.Duration, enough <-chan struct{},
) (outcome, error) {
	var t tally
	var running sync.WaitGroup
	var waiting atomic.Int64
	began := time.Now()
	for due := began; ; {
		due = due.Add(time.Duration(rand.ExpFloat64() / perSecond * float64(time.Second)))
		over := due.After(began.Add(d))
		if over {
			due = began.Add(d)
		}
		select {
		case <-ctx.Done():
			running.Wait()
			return t.outcome, context.Cause(ctx)
		case <-enough:
			over = true
		case <-time.After(time.Until(due)):
		}
		if over {
			break
		}
		if waiting.Add(1) > mostWaiting {
			running.Wait()
			return t.outcome, fmt.Errorf("%d reconciliations wait: the rate is too high", mostWaiting)
		}
		i, at := rand.IntN(clusters), due
		running.Go(func() {
			defer waiting.Add(-1)
			for _, k := range c.of.reconcile(i) {
				err := c.call(ctx, k, c.of.nameOf(i))
				t.add(time.Since(at), err)
				at = time.Now()
			}
		})
	}
	running.Wait()
	t.took = time.Since(began)
	return t.outcome, context.Cause(ctx)
}

// closed lets as many workers as core has make the calls of a phase, Cluster by Cluster.
func (c *caller) closed(ctx context.Context, phase string, clusters, workers int) (outcome, error) {
	var t tally
	var running sync.WaitGroup
	var next atomic.Int64
	began := time.Now()
	for range workers {
		running.Go(func() {
			for ctx.Err() == nil {
				i := int(next.Add(1)) - 1
				if i >= clusters {
					return
				}
				for _, k := range c.of.callsOf(phase, i) {
					at := time.Now()
					err := c.call(ctx, k, c.of.nameOf(i))
					t.add(time.Since(at), err)
				}
			}
		})
	}
	running.Wait()
	t.took = time.Since(began)
	return t.outcome, context.Cause(ctx)
}
