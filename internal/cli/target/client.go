// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package target

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
	"k8s.io/client-go/rest"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/gateway"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/calls/client"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/redact"
	"github.com/hookgate/hookgate/internal/network/endpoint"
	"github.com/hookgate/hookgate/internal/network/tunnel"
)

// ClientOptions are the flags that say which server to call, and how.
type ClientOptions struct {
	Server string
	// ServerFlag is the name of the flag that sets server; empty for --server.
	ServerFlag string
	CA         string
	cert       string
	key        string
	token      string
	// tokenFile is the file that holds the token.
	tokenFile string
	Timeout   time.Duration

	Gateway gatewayOptions
	// Tunnel leads to the gateway in a cluster; nil for a server that is called directly.
	Tunnel *tunnel.Tunnel
	// Config is the cluster behind the tunnel, which the kubeconfig may not name any more.
	Config *rest.Config
}

// AddFlags adds the flags.
func (o *ClientOptions) AddFlags(f *pflag.FlagSet) {
	f.StringVar(&o.Server, "server", "https://127.0.0.1:9443",
		"what to call: https://HOST:PORT for HTTPS JSON, grpcs://HOST:PORT for gRPC, grpc://HOST:PORT for "+
			"gRPC without TLS, unix:///PATH for gRPC on a socket")
	o.AddCredentialFlags(f)
	f.DurationVar(&o.Timeout, "timeout", 30*time.Second, "how long to wait for the answer")
}

// AddCredentialFlags adds the flags about certificates and tokens.
func (o *ClientOptions) AddCredentialFlags(f *pflag.FlagSet) {
	f.StringVar(&o.CA, "ca", "",
		"PEM file with the CA certificates that verify the server; default: the system's CA certificates")
	f.StringVar(&o.cert, "cert", "", "PEM file with the client certificate to show to the server; needs --key")
	f.StringVar(&o.key, "key", "", "PEM file with the key of --cert")
	f.StringVar(&o.tokenFile, "token-file", "", "file with the bearer token to send")
	f.StringVar(&o.token, "token", "",
		"bearer token to send; other users of the machine can read it on the command line, so prefer --token-file or "+
			"the environment")
}

// Server is the server of a command: a gateway, or an extension.
type Server struct {
	options  *ClientOptions
	Endpoint *endpoint.Endpoint
	Client   *client.Client
	errOut   io.Writer // for warnings
}

// Answer is the answer of a server.
type Answer struct {
	Message proto.Message
	Body    []byte // the JSON that the server sent over REST, or would have sent instead of gRPC
	CallID  string // empty if the server is no gateway
	// Unhandled means that a gateway has answered alone, because no handler is for the request.
	Unhandled bool
}

// Open returns the server of the flags. It does not connect yet.
func (o *ClientOptions) Open(c *codec.Codec, errOut io.Writer) (*Server, error) {
	e, err := o.Parse(endpoint.HTTPS, endpoint.GRPCS, endpoint.GRPC, endpoint.Unix)
	if err != nil {
		return nil, err
	}
	if o.Timeout <= 0 {
		return nil, cmdline.Usagef("--timeout: want more than 0, got %s", o.Timeout)
	}
	config, err := o.tlsConfig(e)
	if err != nil {
		return nil, err
	}
	token, err := o.Bearer()
	if err != nil {
		return nil, err
	}
	if token != "" && !e.HasTLS() && e.Network == "tcp" && !e.IsLocal() {
		return nil, cmdline.Usagef("--token and --token-file need TLS: want %s grpcs://%s", o.flag(), e.Authority)
	}
	cl, err := client.New(client.Config{
		Endpoint: e, TLS: config, Codec: c, UserAgent: cmdline.UserAgent(), Idle: 1, Token: token, Dial: o.dial(),
	})
	if err != nil {
		return nil, fmt.Errorf("server %s: %w", redact.URL(o.Server), err)
	}
	return &Server{options: o, Endpoint: e, Client: cl, errOut: errOut}, nil
}

// dial returns what makes connections; nil for connections that are made directly.
func (o *ClientOptions) dial() func(ctx context.Context, network, address string) (net.Conn, error) {
	if o.Tunnel == nil {
		return nil
	}
	return o.Tunnel.DialContext
}

// flag returns the name of the flag that sets the server.
func (o *ClientOptions) flag() string { return cmp.Or(o.ServerFlag, "--server") }

