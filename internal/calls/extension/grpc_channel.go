// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"google.golang.org/grpc"
	_ "google.golang.org/grpc/health" // lets channels follow the health service
	"google.golang.org/grpc/keepalive"

	"github.com/hookgate/hookgate/internal/network/connect"
	"github.com/hookgate/hookgate/internal/network/endpoint"
	"github.com/hookgate/hookgate/registry"
)

const (
	// serviceConfig makes calls take turns on the healthy addresses of a host.
	serviceConfig = `{"loadBalancingConfig":[{"round_robin":{}}],"healthCheckConfig":{"serviceName":""}}`
	// pingTime is more than the five minutes that servers want between two pings by default.
	pingTime = 6 * time.Minute
	// pingTimeout is also for how long data may stay unacknowledged before a connection counts as broken.
	pingTimeout = 20 * time.Second
)

// channel holds the connections to an extension that were made in one period. Its owner refers to it, and each call.
type channel struct {
	refs
	conn    *connect.GRPC
	hosts   *hostResolvers
	expires time.Time
	// budget and outage are those of the extension: a new channel takes over those of the old one.
	budget *retryBudget
	outage *outage
	// lacksHealth reports whether the server has no health service; nil before it has answered.
	lacksHealth atomic.Pointer[bool]
}

// channels holds the channels in use.
type channels struct {
	config *Config
	wire   []grpc.DialOption

	mu    sync.Mutex
	byKey map[routeKey]*channel
}

// get returns the channel to cc, acquired. It does no I/O.
func (cs *channels) get(cc registry.ClientConfig, now time.Time) (*channel, error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	old := cs.byKey[routeKey{
		owner: cc.Owner, url: cc.URL, caBundle: string(cc.CABundle), inCluster: cc.InCluster,
	}]
	if old != nil && now.Before(old.expires) && old.acquire() {
		return old, nil
	}
	c, err := cs.newChannel(cc)
	if err != nil {
		return nil, err
	}
	c.expires, c.budget, c.outage = now.Add(cs.config.MaxConnectionAge), &retryBudget{}, &outage{}
	if old != nil {
		c.budget, c.outage = old.budget, old.outage
	}
	if cs.byKey == nil {
		cs.byKey = map[routeKey]*channel{}
	}
	c.acquire() // for cs, until the channel is replaced or removed
	cs.byKey[keyOf(cc)] = c
	if old != nil {
		go old.release() // closing connections is I/O
	}
	return c, nil
}

// retain removes the channels that lead to none of ccs.
func (cs *channels) retain(ccs []registry.ClientConfig) {
	wanted := make(map[routeKey]bool, len(ccs))
	for _, cc := range ccs {
		wanted[keyOf(cc)] = true
	}
	var unused []*channel
	cs.mu.Lock()
	for key, c := range cs.byKey {
		if !wanted[key] {
			delete(cs.byKey, key)
			unused = append(unused, c)
		}
	}
	cs.mu.Unlock()
	for _, c := range unused {
		c.release()
	}
}

// newChannel returns a channel that its caller has acquired, and that connects when it is first used.
func (cs *channels) newChannel(cc registry.ClientConfig) (*channel, error) {
	config := cs.config
	e, roots, err := parse(cc)
	if err != nil {
		return nil, err
	}
	if e.Scheme == endpoint.GRPC && len(cc.CABundle) > 0 {
		return nil, errors.New("caBundle: there is no TLS with grpc://; use grpcs://, or remove the caBundle")
	}
	partner := config.partners.of(e, cc.CABundle)
	resolvers := &hostResolvers{
		endpoint: e, lookup: config.LookupHost, failures: &connect.Failures{Seen: partner.refused},
	}
	if cc.InCluster {
		resolvers.endpoints = config.Endpoints
	}
	gc := connect.GRPCConfig{
		Scheme: hostScheme, Network: e.Network, Address: e.Address, Authority: e.Authority,
		Failures: resolvers.failures, BodyBytes: config.BodyBytes, UserAgent: "hookgate",
		Bucket: config.bucket,
		Options: append([]grpc.DialOption{
			grpc.WithResolvers(resolvers),
			grpc.WithDefaultServiceConfig(serviceConfig),
			grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingTime, Timeout: pingTimeout}),
		}, cs.wire...),
	}
	if e.HasTLS() {
		gc.TLS = config.clientTLS(roots, partner)
	}
	if e.Network == "tcp" {
		gc.Control = config.Allowed.Control(e.Host)
	} else {
		gc.Control = func(_, path string, _ syscall.RawConn) error { return config.Allowed.Socket(path) }
	}
	conn, err := connect.NewGRPC(gc)
	if err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	c := &channel{conn: conn, hosts: resolvers}
	c.init(func() { _ = conn.Close() }) // an error would say that it is closed
	return c, nil
}
