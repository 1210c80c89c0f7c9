// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hookgate/hookgate/test/process"
)

// endpointFaults are the rows of an extension with several endpoints.
func endpointFaults() []row {
	return []row{
		{"2 of 3 endpoints are killed", "503 Unreachable for calls in flight, then the answer of the third", endpointsGone},
	}
}

// service is the name of the host with several endpoints, which the gateway's own /etc/hosts has.
const service = "endpoints.test"

// known is when the gateway has read at the latest that the connections to a dead process have ended. Until then, it
// sends calls on them, which may have been answered for all that it knows.
const known = 100 * time.Millisecond

// endpointsGone kills two of three endpoints of an extension under load, over JSON and gRPC, and starts them again.
func endpointsGone(t *testing.T, w *fixture, c *tally) {
	hosts := filepath.Join(t.TempDir(), "hosts")
	lines := []string{"127.0.0.1 localhost\n"}
	var endpoints []*program
	at := []string{"127.0.0.11:0", "127.0.0.11:0"}
	certs := w.dir(t, service, "127.0.0.11", "127.0.0.12", "127.0.0.13")
	for i := range 3 {
		address := fmt.Sprintf("127.0.0.%d", 11+i)
		lines = append(lines, address+" "+service+"\n")
		p := startExtensionAt(t, w.authority, healthy, certs, on(address, at[0]), on(address, at[1]))
		at = []string{p.https, p.grpcs}
		endpoints = append(endpoints, p)
	}
	if err := os.WriteFile(hosts, []byte(strings.Join(lines, "")), 0o600); err != nil {
		t.Fatal(err)
	}
	// Connections are soon replaced, so that endpoints that came back are called again.
	g := newGateway(t, w.authority, map[string]string{
		"rest.yaml": w.config("rest", "https://"+on(service, at[0])),
		"grpc.yaml": w.config("grpc", "grpcs://"+on(service, at[1])),
	}, "--connection-max-age=2s")
	g.hosts = hosts
	g.start(t, process.AnyPorts())

	stop := w.steady(t, g.HTTPS, g.GRPC, steadyEach, handler+".rest", handler+".grpc")
	defer stop()
	reachAll(t, endpoints)
	began := time.Now()
	for _, p := range endpoints[:2] {
		p.Kill()
	}
	ended := time.Now().Add(known)
	endpoints[2].awaitCalls(t, endpoints[2].calls(t)+500)
	for i := range endpoints[:2] {
		old := endpoints[i]
		endpoints[i] = startExtensionAt(t, w.authority, healthy, certs, old.https, old.grpcs)
	}
	reachAll(t, endpoints)
	broken := 0
	for _, got := range stop() {
		inFlight := got.began.Before(ended) && got.ended.After(began)
		if got.err != nil && inFlight {
			broken++
		}
		c.countf(got.err == nil || inFlight && got.unreachable, "%v", got.err)
	}
	t.Logf("broken: %d calls in flight", broken)
}

// on returns an address with another host.
func on(host, address string) string {
	_, port, _ := net.SplitHostPort(address)
	return net.JoinHostPort(host, port)
}

// reachAll waits until further calls have reached each endpoint.
func reachAll(t *testing.T, endpoints []*program) {
	t.Helper()
	for _, p := range endpoints {
		p.awaitCalls(t, p.calls(t)+20)
	}
}
