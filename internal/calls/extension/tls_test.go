// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/hookgate/hookgate/internal/contract/codec"
)

// countedConn counts what is written to it.
type countedConn struct {
	net.Conn
	writes int
}

func (c *countedConn) Write(p []byte) (int, error) {
	c.writes++
	return c.Conn.Write(p)
}

// A body is written in pieces of eight records, each in one system call, whatever the records add to it.
func TestRecordsAreGathered(t *testing.T) {
	certificate := issue(t, newAuthority(t), time.Now().Add(time.Hour))
	for name, config := range map[string]*tls.Config{
		"TLS 1.3":            {MinVersion: tls.VersionTLS13},
		"TLS 1.2":            {MinVersion: tls.VersionTLS12, MaxVersion: tls.VersionTLS12},
		"TLS 1.2 with CBC":   {MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA, tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA}},
		"TLS 1.2 with nonce": {MaxVersion: tls.VersionTLS12, CipherSuites: []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}},
	} {
		for _, tc := range []struct{ size, writes int }{{1, 1}, {gatherSize - 1, 1}, {gatherSize, 1}, {gatherSize + 1, 2}, {3 * gatherSize, 3}} {
			here, there := net.Pipe()
			received := make(chan []byte)
			go func() {
				server := tls.Server(there, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12, CipherSuites: config.CipherSuites})
				data, _ := io.ReadAll(server)
				received <- data
			}()
			counted := &countedConn{Conn: here}
			client := config.Clone()
			client.InsecureSkipVerify, client.DynamicRecordSizingDisabled = true, true
			c := newTLSConn(counted, client)
			if err := c.HandshakeContext(t.Context()); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			body := make([]byte, tc.size)
			for i := range body {
				body[i] = byte(i % 251)
			}
			sent := newRESTBody(codec.BodyOf(body))
			sent.copy = nil // however small
			before := counted.writes
			if n, err := c.ReadFrom(sent.reader()); n != int64(tc.size) || err != nil {
				t.Errorf("%s, %d bytes: sent %d, %v", name, tc.size, n, err)
			}
			if writes := counted.writes - before; writes != tc.writes {
				t.Errorf("%s, %d bytes: %d writes, want %d", name, tc.size, writes, tc.writes)
			}
			if n := sent.detach(false); n != int64(tc.size) {
				t.Errorf("%s, %d bytes: %d count as sent", name, tc.size, n)
			}
			_ = c.Close()
			if got := <-received; !bytes.Equal(got, body) {
				t.Errorf("%s: %d of %d bytes arrived", name, len(got), tc.size)
			}
			_ = here.Close()
		}
	}
}

// blockedConn blocks writes of much until it is closed.
type blockedConn struct {
	net.Conn
	blocks  chan struct{} // receives once a write blocks
	closed  chan struct{}
	closing sync.Once
}

func (c *blockedConn) Write(p []byte) (int, error) {
	if len(p) < smallBody {
		return c.Conn.Write(p)
	}
	c.blocks <- struct{}{}
	<-c.closed
	return 0, net.ErrClosed
}

func (c *blockedConn) Close() error {
	c.closing.Do(func() { close(c.closed) })
	return c.Conn.Close()
}

// A body belongs to the call, which may end while the extension does not read: it must not wait for that, and nothing
// of it is sent afterwards.
func TestBodyIsGivenBackWhileItIsSent(t *testing.T) {
	certificate := issue(t, newAuthority(t), time.Now().Add(time.Hour))
	here, there := net.Pipe()
	go func() {
		config := &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS13}
		_, _ = io.ReadAll(tls.Server(there, config))
	}()
	blocked := &blockedConn{Conn: here, blocks: make(chan struct{}, 1), closed: make(chan struct{})}
	c := newTLSConn(blocked, &tls.Config{InsecureSkipVerify: true})
	if err := c.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	const size = 3 * gatherSize
	body := newRESTBody(codec.BodyOf(make([]byte, size)))
	r := body.reader()
	failed := make(chan error)
	go func() {
		_, err := c.ReadFrom(r)
		failed <- err
	}()
	<-blocked.blocks
	if sent := body.detach(false); sent != gatherSize { // waits for ever if the write keeps the body
		t.Errorf("%d bytes count as sent, want one piece of %d", sent, gatherSize)
	}
	_ = blocked.Close()
	if err := <-failed; !errors.Is(err, net.ErrClosed) {
		t.Errorf("the error is %v, want %v", err, net.ErrClosed)
	}
	if n, err := c.ReadFrom(r); n != 0 || !errors.Is(err, errDetached) {
		t.Errorf("after the call, %d bytes were sent, %v; want %v", n, err, errDetached)
	}
}
