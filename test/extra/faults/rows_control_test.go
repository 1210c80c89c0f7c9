// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// controls are rows without a fault: their latencies show what work of that kind costs healthy callers on this machine.
func controls() []row {
	return []row{
		{"no fault: 64 calls", "200", misbehaving(healthy, success)},
		{"no fault: 32 callers send 5 MiB", "200; 503 after a wait for memory, on a busy machine", largeToHealthy},
	}
}

// largeToHealthy sends large requests to an extension that answers, all at the same time.
func largeToHealthy(t *testing.T, w *fixture, c *tally) {
	p := startExtension(t, w.authority, healthy)
	name := w.register(t, "https://"+p.https)
	body := largeBody(5 << 20)
	overloaded := failure(http.StatusServiceUnavailable)
	var running sync.WaitGroup
	for range 32 {
		running.Go(func() {
			got, err := post(w.rest, w.gateway.HTTPS, handler+"."+name, body)
			c.answered(got, err, func(got answer) bool { return success(got) || overloaded(got) })
		})
	}
	running.Wait()
}

// largeBody returns a request with a Cluster of about that many bytes.
func largeBody(size int) []byte {
	return []byte(`{"cluster":{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster",` +
		`"metadata":{"name":"c","namespace":"n","annotations":{"a":"` + strings.Repeat("x", size) + `"}}}}`)
}

// success reports whether an answer is the extension's own.
func success(got answer) bool {
	return got.code == http.StatusOK && bytes.Contains(got.body, []byte(`"message":"`+say+`"`))
}
