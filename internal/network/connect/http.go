// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"context"
	"crypto/tls"
	"net/http"
	"net/url"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
)

const (
	// TLSTimeout bounds a handshake, which continues when the call that began it has ended.
	TLSTimeout = limits.ExtensionHandshakeTimeout
	// MaxHeaderBytes bounds the header of an answer, which is held besides the budget of memory until the answer has been
	// read. A text of an error has some KiB over gRPC, and proxies add some lines.
	MaxHeaderBytes = limits.AnswerHeaderBytes
	// MaxHeaderLines bounds the lines of a header over HTTP/1.1, where one of five bytes takes a hundred in memory. HTTP/2
	// counts each of its own as 32 bytes more.
	MaxHeaderLines = limits.AnswerHeaderLines

	// IdleTimeout is less than the timeout of common servers (Go's and Cluster API's 90 s, nginx's 75 s), so that the
	// client closes first, and no request meets a closing connection.
	IdleTimeout = limits.IdleExtensionTimeout

	bufferSize = 16 << 10

	// timeoutStep is the unit to which the timeout in a request is rounded up. This hides the time that has passed
	// since the deadline was set.
	timeoutStep = 100 * time.Millisecond
)

// NewTransport returns a transport for requests in JSON, which keeps up to idle connections to a host. If http2 is set,
// it offers HTTP/2 and HTTP/1.1, otherwise HTTP/1.1 alone.
func NewTransport(config *tls.Config, http2 bool, idle int) *http.Transport {
	protocols := &http.Protocols{}
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(http2)
	config = config.Clone()
	config.NextProtos = []string{"http/1.1"}
	if http2 {
		config.NextProtos = []string{"h2", "http/1.1"}
	}
	return &http.Transport{
		OnProxyConnectResponse: checkProxy,
		TLSClientConfig:        config,
		TLSHandshakeTimeout:    TLSTimeout,
		Protocols:              protocols,
		HTTP2:                  &http.HTTP2Config{SendPingTimeout: 5 * time.Second, PingTimeout: 5 * time.Second},
		DisableCompression:     true,
		MaxIdleConnsPerHost:    idle,
		IdleConnTimeout:        IdleTimeout,
		MaxResponseHeaderBytes: MaxHeaderBytes,
		ReadBufferSize:         bufferSize,
		WriteBufferSize:        bufferSize,
	}
}

// checkProxy turns the refusal of a proxy into an error with a stable text.
func checkProxy(_ context.Context, _ *url.URL, _ *http.Request, resp *http.Response) error {
	if resp.StatusCode != http.StatusOK {
		return &ProxyError{Code: resp.StatusCode}
	}
	return nil
}

// TimeoutQuery returns the query that passes the timeout to the server, or the time until the deadline if that is less.
func TimeoutQuery(deadline time.Time, timeout time.Duration) string {
	left := (time.Until(deadline) + timeoutStep - 1).Truncate(timeoutStep)
	return "timeout=" + max(min(timeout, left), timeoutStep).String()
}
