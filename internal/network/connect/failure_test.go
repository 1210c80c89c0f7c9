// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/hookgate/hookgate/hook"
)

// Every failure of the network has one text, without addresses, and says whether another attempt may succeed.
func TestClassify(t *testing.T) {
	dial := func(err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 4711}, Err: err}
	}
	call := func(name string, err syscall.Errno) error { return dial(os.NewSyscallError(name, err)) }
	for name, tc := range map[string]struct {
		err       error
		want      string
		temporary bool
	}{
		"forbidden":        {dial(&ForbiddenError{Address: netip.MustParseAddr("224.0.0.1"), Reason: "multicast"}), "address of the host is multicast, where extensions are not allowed", false},
		"proxy":            {&ProxyError{Code: 407}, "proxy answered 407 Proxy Authentication Required", false},
		"proxy, no name":   {&ProxyError{Code: 599}, "proxy answered 599", false},
		"no host":          {&net.DNSError{Err: "no such host", Name: "x", IsNotFound: true}, "host name not found", false},
		"no address":       {ErrNoAddress, "host name not found", false},
		"lookup timeout":   {&net.DNSError{Err: "i/o timeout", Name: "x", IsTimeout: true}, "host name lookup timed out", true},
		"lookup":           {&net.DNSError{Err: "server misbehaving", Name: "x"}, "host name lookup did not work", true},
		"no socket":        {call("connect", syscall.ENOENT), "there is no such socket", true},
		"no socket, fs":    {fs.ErrNotExist, "there is no such socket", true},
		"no permission":    {call("connect", syscall.EACCES), "no permission to use the socket", false},
		"refused":          {call("connect", syscall.ECONNREFUSED), "connection refused", true},
		"reset":            {call("read", syscall.ECONNRESET), "connection reset", true},
		"broken pipe":      {call("write", syscall.EPIPE), "connection reset", true},
		"aborted":          {call("accept", syscall.ECONNABORTED), "connection reset", true},
		"no route":         {call("connect", syscall.EHOSTUNREACH), "no route to host", true},
		"no network":       {call("connect", syscall.ENETUNREACH), "network is unreachable", true},
		"timeout":          {dial(timeoutError{}), "connection timed out", true},
		"timeout, kernel":  {call("connect", syscall.ETIMEDOUT), "connection timed out", true},
		"EOF":              {io.EOF, "connection closed without an answer", true},
		"unexpected EOF":   {fmt.Errorf("read: %w", io.ErrUnexpectedEOF), "connection closed without an answer", true},
		"idle":             {errors.New("http: server closed idle connection"), "connection closed without an answer", true},
		"other":            {errors.New("something else"), "connection broken", true},
		"authority":        {&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, "certificate not trusted: signed by an unknown authority", false},
		"name":             {&tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: &x509.Certificate{}, Host: "a.b"}}, `certificate not trusted: not valid for "a.b"`, false},
		"expired":          {&tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired}}, "certificate not trusted: expired or not yet valid", false},
		"usage":            {&tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.IncompatibleUsage}}, "certificate not trusted", false},
		"no TLS":           {tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, "the server does not speak TLS", false},
		"alert":            {&net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}, "TLS handshake refused: bad certificate", false},
		"other of TLS":     {errors.New("tls: invalid signature by the server certificate"), "TLS handshake did not work", false},
		"several":          {errors.Join(call("connect", syscall.ECONNREFUSED), dial(&ForbiddenError{Reason: "link-local"})), "address of the host is link-local, where extensions are not allowed", false},
		"several, reverse": {errors.Join(dial(timeoutError{}), call("connect", syscall.ECONNREFUSED)), "connection refused", true},
	} {
		f := Classify(tc.err)
		if f.Text != tc.want || f.Temporary != tc.temporary || f.Kind != hook.Unreachable || !errors.Is(f.Cause, tc.err) {
			t.Errorf("%s: got %+v; want %q, temporary %t", name, f, tc.want, tc.temporary)
		}
		if strings.Contains(f.Text, "10.0.0.1") || strings.Contains(f.Text, "4711") {
			t.Errorf("%s: %q has an address in it", name, f.Text)
		}
	}
}

// An answer whose header cannot be read is a wrong answer; nothing else is taken for one.
func TestClassifyMalformedAnswers(t *testing.T) {
	for text, want := range map[string]string{
		`net/http: HTTP/1.x transport connection broken: malformed HTTP response "+OK"`:                      "answer is not HTTP",
		`net/http: HTTP/1.x transport connection broken: malformed HTTP status code "20"`:                    "answer is not HTTP",
		`net/http: HTTP/1.x transport connection broken: malformed MIME header line: x`:                      "answer is not HTTP",
		`net/http: HTTP/1.x transport connection broken: bad Content-Length "x"`:                             "answer is not HTTP",
		`net/http: HTTP/1.x transport connection broken: unsupported transfer encoding: "x"`:                 "answer is not HTTP",
		`net/http: HTTP/1.x transport connection broken: too many transfer encodings: ["a" "b"]`:             "answer is not HTTP",
		`net/http: HTTP/1.x transport connection broken: net/http: server response headers exceeded 1 bytes`: "header of the answer is larger than 65536 bytes",
		`http2: response header list larger than advertised limit`:                                           "header of the answer is larger than 65536 bytes",
		`net/http: HTTP/1.x transport connection broken: unexpected EOF`:                                     "",
		`http: server closed idle connection`:                                                                "",
		`stream error: stream ID 1; INTERNAL_ERROR; received from peer`:                                      "",
	} {
		f := Classify(errors.New(text))
		if want == "" && f.Kind != hook.Unreachable || want != "" && (f.Kind != hook.BadResponse || f.Text != want) {
			t.Errorf("%s: got %s: %s, want %q", text, f.Kind, f.Text, want)
		}
	}
}