// Parse returns the endpoint of the server, which must have one of the schemes.
func (o *ClientOptions) Parse(schemes ...string) (*endpoint.Endpoint, error) {
	e, err := endpoint.Parse(o.Server, schemes...)
	if err != nil {
		return nil, cmdline.Usagef("%s %q: %w", o.flag(), redact.URL(o.Server), err)
	}
	if e.IsGRPC() && e.Network == "tcp" && e.Port == "" {
		return nil, cmdline.Usagef("%s %q: must have a port; a gateway's gRPC port is 9090 by default: %s://%s:9090",
			o.flag(), redact.URL(o.Server), e.Scheme, e.Host)
	}
	return e, nil
}

// tlsConfig returns the TLS for an endpoint, which must have some if the flags ask for it.
func (o *ClientOptions) tlsConfig(e *endpoint.Endpoint) (*tls.Config, error) {
	if !e.HasTLS() && (o.CA != "" || o.cert != "" || o.key != "") {
		return nil, cmdline.Usagef("--ca, --cert and --key need TLS: want %s grpcs://%s", o.flag(), e.Authority)
	}
	return o.TLS()
}

// TLS returns the configuration that the files of the flags make.
func (o *ClientOptions) TLS() (*tls.Config, error) {
	ca, cert, err := o.Credentials()
	if err != nil {
		return nil, err
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if ca != nil {
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(ca) {
			return nil, fmt.Errorf("read --ca: %s has no certificate in PEM", o.CA)
		}
	}
	if cert != nil {
		config.Certificates = []tls.Certificate{*cert}
	}
	return config, nil
}

// Credentials reads the files of the flags; nil for those that are not given.
func (o *ClientOptions) Credentials() (ca []byte, cert *tls.Certificate, err error) {
	if o.CA != "" {
		if ca, err = os.ReadFile(o.CA); err != nil {
			return nil, nil, fmt.Errorf("read --ca: %w", err)
		}
	}
	if (o.cert == "") != (o.key == "") {
		return nil, nil, cmdline.Usagef("--cert and --key are needed together")
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

// Bearer returns the token of the flags; empty without one. Its errors have no part of the token in them.
func (o *ClientOptions) Bearer() (string, error) {
	token := o.token
	if o.tokenFile != "" {
		if token != "" {
			return "", cmdline.Usagef("--token and --token-file: give only one of them")
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
		return "", cmdline.Usagef("--token and --token-file: the token is longer than %d bytes", limits.TokenBytes)
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", cmdline.Usagef("--token and --token-file: the token has a character that tokens " +
			"cannot have, such as a space")
	}
	return token, nil
}

// Call sends the request to the handler; for an empty one, the server chooses. The error of a server that answered with
// one is a *CallError.
func (s *Server) Call(ctx context.Context, h *catalog.Hook, handler string, req proto.Message) (*Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, s.options.Timeout)
	defer cancel()
	r := s.Client.Call(ctx, h, handler, req)
	s.Warn(r.Header.Values(gateway.WarningHeader))
	callID := r.Header.Get(gateway.CallIDHeader)
	switch {
	case r.Failure != nil:
		return nil, s.Explain(r.Failure)
	case !r.OK():
		return nil, s.Refusal(r, handler)
	case r.Invalid != nil:
		message := fmt.Sprintf("the answer cannot be read as %s: %s", h.Response.Descriptor().Name(), r.Invalid)
		return nil, &CallError{Message: message, callID: callID}
	}
	unhandled := r.Header.Get(gateway.HandlersHeader) == "0"
	return &Answer{Message: r.Message, Body: r.Body, CallID: callID, Unhandled: unhandled}, nil
}

// Warn prints the warnings in an answer. Those that are not of the form 299 - "text" are for others.
func (s *Server) Warn(values []string) {
	warnings, _ := utilnet.ParseWarningHeaders(values)
	for _, w := range warnings {
		if w.Code == 299 {
			_, _ = fmt.Fprintf(s.errOut, "Warning: %s\n", text.Printable(w.Text))
		}
	}
}

// Name returns the server for messages: its URL, or its Pod.
func (s *Server) Name() string { return s.options.name() }

func (o *ClientOptions) name() string {
	if o.Tunnel != nil {
		return o.Tunnel.Pod().Namespace + "/" + o.Tunnel.Pod().Name
	}
	return strings.TrimSuffix(redact.URL(o.Server), "/")
}
