// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/hookgate/hookgate/internal/base/text"
)

const (
	// maxReport is how much is read of what the kubelet says about a connection that failed.
	maxReport = 4 << 10
	// reportWait is how long the report of the kubelet may follow the end of the data.
	reportWait = 2 * time.Second
	// endWait is how long a server may still send after the caller has closed its connection.
	endWait = 2 * time.Second
)

// pair is the two streams of a connection: of its bytes, and of what the kubelet says if it fails.
type pair struct {
	streams httpstream.Connection
	data    httpstream.Stream
	report  httpstream.Stream
	port    string
}

func newPair(streams httpstream.Connection, port string, id int) (*pair, error) {
	headers := http.Header{}
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	headers.Set(corev1.PortHeader, port)
	headers.Set(corev1.PortForwardRequestIDHeader, strconv.Itoa(id))
	report, err := streams.CreateStream(headers)
	if err != nil {
		return nil, err
	}
	_ = report.Close() // for what the client would write
	headers = headers.Clone()
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := streams.CreateStream(headers)
	if err != nil {
		streams.RemoveStreams(report)
		return nil, err
	}
	return &pair{streams: streams, data: data, report: report, port: port}, nil
}

func (p *pair) close() {
	_ = p.data.Reset()
	_ = p.report.Reset()
	p.streams.RemoveStreams(p.data, p.report)
}

// conn is a connection to a port. Streams have no deadlines, so that it is one end of a pipe.
type conn struct {
	net.Conn
	mu      sync.Mutex
	failure error // why the kubelet ended the connection
}

// start returns a connection over the streams; done is called once it has ended.
func (p *pair) start(pod string, done func()) net.Conn {
	near, far := net.Pipe()
	c := &conn{Conn: near}
	report := make(chan string, 1)
	go func() {
		said, _ := io.ReadAll(io.LimitReader(p.report, maxReport))
		report <- text.Printable(strings.TrimSpace(string(said)))
	}()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		_, _ = io.Copy(p.data, far)
		_ = p.data.Close()
		time.AfterFunc(endWait, func() { _ = p.data.Reset() }) // the server need not end its side
	}()
	go func() {
		defer done()
		_, _ = io.Copy(far, p.data)
		_ = p.data.Reset() // the report does not come while data waits to be read
		c.end(pod, p.port, report)
		_ = far.Close()
		<-sent
		p.close()
	}()
	return c
}

// end waits for the report of the kubelet, and keeps it.
func (c *conn) end(pod, port string, report <-chan string) {
	timer := time.NewTimer(reportWait)
	defer timer.Stop()
	select {
	case said := <-report:
		if said == "" {
			return
		}
		e := &Error{What: "cluster: connect to port " + port + " of Pod " + pod + ": " + said}
		if strings.Contains(said, "connection refused") {
			e.What = "cluster: nothing listens on port " + port + " of Pod " + pod
			e.Hint = "--diagnostics and --server name the address inside the Pod."
		}
		c.mu.Lock()
		c.failure = e
		c.mu.Unlock()
	case <-timer.C:
	}
}

// Read implements net.Conn.
func (c *conn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	return n, c.explain(err)
}

// Write implements net.Conn.
func (c *conn) Write(b []byte) (int, error) {
	n, err := c.Conn.Write(b)
	return n, c.explain(err)
}

// explain returns the reason for the end of a connection that failed.
func (c *conn) explain(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrClosedPipe) {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.failure != nil {
			return c.failure
		}
	}
	return err
}
