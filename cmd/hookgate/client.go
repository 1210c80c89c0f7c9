// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/spf13/pflag"
	"google.golang.org/protobuf/proto"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/codec"
)

// client calls hooks of one server: a gateway, or an extension.
type client interface {
	// call sends the request to the handler; empty means that the server chooses. The error of a server that answered
	// one is a *callError.
	call(ctx context.Context, h *catalog.Hook, handler string, req proto.Message) (*answer, error)
	close() error
}

// answer is what a server answered.
type answer struct {
	message proto.Message
	body    []byte // the JSON: what the server sent over REST, what it would have been over gRPC
	callID  string // empty if the server is no gateway
}

// clientOptions are the flags that say which server to call, and how.
type clientOptions struct {
	server  string
	ca      string
	cert    string
	key     string
	timeout time.Duration

	// certificateAsked tells that the server asked for a certificate and there was none to show. Connections are made in
	// goroutines of the transports.
	certificateAsked atomic.Bool
	// errOut is where warnings of the server go.
	errOut io.Writer
}

// warn prints what a server warns of in its answer. What is not of the form 299 - "text" is for others.
func (o *clientOptions) warn(values []string) {
	if o.errOut == nil {
		return
	}
	warnings, _ := utilnet.ParseWarningHeaders(values)
	for _, w := range warnings {
		if w.Code == 299 {
			_, _ = fmt.Fprintf(o.errOut, "Warning: %s\n", printable(w.Text))
		}
	}
}

func (o *clientOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.server, "server", "https://127.0.0.1:9443",
		"what to call: https://HOST:PORT for HTTPS JSON, grpcs://HOST:PORT for gRPC, grpc://HOST:PORT for gRPC without TLS")
	o.addTLSFlags(f)
	f.DurationVar(&o.timeout, "timeout", 30*time.Second, "how long to wait for the answer")
}

// addTLSFlags adds the flags about certificates.
func (o *clientOptions) addTLSFlags(f *pflag.FlagSet) {
	f.StringVar(&o.ca, "ca", "", "file with the CA certificates to trust the server by, PEM; by default the system's")
	f.StringVar(&o.cert, "cert", "", "file with the certificate to show to the server, PEM; needs --key")
	f.StringVar(&o.key, "key", "", "file with the key of --cert, PEM")
}

// target is a checked --server.
type target struct {
	text   string // as given, for messages
	scheme string // https, grpc or grpcs
	host   string // host:port
	prefix string // path in front of the hook's, for https; without a slash at the end
}

func (t target) hasTLS() bool { return t.scheme != "grpc" }

// newClient returns a client for the flags. It does not connect yet.
func (o *clientOptions) newClient(c *codec.Codec) (client, error) {
	t, err := parseServer(o.server)
	if err != nil {
		return nil, err
	}
	if o.timeout <= 0 {
		return nil, usagef("--timeout: want more than 0, got %s", o.timeout)
	}
	config, err := o.tlsConfig(t)
	if err != nil {
		return nil, err
	}
	if t.scheme == "https" {
		return newRESTClient(t, config, c, o), nil
	}
	return newGRPCClient(t, config, c, o)
}

func parseServer(text string) (target, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return target{}, usagef("--server %q: want https://HOST:PORT, grpcs://HOST:PORT or grpc://HOST:PORT", text)
	}
	t := target{text: strings.TrimSuffix(text, "/"), scheme: u.Scheme, host: u.Host, prefix: strings.TrimSuffix(u.EscapedPath(), "/")}
	switch u.Scheme {
	case "https":
		if u.Port() == "" {
			t.host += ":443"
		}
	case "grpc", "grpcs":
		if u.Port() == "" {
			return target{}, usagef("--server %q: the port is missing; a gateway's gRPC port is 9090 by default: %s://%s:9090", text, u.Scheme, u.Host)
		}
		if t.prefix != "" {
			return target{}, usagef("--server %q: gRPC has no path", text)
		}
	case "http":
		return target{}, usagef("--server %q: hooks are never called without TLS over HTTP; want https://%s", text, u.Host)
	default:
		return target{}, usagef("--server %q: unknown scheme %q; want https://, grpcs:// or grpc://", text, u.Scheme)
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return target{}, usagef("--server %q: want no user, query or fragment", text)
	}
	return t, nil
}

// tlsConfig reads the files of the flags. It is nil for a target without TLS.
func (o *clientOptions) tlsConfig(t target) (*tls.Config, error) {
	if !t.hasTLS() {
		if o.ca != "" || o.cert != "" || o.key != "" {
			return nil, usagef("--ca, --cert and --key need TLS: want --server grpcs://%s", t.host)
		}
		return nil, nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	ca, cert, err := o.credentials()
	if err != nil {
		return nil, err
	}
	if ca != nil {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(ca) {
			return nil, fmt.Errorf("read --ca: %s has no certificate in PEM", o.ca)
		}
	}
	config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
		o.certificateAsked.Store(true)
		return &tls.Certificate{}, nil
	}
	if cert != nil {
		config.Certificates, config.GetClientCertificate = []tls.Certificate{*cert}, nil
	}
	return config, nil
}

// credentials reads the files of the flags; nil for those that are not given.
func (o *clientOptions) credentials() (ca []byte, cert *tls.Certificate, err error) {
	if o.ca != "" {
		if ca, err = os.ReadFile(o.ca); err != nil {
			return nil, nil, fmt.Errorf("read --ca: %w", err)
		}
	}
	if (o.cert == "") != (o.key == "") {
		return nil, nil, usagef("--cert and --key are needed together")
	}
	if o.cert == "" {
		return ca, nil, nil
	}
	pair, err := tls.LoadX509KeyPair(o.cert, o.key)
	if err != nil {
		return nil, nil, fmt.Errorf("read --cert and --key: %w", err)
	}
	return ca, &pair, nil
}
