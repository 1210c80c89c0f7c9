// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"

	"github.com/hookgate/hookgate/test/process"
)

// callerFaults are the rows whose fault is a caller's.
func callerFaults() []row {
	tooLarge, invalid := http.StatusRequestEntityTooLarge, http.StatusBadRequest
	return []row{
		{"caller sends a bomb of items", "413 TooLarge", bomb(`{"settings":{"a":"b"},"cluster":{},"items":[`, "{},", 30<<20, `{}]}`, tooLarge)},
		{"caller sends a gzip bomb", "413 TooLarge", bomb(`{"items":"`, "x", 200<<20, `"}`, tooLarge)},
		{"caller sends a bomb without a cluster", "400 InvalidRequest", bomb(`{"extra":[`, "[],", 18<<20, `0]}`, invalid)},
		{"caller nests JSON", "400 InvalidRequest", bomb(`{"extra":`, "[", 10<<20, `}`, invalid)},
		{"10,000 idle callers of one host", "at most 500 stay connected", idleCallers},
		{"slow callers", "their connections are closed within 10 s", slowCallers},
		{"slow gRPC callers", "their connections are closed within 10 s", slowPrefaces},
	}
}

// bomb returns the fault of callers that send a small text that is a large one once it is decompressed.
func bomb(begin, text string, size int, end string, code int) func(*testing.T, *fixture, *tally) {
	return func(t *testing.T, w *fixture, c *tally) {
		body := zip(begin, text, size, end)
		var running sync.WaitGroup
		for range 8 {
			running.Go(func() {
				for range 4 {
					got, err := postZipped(w.rest, w.gateway.HTTPS, handler+".good-rest", body)
					// Decompressed, they are 20 MiB at the same time: more than the share of one caller.
					c.answered(got, err, failure(code, http.StatusServiceUnavailable))
				}
			})
		}
		running.Wait()
	}
}

// idleCallers connects far more often than a host may, and says nothing.
func idleCallers(t *testing.T, w *fixture, c *tally) {
	dial := dialFrom(attacker)
	var open []net.Conn
	defer func() {
		for _, conn := range open {
			_ = conn.Close()
		}
	}()
	const slack = 100 // connections that are being refused, and those of healthy callers that come meanwhile
	before := w.gateway.watchDescriptors(t)()
	watched := w.gateway.watchDescriptors(t)
	for range 10_000 {
		conn, err := dial(t.Context(), "tcp", w.gateway.HTTPS)
		if err != nil {
			t.Fatalf("connection %d: %v", len(open), err)
		}
		open = append(open, conn)
	}
	var closed atomic.Int64
	var running sync.WaitGroup
	for _, conn := range open {
		running.Go(func() {
			_, _ = conn.Read(make([]byte, 1)) // until either side closes it
			closed.Add(1)
		})
	}
	process.Eventually(t, "the gateway has closed all but 500", func() bool { return closed.Load() >= 9_500 })
	// The gateway closes the others, which begin no handshake, after 10 s: so what it has had at a time counts.
	stay := watched() - before
	c.countf(stay <= 500+slack, "%d of 10,000 connections were open at a time", stay)
}

// watchDescriptors samples how many descriptors the gateway has until the returned function is called, which returns the
// highest sample.
func (g *gateway) watchDescriptors(t *testing.T) (stop func() int) {
	t.Helper()
	done, most := make(chan struct{}), make(chan int, 1)
	go func() {
		highest := 0
		for tick := time.NewTicker(10 * time.Millisecond); ; {
			if open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", g.pid)); err == nil {
				highest = max(highest, len(open))
			}
			select {
			case <-tick.C:
			case <-done:
				tick.Stop()
				most <- highest
				return
			}
		}
	}()
	stop = sync.OnceValue(func() int {
		close(done)
		return <-most
	})
	t.Cleanup(func() { _ = stop() })
	return stop
}

// slowCallers sends headers byte by byte.
func slowCallers(t *testing.T, w *fixture, c *tally) {
	var running sync.WaitGroup
	for range 100 {
		running.Go(func() {
			conn, err := (&tls.Dialer{Config: w.client, NetDialer: &net.Dialer{
				LocalAddr: &net.TCPAddr{IP: net.ParseIP(attacker)},
			}}).DialContext(t.Context(), "tcp", w.gateway.HTTPS)
			if err != nil {
				c.countf(false, "%v", err)
				return
			}
			defer func() { _ = conn.Close() }()
			_, _ = io.WriteString(conn, "POST / HTTP/1.1\r\nHost: a\r\nX-Slow: ")
			for deadline := time.Now().Add(process.Patience); ; time.Sleep(200 * time.Millisecond) {
				if _, err := io.WriteString(conn, "x"); err != nil {
					c.countf(true, "")
					return
				}
				if time.Now().After(deadline) {
					c.countf(false, "a connection whose header does not end stays open")
					return
				}
			}
		})
	}
	running.Wait()
}

// slowPrefaces sends the beginning of HTTP/2 byte by byte to the gRPC address.
func slowPrefaces(t *testing.T, w *fixture, c *tally) {
	config := w.client.Clone()
	config.NextProtos = []string{"h2"}
	var running sync.WaitGroup
	for range 100 {
		running.Go(func() {
			conn, err := (&tls.Dialer{Config: config, NetDialer: &net.Dialer{
				LocalAddr: &net.TCPAddr{IP: net.ParseIP(attacker)},
			}}).DialContext(t.Context(), "tcp", w.gateway.GRPC)
			if err != nil {
				c.countf(false, "%v", err)
				return
			}
			defer func() { _ = conn.Close() }()
			for _, b := range []byte(http2.ClientPreface) { // for 24 s
				if _, err := conn.Write([]byte{b}); err != nil {
					c.countf(true, "")
					return
				}
				time.Sleep(time.Second)
			}
			c.countf(false, "a connection whose handshake does not end stays open")
		})
	}
	running.Wait()
}
