// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"
	"google.golang.org/protobuf/proto"
	utilnet "k8s.io/apimachinery/pkg/util/net"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/gateway"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/calls/client"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/redact"
	"github.com/hookgate/hookgate/internal/network/endpoint"
	"github.com/hookgate/hookgate/internal/network/tunnel"
)

// clientOptions are the flags that say which server to call, and how.
type clientOptions struct {
	server string
	// serverFlag is the name of the flag that sets server; empty for --server.
	serverFlag string
	ca         string
	cert       string
	key        string
	token      string
	// tokenFile is the file that holds the token.
	tokenFile string
	timeout   time.Duration

	gateway gatewayOptions
	// tunnel leads to the gateway in a cluster; nil for a server that is called directly.
	tunnel *tunnel.Tunnel
}

func (o *clientOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.server, "server", "https://127.0.0.1:9443",
		"what to call: https://HOST:PORT for HTTPS JSON, grpcs://HOST:PORT for gRPC, grpc://HOST:PORT for "+
			"gRPC without TLS, unix:///PATH for gRPC on a socket")
	o.addCredentialFlags(f)
	f.DurationVar(&o.timeout, "timeout", 30*time.Second, "how long to wait for the answer")
}

// addCredentialFlags adds the flags about certificates and tokens.
func (o *clientOptions) addCredentialFlags(f *pflag.FlagSet) {
	f.StringVar(&o.ca, "ca", "", "file with the CA certificates to trust the server by, PEM; by default the system's")
	f.StringVar(&o.cert, "cert", "", "file with the certificate to show to the server, PEM; needs --key")
	f.StringVar(&o.key, "key", "", "file with the key of --cert, PEM")
	f.StringVar(&o.tokenFile, "token-file", "", "file with the bearer token to send")
	f.StringVar(&o.token, "token", "",
		"bearer token to send; other users of the machine can read it on the command line, so prefer --token-file or "+
			"the environment")
}

// server is the server of a command: a gateway, or an extension.
type server struct {
	options  *clientOptions
	endpoint *endpoint.Endpoint
	client   *client.Client
	errOut   io.Writer // for warnings
}

// answer is the answer of a server.
type answer struct {
	message proto.Message
	body    []byte // the JSON that the server sent over REST, or would have sent instead of gRPC
	callID  string // empty if the server is no gateway
}

// open returns the server of the flags. It does not connect yet.
func (o *clientOptions) open(c *codec.Codec, errOut io.Writer) (*server, error) {
	e, err := o.parse(endpoint.HTTPS, endpoint.GRPCS, endpoint.GRPC, endpoint.Unix)
	if err != nil {
		return nil, err
	}
	if o.timeout <= 0 {
		return nil, usagef("--timeout: want more than 0, got %s", o.timeout)
	}
	config, err := o.tlsConfig(e)
	if err != nil {
		return nil, err
	}
	token, err := o.bearer()
	if err != nil {
		return nil, err
	}
	if token != "" && !e.HasTLS() && e.Network == "tcp" && !e.IsLocal() {
		return nil, usagef("--token and --token-file need TLS: want %s grpcs://%s", o.flag(), e.Authority)
	}
	cl, err := client.New(client.Config{
		Endpoint: e, TLS: config, Codec: c, UserAgent: userAgent(), Idle: 1, Token: token, Dial: o.dial(),
	})
	if err != nil {
		return nil, fmt.Errorf("server %s: %w", redact.URL(o.server), err)
	}
	return &server{options: o, endpoint: e, client: cl, errOut: errOut}, nil
}

// dial returns what makes connections; nil for connections that are made directly.
func (o *clientOptions) dial() func(ctx context.Context, network, address string) (net.Conn, error) {
	if o.tunnel == nil {
		return nil
	}
	return o.tunnel.DialContext
}

// flag returns the name of the flag that sets the server.
func (o *clientOptions) flag() string { return cmp.Or(o.serverFlag, "--server") }

