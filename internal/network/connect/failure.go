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
	"net/textproto"
	"strconv"
	"strings"
	"syscall"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/text"
)

// Failure is why a request got no answer, or one that could not be read to its end.
type Failure struct {
	Kind   hook.Kind // Unreachable, BadResponse, Timeout or Canceled
	Reason Reason
	// Text is the same for the same failure: it has no addresses of connections, ports and times, which are in Cause.
	Text string
	// Temporary reports whether another attempt may succeed a moment later.
	Temporary bool
	Cause     error
}

// Error returns the text.
func (f *Failure) Error() string { return f.Text }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Cause }

// Reason classifies failures by their remedy.
type Reason int

// The reasons.
const (
	Other               Reason = iota
	Broken                     // a connection that was closed or reset
	HostNotFound               // the host name has no address
	Refused                    // no server listens
	NoSocket                   // the socket does not exist
	NoPermission               // the socket belongs to others
	UnknownAuthority           // the certificate is signed by an authority that is not trusted
	BadCertificate             // the certificate has expired, or is for another name
	CertificateRequired        // the server wants to see a certificate
	HandshakeRefused           // the server ended the TLS handshake
	HandshakeFailed            // the client ended it
	NoTLS                      // the server has no TLS
	NoPlaintext                // the server speaks no gRPC without TLS
	NoHTTP2                    // the server does not speak HTTP/2
	NotGRPC                    // the server speaks HTTP/2, and not gRPC
)

// The errors of the header of an answer that has more than MaxHeaderBytes, or more than MaxHeaderLines.
var (
	ErrHeaderTooLarge = errors.New("header of the answer is too large")
	ErrHeaderTooLong  = errors.New("header of the answer has too many lines")
)

// ProxyError is the answer of a proxy that does not connect.
type ProxyError struct{ Code int }

func (e *ProxyError) Error() string {
	return strings.TrimSpace("proxy answered " + strconv.Itoa(e.Code) + " " + http.StatusText(e.Code))
}

// Classify returns the Failure for err, an error of net/http or of a dial. Of several errors, one for each address of a
// host, it takes the first in the order of its cases. It returns a Failure unchanged.
func Classify(err error) *Failure {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	if text := malformed(err); text != "" {
		return &Failure{Kind: hook.BadResponse, Text: text, Cause: err}
	}
	f := untrusted(err)
	if f == nil {
		f = unreachable(err)
	}
	f.Kind, f.Cause = hook.Unreachable, err
	return f
}

// malformed returns the reason why the header of an answer cannot be read, or "" if err is another failure.
func malformed(err error) string {
	var mime textproto.ProtocolError
	text := err.Error()
	switch {
	case errors.Is(err, ErrHeaderTooLarge),
		strings.Contains(text, "server response headers exceeded"),
		strings.Contains(text, "response header list larger"):
		return fmt.Sprintf("header of the answer is larger than %d bytes", MaxHeaderBytes)
	case errors.Is(err, ErrHeaderTooLong):
		return fmt.Sprintf("header of the answer has more than %d lines", MaxHeaderLines)
	case strings.Contains(text, "multiple Content-Length"):
		return "answer has contradictory Content-Lengths"
	case errors.As(err, &mime):
		return "answer is not HTTP"
	}
	// net/http has no types for these.
	for _, mark := range []string{
		"malformed HTTP", "malformed MIME", "bad Content-Length", "invalid Content-Length",
		"unsupported transfer encoding", "too many transfer encodings",
	} {
		if strings.Contains(text, mark) {
			return "answer is not HTTP"
		}
	}
	return ""
}