// Addresses are classified by their range, also at the edges of each range.
func TestForbidden(t *testing.T) {
	for address, want := range map[string]string{
		"169.253.255.255": "", "169.254.0.0": "link-local", "169.254.169.254": "link-local", "169.254.255.255": "link-local", "169.255.0.0": "",
		"223.255.255.255": "", "224.0.0.0": "multicast", "239.255.255.255": "multicast", "240.0.0.1": "",
		"0.0.0.0": "unspecified", "0.0.0.1": "", "127.0.0.1": "", "10.0.0.1": "", "100.64.0.1": "", "192.0.2.1": "",
		"::": "unspecified", "::1": "", "fe7f::1": "", "fe80::": "link-local", "febf::1": "link-local", "fec0::1": "", "fe80::1%eth0": "link-local",
		"feff::1": "", "ff00::": "multicast", "ff01::1": "multicast", "ff02::1%eth0": "multicast", "ff0e::1": "multicast", "fd00::1": "", "2001:db8::1": "",
		"::ffff:169.254.1.1": "link-local", "::ffff:224.0.0.1": "multicast", "::ffff:0.0.0.0": "unspecified", "::ffff:10.0.0.1": "",
		"64:ff9b::169.254.1.1": "link-local", "64:ff9b::224.0.0.1": "multicast", "64:ff9b::": "unspecified", "64:ff9b::10.0.0.1": "",
		"64:ff9b::1:a9fe:101": "", // outside the prefix
	} {
		if got := Forbidden(netip.MustParseAddr(address)); got != want {
			t.Errorf("%s: got %q, want %q", address, got, want)
		}
	}
}

// timeoutError is what package net reports when a deadline has passed.
type timeoutError struct{}

func (timeoutError) Error() string   { return "i/o timeout" }
func (timeoutError) Timeout() bool   { return true }
func (timeoutError) Temporary() bool { return true }

var _ net.Error = timeoutError{}

// What can be done about a failure depends on its reason, which the text does not always show.
func TestReasons(t *testing.T) {
	for name, tc := range map[string]struct {
		err  error
		want Reason
	}{
		"no TLS over HTTP": {http.ErrSchemeMismatch, NoTLS},
		"alert":            {&net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}, HandshakeRefused},
		"old TLS":          {errors.New("tls: server selected unsupported protocol version 301"), HandshakeFailed},
		"certificate, 1.3": {errCertificateRequired, CertificateRequired},
		"authority":        {x509.UnknownAuthorityError{}, UnknownAuthority},
		"name":             {x509.HostnameError{Certificate: &x509.Certificate{}, Host: "a"}, BadCertificate},
		"socket":           {fs.ErrNotExist, NoSocket},
		"permission":       {fs.ErrPermission, NoPermission},
		"refused":          {syscall.ECONNREFUSED, Refused},
		"host":             {ErrNoAddress, HostNotFound},
		"closed":           {io.EOF, Broken},
		"unknown":          {errors.New("x"), Broken},
	} {
		if f := Classify(tc.err); f.Reason != tc.want {
			t.Errorf("%s: got reason %d (%s), want %d", name, f.Reason, f.Text, tc.want)
		}
	}
	for name, tc := range map[string]struct {
		err  error
		want Reason
	}{
		"plain text":  {errPlainText, NoHTTP2},
		"no ALPN":     {errors.New("credentials: cannot check peer: missing selected ALPN property"), NoHTTP2},
		"ALPN":        {&net.OpError{Op: "remote error", Err: errors.New("tls: no application protocol")}, NoHTTP2},
		"no greeting": {errNoGreeting, NoPlaintext},
		"refused":     {syscall.ECONNREFUSED, Refused},
	} {
		if f := ClassifyGRPC(tc.err); f.Reason != tc.want || f.Kind != hook.Unreachable {
			t.Errorf("%s: got %s, reason %d, want %d", name, f.Kind, f.Reason, tc.want)
		}
	}
}

// A failure that was classified once stays what it is.
func TestClassifyKeepsAFailure(t *testing.T) {
	f := &Failure{Kind: hook.BadResponse, Reason: NotGRPC, Text: "x"}
	if got := Classify(fmt.Errorf("y: %w", f)); got != f {
		t.Errorf("got %+v", got)
	}
}
