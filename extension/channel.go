// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	_ "google.golang.org/grpc/health" // lets channels follow the health service
	"google.golang.org/grpc/keepalive"

	"github.com/hookgate/hookgate/registry"
)

const (
	// serviceConfig makes calls take turns on the addresses of a host, those that are healthy.
	serviceConfig = `{"loadBalancingConfig":[{"round_robin":{}}],"healthCheckConfig":{"serviceName":""}}`
	// pingTime is more than the five minutes that servers want to have between two pings unless they are told otherwise.
	pingTime = 6 * time.Minute
	// pingTimeout is also for how long data may stay unacknowledged before a connection counts as broken.
	pingTimeout = 20 * time.Second
)

// redial is how an address that does not answer is tried again: soon, for an extension that restarts.
var redial = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 3 * time.Second},
	MinConnectTimeout: tlsTimeout,
}

// channel is the connections to an extension that were made in one period. Its users are its owner, and each call.
type channel struct {
	users
	conn    *grpc.ClientConn
	expires time.Time
	limit   int64 // of an answer, in bytes
	failure failure
}

// failure is why the latest connection did not come about; nil after one that did. gRPC tells it as a text with
// addresses and ports in it.
type failure struct {
	err  atomic.Pointer[error]
	last atomic.Pointer[error] // the same, but of the latest one that did not
}

func (f *failure) set(err error) {
	f.err.Store(&err)
	if err != nil {
		f.last.Store(&err)
	}
}

// of returns the failure that gRPC speaks of. While a connection comes about, that is the one before it.
func (f *failure) of(detail string) error {
	err := f.get()
	if last := f.last.Load(); err == nil && last != nil &&
		(strings.Contains(detail, "Error while dialing") || strings.Contains(detail, "authentication handshake failed")) {
		return *last
	}
	return err
}

func (f *failure) get() error {
	if err := f.err.Load(); err != nil {
		return *err
	}
	return nil
}

// channels holds the channels in use.
type channels struct {
	config *Config

	mu    sync.Mutex
	byKey map[routeKey]*channel
}

// get returns the channel to cc, acquired. It does no I/O.
func (cs *channels) get(cc registry.ClientConfig, now time.Time) (*channel, error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	old := cs.byKey[routeKey{url: cc.URL, caBundle: string(cc.CABundle), inCluster: cc.InCluster}]
	if old != nil && now.Before(old.expires) && old.acquire() {
		return old, nil
	}
	c, err := newChannel(cs.config, cc)
	if err != nil {
		return nil, err
	}
	c.expires = now.Add(cs.config.MaxConnectionAge)
	if cs.byKey == nil {
		cs.byKey = map[routeKey]*channel{}
	}
	c.acquire() // for cs, until the channel is replaced or forgotten
	cs.byKey[keyOf(cc)] = c
	if old != nil {
		go old.release() // to close connections is I/O
	}
	return c, nil
}

// retain forgets the channels that are not to one of ccs.
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
func newChannel(config *Config, cc registry.ClientConfig) (*channel, error) {
	e, err := parseEndpoint(cc)
	if err != nil {
		return nil, err
	}
	c := &channel{limit: config.MaxBytes}
	var secure *tls.Config
	if e.tls {
		secure = config.clientTLS(e.roots)
	}
	conn, err := grpc.NewClient(hostScheme+":///"+url.PathEscape(e.address),
		grpc.WithResolvers(&hostResolvers{endpoint: e, endpoints: e.endpoints(config), lookup: config.LookupHost, failure: &c.failure}),
		grpc.WithAuthority(e.authority),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			d := net.Dialer{KeepAlive: keepAlive, Control: e.control()}
			conn, err := d.DialContext(ctx, e.network, address)
			if err != nil {
				c.failure.set(err)
			}
			return conn, err
		}),
		grpc.WithTransportCredentials(newHandshakes(secure, &c.failure)),
		grpc.WithDefaultServiceConfig(serviceConfig),
		grpc.WithDisableServiceConfig(),
		grpc.WithConnectParams(redial),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: pingTime, Timeout: pingTimeout}),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(int(config.MaxBytes)), grpc.MaxCallSendMsgSize(int(config.MaxBytes))),
		grpc.WithMaxHeaderListSize(maxHeaderBytes),
		grpc.WithStatsHandler(rpcWatcher{}),
		grpc.WithUserAgent("hookgate"),
	)
	if err != nil {
		return nil, fmt.Errorf("url: %w", err)
	}
	c.conn = conn
	c.begin(func() { _ = conn.Close() }) // an error would say that it is closed
	return c, nil
}

// endpoint is where one ClientConfig leads, for gRPC.
type endpoint struct {
	network   string // "tcp" or "unix"
	address   string // host:port, or the path of a socket
	authority string
	tls       bool
	service   bool           // the host is that of a Service of the cluster
	roots     *x509.CertPool // nil means the system's
}

// endpoints returns who knows the addresses behind the host, if it is that of a Service.
func (e *endpoint) endpoints(config *Config) Endpoints {
	if !e.service {
		return nil
	}
	return config.Endpoints
}

// control returns what checks the address of a connection.
func (e *endpoint) control() dialControl {
	if e.network == "unix" {
		return nil
	}
	return control
}

// parseEndpoint checks a ClientConfig.
func parseEndpoint(cc registry.ClientConfig) (*endpoint, error) {
	u, roots, err := parse(cc)
	if err != nil {
		return nil, err
	}
	e := &endpoint{network: "tcp", address: u.Host, authority: u.Host, roots: roots, service: cc.InCluster}
	switch u.Scheme {
	case registry.SchemeUnix:
		// The path of the socket would be no authority that servers take.
		e.network, e.address, e.authority = "unix", u.Path, "localhost"
		return e, nil
	case registry.SchemeGRPC:
	default:
		e.tls = true
		if u.Port() == "" {
			e.address = net.JoinHostPort(u.Hostname(), "443")
		}
	}
	if !e.tls && len(cc.CABundle) > 0 {
		return nil, errors.New("caBundle: there is no TLS with grpc://; use grpcs://, or leave it out")
	}
	return e, nil
}