// parse returns the endpoint of the server, which must have one of the schemes.
func (o *clientOptions) parse(schemes ...string) (*endpoint.Endpoint, error) {
	e, err := endpoint.Parse(o.server, schemes...)
	if err != nil {
		return nil, usagef("%s %q: %w", o.flag(), redact.URL(o.server), err)
	}
	if e.IsGRPC() && e.Network == "tcp" && e.Port == "" {
		return nil, usagef("%s %q: must have a port; a gateway's gRPC port is 9090 by default: %s://%s:9090",
			o.flag(), redact.URL(o.server), e.Scheme, e.Host)
	}
	return e, nil
}

// tlsConfig returns the TLS for an endpoint, which must have some if the flags ask for it.
func (o *clientOptions) tlsConfig(e *endpoint.Endpoint) (*tls.Config, error) {
	if !e.HasTLS() && (o.ca != "" || o.cert != "" || o.key != "") {
		return nil, usagef("--ca, --cert and --key need TLS: want %s grpcs://%s", o.flag(), e.Authority)
	}
	return o.tls()
}

// tls returns the configuration that the files of the flags make.
func (o *clientOptions) tls() (*tls.Config, error) {
	ca, cert, err := o.credentials()
	if err != nil {
		return nil, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != nil {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(ca) {
			return nil, fmt.Errorf("read --ca: %s has no certificate in PEM", o.ca)
		}
	}
	if cert != nil {
		config.Certificates = []tls.Certificate{*cert}
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

// bearer returns the token of the flags; empty without one. Its errors have no part of the token in them.
func (o *clientOptions) bearer() (string, error) {
	token := o.token
	if o.tokenFile != "" {
		if token != "" {
			return "", usagef("--token and --token-file: give one of them")
		}
		file, err := os.Open(o.tokenFile)
		if err != nil {
			return "", fmt.Errorf("read --token-file: %w", err)
		}
		defer func() { _ = file.Close() }()
		data, err := io.ReadAll(io.LimitReader(file, limits.TokenBytes+2)) // it may end with a new line
		if err != nil {
			return "", fmt.Errorf("read --token-file: %w", err)
		}
		if token = strings.TrimSpace(string(data)); token == "" {
			return "", fmt.Errorf("read --token-file: %s is empty", o.tokenFile)
		}
	}
	if len(token) > limits.TokenBytes {
		return "", usagef("--token and --token-file: the token is longer than %d bytes", limits.TokenBytes)
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", usagef("--token and --token-file: the token has a character that no token has, such as a space")
	}
	return token, nil
}

// call sends the request to the handler; for an empty one, the server chooses. The error of a server that answered with
// one is a *callError.
func (s *server) call(ctx context.Context, h *catalog.Hook, handler string, req proto.Message) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, s.options.timeout)
	defer cancel()
	r := s.client.Call(ctx, h, handler, req)
	s.warn(r.Header.Values(gateway.WarningHeader))
	callID := r.Header.Get(gateway.CallIDHeader)
	switch {
	case r.Failure != nil:
		return nil, s.explain(r.Failure)
	case !r.OK():
		return nil, s.refusal(r, handler)
	case r.Invalid != nil:
		message := fmt.Sprintf("the answer is no %s: %s", h.Response.Descriptor().Name(), r.Invalid)
		return nil, &callError{status: r.Status, message: message, callID: callID}
	}
	return &answer{message: r.Message, body: r.Body, callID: callID}, nil
}

// warn prints the warnings in an answer. Those that are not of the form 299 - "text" are for others.
func (s *server) warn(values []string) {
	warnings, _ := utilnet.ParseWarningHeaders(values)
	for _, w := range warnings {
		if w.Code == 299 {
			_, _ = fmt.Fprintf(s.errOut, "Warning: %s\n", text.Printable(w.Text))
		}
	}
}

// name returns the server for messages: its URL, or its Pod.
func (s *server) name() string { return s.options.name() }

func (o *clientOptions) name() string {
	if o.tunnel != nil {
		return o.tunnel.Pod().Namespace + "/" + o.tunnel.Pod().Name
	}
	return strings.TrimSuffix(redact.URL(o.server), "/")
}
