// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"strings"
	"testing"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/rs/zerolog"
)

// The faults of a connection, as Toxiproxy names them. Downstream is towards who has connected: the gateway if the
// proxy is in front of an extension.
const (
	fiveSecondsLate = `{"name": "late", "type": "latency", "stream": "downstream", "attributes": {"latency": 5000}}`
	swallow         = `{"name": "swallow", "type": "timeout", "stream": "downstream", "attributes": {"timeout": 0}}`
	reset           = `{"name": "reset", "type": "reset_peer", "stream": "downstream", "attributes": {"timeout": 0}}`
)

// proxy is a fault proxy in front of one address.
type proxy struct {
	*toxiproxy.Proxy
}

// startProxy starts a proxy of an address, without any fault yet.
func startProxy(t *testing.T, upstream string) *proxy {
	t.Helper()
	server := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(prometheus.NewRegistry()), zerolog.Nop())
	p := &proxy{toxiproxy.NewProxy(server, t.Name(), "127.0.0.1:0", upstream)}
	if err := p.Start(); err != nil {
		t.Fatalf("start fault proxy: %v", err)
	}
	t.Cleanup(p.Stop)
	return p
}

// inject adds a fault to all connections, those that exist included.
func (p *proxy) inject(t *testing.T, toxic string) {
	t.Helper()
	if _, err := p.Toxics.AddToxicJson(strings.NewReader(toxic)); err != nil {
		t.Fatalf("inject %s: %v", toxic, err)
	}
}

// heal removes all faults.
func (p *proxy) heal(t *testing.T) {
	t.Helper()
	p.Toxics.ResetToxics(t.Context())
}
