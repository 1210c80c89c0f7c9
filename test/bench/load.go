// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
)

// callTimeout bounds one call. It is above the 10 s that callers ask for in ?timeout, so that a peer's own timeout is
// seen.
const callTimeout = 30 * time.Second

// callersPerAddress is how many connections of callers have the same address.
const callersPerAddress = limits.HostConnections / 2

// protocol is the protocol of callers, by its name in flags.
type protocol string

const (
	http1Protocol protocol = "h1"
	http2Protocol protocol = "h2"
)

func (p protocol) String() string {
	if p == http2Protocol {
		return "HTTP/2"
	}
	return "HTTP/1.1"
}

// caller makes the same call again and again. It belongs to one goroutine.
type caller interface {
	// call sends the request, reads the whole answer and checks it.
	call() error
	close() error
}

// load is a number of callers of one path. The same load is put on every peer.
type load struct {
	address  string
	caPEM    []byte
	path     string
	body     []byte
	callers  int
	protocol protocol
}

// loadOf is what the cell puts on the peer.
func loadOf(c cell, p *peer, caPEM []byte) load {
	return load{
		address: p.address, caPEM: caPEM, path: p.path(c.hook, c.handler), body: c.body,
		callers: c.callers, protocol: c.protocol,
	}
}

// open connects the callers: over HTTP/1.1 each has its own connection, over HTTP/2 all share one, as Cluster API's do.
func (l load) open(ctx context.Context) ([]caller, error) {
	if l.protocol == http2Protocol {
		return l.openHTTP2(ctx)
	}
	var cs []caller
	request := http1Request(l.path, l.body)
	for i := range l.callers {
		conn, err := l.dial(ctx, i)
		if err != nil {
			closeAll(cs)
			return nil, err
		}
		cs = append(cs, &http1Caller{conn: conn, reader: bufio.NewReader(conn), request: request})
	}
	return cs, nil
}

func (l load) openHTTP2(ctx context.Context) ([]caller, error) {
	config, err := clientTLS(l.caPEM)
	if err != nil {
		return nil, err
	}
	var protocols http.Protocols
	protocols.SetHTTP2(true)
	transport := &http.Transport{TLSClientConfig: config, Protocols: &protocols, DisableCompression: true}
	conn, err := transport.NewClientConn(ctx, "https", l.address)
	if err != nil {
		return nil, err
	}
	u := &url.URL{Scheme: "https", Host: "localhost", Path: l.path, RawQuery: "timeout=10s"}
	var cs []caller
	for range l.callers {
		cs = append(cs, &http2Caller{conn: conn, url: u, body: l.body})
	}
	return cs, nil
}

// dial opens a connection for HTTP/1.1. The gateway limits the connections of one address, so that callers have several.
func (l load) dial(ctx context.Context, i int) (*tls.Conn, error) {
	const alpn = "http/1.1"
	config, err := clientTLS(l.caPEM, alpn)
	if err != nil {
		return nil, err
	}
	from := &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(1+i/callersPerAddress))}
	d := tls.Dialer{NetDialer: &net.Dialer{Timeout: 5 * time.Second, LocalAddr: from}, Config: config}
	var c net.Conn
	// The gateway may not have seen yet that the connections of the round before are closed.
	err = poll(ctx, 5*time.Second, func() error {
		c, err = d.DialContext(ctx, "tcp", l.address)
		return err
	})
	if err != nil {
		return nil, err
	}
	conn := c.(*tls.Conn) // Documented to be one.
	if got := conn.ConnectionState().NegotiatedProtocol; got != alpn {
		return nil, errors.Join(fmt.Errorf("the peer chose protocol %q, want %q", got, alpn), conn.Close())
	}
	return conn, nil
}

// closeAll closes connections; a peer may have closed its end already.
func closeAll(cs []caller) {
	for _, c := range cs {
		_ = c.close()
	}
}

// sample is what one drive measured.
type sample struct {
	// latencies holds the latency of every call, sorted.
	latencies []time.Duration
	elapsed   time.Duration
}

// drive makes all callers call for d, each one call after the other, and at least once. The first error stops all and
// closes their connections.
func drive(ctx context.Context, cs []caller, d time.Duration) (sample, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// A call that waits for its answer does not look at ctx, but it notices when its connection closes.
	defer context.AfterFunc(ctx, func() { closeAll(cs) })()
	latencies := make([][]time.Duration, len(cs))
	var wg sync.WaitGroup
	start := time.Now()
	end := start.Add(d)
	for i, c := range cs {
		wg.Go(func() {
			own := make([]time.Duration, 0, 1<<12)
			defer func() { latencies[i] = own }()
			for before := start; ctx.Err() == nil; {
				if err := c.call(); err != nil {
					cancel(fmt.Errorf("call %d of caller %d: %w", len(own)+1, i+1, err))
					return
				}
				now := time.Now()
				own = append(own, now.Sub(before))
				if !now.Before(end) {
					return
				}
				before = now
			}
		})
	}
	wg.Wait()
	s := sample{latencies: slices.Concat(latencies...), elapsed: time.Since(start)}
	slices.Sort(s.latencies)
	return s, context.Cause(ctx)
}

// checkAnswer makes sure that the peer did the work.
func checkAnswer(status int, body []byte) error {
	if status != http.StatusOK || !bytes.Contains(body, []byte(`"status":"Success"`)) {
		return fmt.Errorf("answer is %d %.300q, want 200 with status Success", status, body)
	}
	return nil
}

// http2Caller makes its calls as streams of a connection that it shares.
type http2Caller struct {
	conn   *http.ClientConn
	url    *url.URL
	body   []byte
	answer bytes.Buffer
}

func (c *http2Caller) call() error {
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	req := (&http.Request{
		Method:        http.MethodPost,
		URL:           c.url,
		Header:        http.Header{"Content-Type": {"application/json"}},
		Body:          io.NopCloser(bytes.NewReader(c.body)),
		ContentLength: int64(len(c.body)),
	}).WithContext(ctx)
	resp, err := c.conn.RoundTrip(req)
	if err != nil {
		return err
	}
	c.answer.Reset()
	_, err = c.answer.ReadFrom(io.LimitReader(resp.Body, maxAnswer))
	if closeErr := resp.Body.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return fmt.Errorf("read body of answer: %w", err)
	}
	return checkAnswer(resp.StatusCode, c.answer.Bytes())
}

// close closes the shared connection, for all of its callers.
func (c *http2Caller) close() error { return c.conn.Close() }

// percentile returns the value that p percent of the sorted values do not exceed (nearest rank), and 0 without values.
func percentile(sorted []time.Duration, p float64) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := int(math.Ceil(p / 100 * float64(len(sorted))))
	return sorted[min(max(rank, 1), len(sorted))-1]
}
