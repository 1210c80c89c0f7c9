// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/netip"
	"os"
	"strings"
	"syscall"
	"testing"
)

// Every failure of the network has one text, without addresses, and a verdict on whether another attempt may go better.
func TestUnreachable(t *testing.T) {
	dial := func(err error) error {
		return &net.OpError{Op: "dial", Net: "tcp", Addr: &net.TCPAddr{IP: net.IPv4(10, 0, 0, 1), Port: 4711}, Err: err}
	}
	call := func(name string, err syscall.Errno) error { return dial(os.NewSyscallError(name, err)) }
	for name, tc := range map[string]struct {
		err     error
		want    string
		passing bool
	}{
		"forbidden":        {dial(&forbiddenError{address: netip.MustParseAddr("224.0.0.1"), reason: "multicast"}), "address of the host is multicast, where no extension may be", false},
		"proxy":            {&proxyError{code: 407}, "proxy answered 407 Proxy Authentication Required", false},
		"proxy, no name":   {&proxyError{code: 599}, "proxy answered 599", false},
		"no host":          {&net.DNSError{Err: "no such host", Name: "x", IsNotFound: true}, "host name not found", false},
		"no address":       {errNoAddress, "host name not found", false},
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
		"timeout":          {dial(timeoutError{}), "connection timed out", false},
		"timeout, kernel":  {call("connect", syscall.ETIMEDOUT), "connection timed out", false},
		"EOF":              {io.EOF, "connection closed without an answer", true},
		"unexpected EOF":   {fmt.Errorf("read: %w", io.ErrUnexpectedEOF), "connection closed without an answer", true},
		"idle":             {errors.New("http: server closed idle connection"), "connection closed without an answer", true},
		"other":            {errors.New("something else"), "connection broken", true},
		"authority":        {&tls.CertificateVerificationError{Err: x509.UnknownAuthorityError{}}, "certificate not trusted: signed by an unknown authority", false},
		"name":             {&tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: &x509.Certificate{}, Host: "a.b"}}, `certificate not trusted: not made out to "a.b"`, false},
		"expired":          {&tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired}}, "certificate not trusted: expired or not yet valid", false},
		"usage":            {&tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.IncompatibleUsage}}, "certificate not trusted", false},
		"no TLS":           {tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake"}, "the server does not speak TLS", false},
		"alert":            {&net.OpError{Op: "remote error", Err: errors.New("tls: bad certificate")}, "TLS handshake refused: bad certificate", false},
		"other of TLS":     {errors.New("tls: invalid signature by the server certificate"), "TLS handshake did not work", false},
		"several":          {errors.Join(call("connect", syscall.ECONNREFUSED), dial(&forbiddenError{reason: "link-local"})), "address of the host is link-local, where no extension may be", false},
		"several, reverse": {errors.Join(dial(timeoutError{}), call("connect", syscall.ECONNREFUSED)), "connection refused", true},
	} {
		text, passing := unreachable(tc.err)
		if text != tc.want || passing != tc.passing {
			t.Errorf("%s: got %q, passing %t; want %q, %t", name, text, passing, tc.want, tc.passing)
		}
		if strings.Contains(text, "10.0.0.1") || strings.Contains(text, "4711") {
			t.Errorf("%s: %q has an address in it", name, text)
		}
	}
}

// An answer whose header cannot be read is a wrong answer; nothing else is taken for one.
func TestMalformed(t *testing.T) {
	for text, want := range map[string]string{
		`net/http: HTTP/1.x transport connection broken: malformed HTTP response "+OK"`:                      "answer is not HTTP",
		`net/http: HTTP/1.x transport connection broken: malformed HTTP status code "20"`:                    "answer is not HTTP",
		`net/http: HTTP/1.x transport connection broken: malformed MIME header line: x`:                      "answer is not HTTP",
		`net/http: HTTP/1.x transport connection broken: bad Content-Length "x"`:                             "answer is not HTTP",
		`net/http: HTTP/1.x transport connection broken: unsupported transfer encoding: "x"`:                 "answer is not HTTP",
		`net/http: HTTP/1.x transport connection broken: too many transfer encodings: ["a" "b"]`:             "answer is not HTTP",
		`net/http: HTTP/1.x transport connection broken: net/http: server response headers exceeded 1 bytes`: "header of the answer is larger than 1048576 bytes",
		`http2: response header list larger than advertised limit`:                                           "header of the answer is larger than 1048576 bytes",
		`net/http: HTTP/1.x transport connection broken: unexpected EOF`:                                     "",
		`http: server closed idle connection`:                                                                "",
		`stream error: stream ID 1; INTERNAL_ERROR; received from peer`:                                      "",
	} {
		if got := malformed(errors.New(text)); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// Addresses are judged by what they stand for, at the edges of each range too.
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