func unreachable(err error) *Failure {
	var forbidden *ForbiddenError
	var proxy *ProxyError
	var dns *net.DNSError
	switch {
	case errors.Is(err, ErrOverhead):
		return &Failure{Reason: Broken, Text: ErrOverhead.Error()}
	case errors.As(err, &forbidden):
		return &Failure{Text: fmt.Sprintf("address of the host is %s, where extensions are not allowed", forbidden.Reason)}
	case errors.Is(err, ErrNotAllowed):
		return &Failure{Text: "the gateway may not call this host: the gateway's operator can add it to " +
			"--allowed-extension-hosts"}
	case errors.As(err, &proxy):
		return &Failure{Text: proxy.Error()}
	case errors.As(err, &dns) && dns.IsNotFound, errors.Is(err, ErrNoAddress):
		return &Failure{Reason: HostNotFound, Text: "host name not found"}
	case errors.As(err, &dns) && dns.IsTimeout:
		return &Failure{Text: "host name lookup timed out", Temporary: true}
	case errors.As(err, &dns):
		return &Failure{Text: "host name lookup did not work", Temporary: true}
	case errors.Is(err, fs.ErrNotExist):
		return &Failure{Reason: NoSocket, Text: "there is no such socket", Temporary: true}
	case errors.Is(err, fs.ErrPermission):
		return &Failure{Reason: NoPermission, Text: "no permission to use the socket"}
	case errors.Is(err, syscall.ECONNREFUSED):
		return &Failure{Reason: Refused, Text: "connection refused", Temporary: true}
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, syscall.ECONNABORTED):
		return &Failure{Reason: Broken, Text: "connection reset", Temporary: true}
	case errors.Is(err, syscall.EHOSTUNREACH):
		return &Failure{Text: "no route to host", Temporary: true}
	case errors.Is(err, syscall.ENETUNREACH):
		return &Failure{Text: "network is unreachable", Temporary: true}
	case isTimeout(err):
		return &Failure{Text: "connection timed out", Temporary: true}
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), IsClosedIdle(err):
		return &Failure{Reason: Broken, Text: "connection closed without an answer", Temporary: true}
	}
	return &Failure{Reason: Broken, Text: "connection broken", Temporary: true}
}

// untrusted returns why a TLS handshake failed; nil if err is another failure.
func untrusted(err error) *Failure {
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
		return &Failure{Reason: UnknownAuthority, Text: "certificate not trusted: signed by an unknown authority"}
	case errors.As(err, &host):
		return &Failure{
			Reason: BadCertificate,
			Text:   fmt.Sprintf("certificate not trusted: not valid for %q", text.Cut(host.Host, 256)),
		}
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return &Failure{Reason: BadCertificate, Text: "certificate not trusted: expired or not yet valid"}
	case errors.As(err, &verify):
		return &Failure{Reason: BadCertificate, Text: "certificate not trusted"}
	case errors.As(err, &record), errors.Is(err, http.ErrSchemeMismatch):
		return &Failure{Reason: NoTLS, Text: "the server does not speak TLS"}
	case errors.Is(err, errCertificateRequired):
		return &Failure{Reason: CertificateRequired, Text: "TLS handshake refused: certificate required"}
	case errors.As(err, &op) && op.Op == "remote error":
		// An alert: its text is one of a fixed set.
		return &Failure{
			Reason: HandshakeRefused, Text: "TLS handshake refused: " + strings.TrimPrefix(op.Err.Error(), "tls: "),
		}
	case strings.Contains(err.Error(), "tls: "):
		return &Failure{Reason: HandshakeFailed, Text: "TLS handshake did not work"}
	}
	return nil
}

// IsNoCommonProtocol reports whether the server refused the handshake because it does not speak HTTP/1.1, or chose
// HTTP/2 though it was not offered.
func IsNoCommonProtocol(err error) bool {
	text := err.Error()
	return strings.HasSuffix(text, "tls: no application protocol") ||
		strings.Contains(text, "unadvertised ALPN protocol")
}

// IsBrokenStream reports whether the server ended one request of an HTTP/2 connection, for which net/http has no type.
func IsBrokenStream(err error) bool {
	text := err.Error()
	return strings.Contains(text, "stream error: ") && strings.HasSuffix(text, "received from peer")
}

// IsClosedIdle reports whether the server had closed a kept connection when the request was given to it. net/http
// reports this only of connections that ended before the request was under way.
func IsClosedIdle(err error) bool {
	return err != nil && strings.HasSuffix(err.Error(), "http: server closed idle connection")
}

// IsHungUp reports whether the server closed the connection instead of answering. How the client sees that depends on
// timing.
func IsHungUp(err error) bool {
	return errors.Is(err, io.EOF) || IsClosedIdle(err) || errors.Is(err, syscall.ECONNRESET) ||
		errors.Is(err, syscall.EPIPE)
}

func isTimeout(err error) bool {
	var timeout net.Error
	return errors.As(err, &timeout) && timeout.Timeout()
}
