// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"bytes"
	"crypto/tls"
	"io"
	"net"
	"testing"
	"time"
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
			records := &recordWriter{Conn: counted}
			client := config.Clone()
			client.InsecureSkipVerify, client.DynamicRecordSizingDisabled = true, true
			c := &tlsConn{Conn: tls.Client(records, client), records: records}
			if err := c.HandshakeContext(t.Context()); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			before := counted.writes
			body := bytes.Repeat([]byte("x"), tc.size)
			n, err := c.ReadFrom(bytes.NewReader(body))
			if n != int64(tc.size) || err != nil {
				t.Errorf("%s, %d bytes: sent %d, %v", name, tc.size, n, err)
			}
			if writes := counted.writes - before; writes != tc.writes {
				t.Errorf("%s, %d bytes: %d writes, want %d", name, tc.size, writes, tc.writes)
			}
			_ = c.Close()
			if got := <-received; !bytes.Equal(got, body) {
				t.Errorf("%s: %d of %d bytes arrived", name, len(got), tc.size)
			}
			_ = here.Close()
		}
	}
}
