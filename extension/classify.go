// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/textproto"
	"strings"
	"syscall"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/body"
)

// This file is where errors of the network get their kind and their text. The texts are fixed: the errors' own have
// addresses, ports and times in them, and go to the log as the cause.

const hostNotFound = "host name not found"

// proxyError is a proxy that does not connect.
type proxyError struct{ code int }

func (e *proxyError) Error() string {
	return strings.TrimSpace(fmt.Sprintf("proxy answered %d %s", e.code, http.StatusText(e.code)))
}

// unanswered classifies why a request got no answer.
func (x *exchange) unanswered(ctx context.Context, err error) *hook.Error {
	if ctx.Err() != nil {
		return x.ended(ctx, err)
	}
	if text := malformed(err); text != "" {
		return x.fail(hook.BadResponse, text, err)
	}
	text, _ := unreachable(err)
	switch {
	case isBrokenStream(err) && !x.route.target.speaks.Load():
		// gRPC's C core does so, as in Python, to whatever has another Content-Type.
		text += ": if the server speaks gRPC, set protocol GRPC"
	case text == hostNotFound && x.route.target.inCluster:
		text += ": create the Service, or name another in spec.clientConfig.service"
	}
	return x.fail(hook.Unreachable, text, err)
}

// interrupted classifies why an answer that had begun could not be read to its end. Whether its connection was closed or
// reset makes no difference: either way, the extension has begun an answer that is none.
func (x *exchange) interrupted(ctx context.Context, err error) *hook.Error {
	switch {
	case ctx.Err() != nil:
		return x.ended(ctx, err)
	case errors.Is(err, body.ErrGzip):
		return x.fail(hook.BadResponse, "answer is not valid gzip", err)
	}
	return x.fail(hook.BadResponse, "answer ended early", err)
}

// malformed says what is wrong with an answer whose header could not be read; nothing if it is not that.
func malformed(err error) string {
	var mime textproto.ProtocolError
	text := err.Error()
	switch {
	case strings.Contains(text, "server response headers exceeded"), strings.Contains(text, "response header list larger"):
		return fmt.Sprintf("header of the answer is larger than %d bytes", maxHeaderBytes)
	case errors.As(err, &mime):
		return "answer is not HTTP"
	}
	// net/http has no types for these.
	for _, mark := range []string{"malformed HTTP", "malformed MIME", "bad Content-Length", "invalid Content-Length",
		"unsupported transfer encoding", "too many transfer encodings"} {
		if strings.Contains(text, mark) {
			return "answer is not HTTP"
		}
	}
	return ""
}

// unreachable says why there was no connection, or why it broke, and whether that may have passed a moment later. Of
// several errors, those of a host's addresses, it takes the first in the order of the cases.
func unreachable(err error) (text string, passing bool) {
	if text := untrusted(err); text != "" {
		return text, false
	}
	var forbidden *forbiddenError
	var proxy *proxyError
	var dns *net.DNSError
	switch {
	case errors.As(err, &forbidden):
		return fmt.Sprintf("address of the host is %s, where no extension may be", forbidden.reason), false
	case errors.As(err, &proxy):
		return proxy.Error(), false
	case errors.As(err, &dns) && dns.IsNotFound, errors.Is(err, errNoAddress):
		return hostNotFound, false
	case errors.As(err, &dns) && dns.IsTimeout:
		return "host name lookup timed out", true
	case errors.As(err, &dns):
		return "host name lookup did not work", true
	case errors.Is(err, fs.ErrNotExist):
		return "there is no such socket", true
	case errors.Is(err, fs.ErrPermission):
		return "no permission to use the socket", false
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused", true
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNABORTED):
		return "connection reset", true
	case errors.Is(err, syscall.EHOSTUNREACH):
		return "no route to host", true
	case errors.Is(err, syscall.ENETUNREACH):
		return "network is unreachable", true
	case isTimeout(err):
		return "connection timed out", false
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), isClosedIdle(err):
		return "connection closed without an answer", true
	}
	return "connection broken", true
}

// untrusted says why a TLS handshake came to nothing; nothing if it is not that.
func untrusted(err error) string {
	var (
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
		verify    *tls.CertificateVerificationError
		record    tls.RecordHeaderError
		op        *net.OpError
	)
	switch {
	case errors.As(err, &authority):
		return "certificate not trusted: signed by an unknown authority"
	case errors.As(err, &host):
		return fmt.Sprintf("certificate not trusted: not made out to %s", quote(host.Host))
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "certificate not trusted: expired or not yet valid"
	case errors.As(err, &verify):
		return "certificate not trusted"
	case errors.As(err, &record):
		return "the server does not speak TLS"
	case errors.As(err, &op) && op.Op == "remote error":
		// An alert: its text is one of a fixed set.
		return "TLS handshake refused: " + strings.TrimPrefix(op.Err.Error(), "tls: ")
	case strings.Contains(err.Error(), "tls: "):
		return "TLS handshake did not work"
	}
	return ""
}

// isPassing tells whether another attempt may go better.
func isPassing(err error) bool {
	_, passing := unreachable(err)
	return passing
}

// isNoCommonProtocol tells whether the server refused the handshake because it does not speak HTTP/1.1, or chose HTTP/2
// though it was not offered.
func isNoCommonProtocol(err error) bool {
	text := err.Error()
	return strings.HasSuffix(text, "tls: no application protocol") || strings.Contains(text, "unadvertised ALPN protocol")
}

// isBrokenStream tells whether the server ended one request of a connection in HTTP/2, for which net/http has no type.
func isBrokenStream(err error) bool {
	text := err.Error()
	return strings.Contains(text, "stream error: ") && strings.HasSuffix(text, "received from peer")
}

// isClosedIdle tells whether the server had closed a kept connection when the request was given to it. net/http reports
// this only of connections that ended before the request was under way.
func isClosedIdle(err error) bool {
	return err != nil && strings.HasSuffix(err.Error(), "http: server closed idle connection")
}

// isHungUp tells whether the server closed the connection in place of an answer. How the client sees that is a matter of
// luck.
func isHungUp(err error) bool {
	return errors.Is(err, io.EOF) || isClosedIdle(err) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
