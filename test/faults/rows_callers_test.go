// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
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
func bomb(begin, text string, size int, end string, code int) func(*testing.T, *world, *tally) {
	return func(t *testing.T, w *world, c *tally) {
		body := zip(begin, text, size, end)
		var running sync.WaitGroup
		for range 8 {
			running.Go(func() {
				for range 4 {
					request, err := http.NewRequest(http.MethodPost,
						hookURL(w.gateway.HTTPS, handler+".good-rest"), bytes.NewReader(body))
					if err != nil {
						c.countf(false, "%v", err)
						return
					}
					request.Header.Set("Content-Encoding", "gzip")
					got, err := send(w.rest, request)
					// Decompressed, they are 20 MiB at the same time: more than the share of one caller.
					c.answered(got, err, failure(code, http.StatusServiceUnavailable))
				}
			})
		}
		running.Wait()
	}
}

// idleCallers connects far more often than a host may, and says nothing.
func idleCallers(t *testing.T, w *world, c *tally) {
	dial := dialFrom(attacker)
	var open []net.Conn
	defer func() {
		for _, conn := range open {
			_ = conn.Close()
		}
	}()
	for range 10_000 {
		conn, err := dial(t.Context(), "tcp", w.gateway.HTTPS)
		if err != nil {
			t.Fatalf("connection %d: %v", len(open), err)
		}
		open = append(open, conn)
	}
	var mu sync.Mutex
	stay := 0
	var running sync.WaitGroup
	deadline := time.Now().Add(2 * time.Second)
	for _, conn := range open {
		running.Go(func() {
			_ = conn.SetReadDeadline(deadline)
			if _, err := conn.Read(make([]byte, 1)); errors.Is(err, os.ErrDeadlineExceeded) {
				mu.Lock()
				stay++
				mu.Unlock()
			}
		})
	}
	running.Wait()
	c.countf(stay <= 500, "%d of 10,000 connections stay", stay)
}

// slowCallers sends headers byte by byte.
func slowCallers(t *testing.T, w *world, c *tally) {
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
			for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(200 * time.Millisecond) {
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
func slowPrefaces(t *testing.T, w *world, c *tally) {
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
