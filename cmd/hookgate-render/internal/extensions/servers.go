// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extensions

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/gateway"
	"github.com/hookgate/hookgate/hookversion"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/calls/client"
	"github.com/hookgate/hookgate/internal/cli/localgateway"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/redact"
	"github.com/hookgate/hookgate/internal/network/endpoint"
)

// Credentials are the files with which servers are called.
type Credentials struct {
	CA, Cert, Key, TokenFile string
	Timeout                  time.Duration
}

// remote is a server over the network.
type remote struct {
	url      string
	endpoint *endpoint.Endpoint
	client   *client.Client
	timeout  time.Duration
}

// Dial returns the server of a URL. It does not connect yet.
func Dial(url string, k Credentials, c *codec.Codec, userAgent string) (Server, error) {
	e, err := endpoint.Parse(url, endpoint.HTTPS, endpoint.GRPCS, endpoint.GRPC, endpoint.Unix)
	if err != nil {
		return nil, fmt.Errorf("server %q: %w", redact.URL(url), err)
	}
	secure := &tls.Config{MinVersion: tls.VersionTLS12}
	if k.CA != "" {
		pem, err := os.ReadFile(k.CA)
		if err != nil {
			return nil, fmt.Errorf("read --ca: %w", err)
		}
		secure.RootCAs = x509.NewCertPool()
		if !secure.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read --ca: %s has no certificate in PEM", k.CA)
		}
	}
	if k.Cert != "" || k.Key != "" {
		pair, err := tls.LoadX509KeyPair(k.Cert, k.Key)
		if err != nil {
			return nil, fmt.Errorf("read --cert and --key: %w", err)
		}
		secure.Certificates = []tls.Certificate{pair}
	}
	token, err := readToken(k.TokenFile)
	if err != nil {
		return nil, err
	}
	if token != "" && !e.HasTLS() && e.Network == "tcp" && !e.IsLocal() {
		return nil, errors.New("--token-file needs a server with TLS")
	}
	cl, err := client.New(client.Config{Endpoint: e, TLS: secure, Codec: c, UserAgent: userAgent, Idle: 1, Token: token})
	if err != nil {
		return nil, fmt.Errorf("server %s: %w", redact.URL(url), err)
	}
	return &remote{url: redact.URL(url), endpoint: e, client: cl, timeout: k.Timeout}, nil
}

// readToken returns the token in a file; empty without a file.
func readToken(name string) (string, error) {
	if name == "" {
		return "", nil
	}
	f, err := os.Open(name)
	if err != nil {
		return "", fmt.Errorf("read --token-file: %w", err)
	}
	defer func() { _ = f.Close() }()
	data, err := io.ReadAll(io.LimitReader(f, limits.TokenBytes+2))
	if err != nil {
		return "", fmt.Errorf("read --token-file: %w", err)
	}
	token := strings.TrimSpace(string(data))
	isStrange := func(r rune) bool { return r <= ' ' || r > '~' }
	if token == "" || len(token) > limits.TokenBytes || strings.ContainsFunc(token, isStrange) {
		return "", fmt.Errorf("read --token-file: %s has no token", name)
	}
	return token, nil
}

// Call implements Server.
func (r *remote) Call(
	ctx context.Context, h *catalog.Hook, handler string, request proto.Message,
) (proto.Message, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout)
	defer cancel()
	answer := r.client.Call(ctx, h, handler, request)
	switch {
	case answer.Failure != nil:
		words := client.Options{URL: "--server ", CA: "--ca FILE", Certificate: "--cert FILE and --key FILE"}
		err := fmt.Errorf("server %s: %s", r.url, answer.Failure.Text)
		if hint := words.Hint(r.endpoint, answer.Failure); hint != "" {
			err = fmt.Errorf("%w\n%s", err, hint)
		}
		return nil, err
	case !answer.OK():
		return nil, fmt.Errorf("server %s: %s: %s", r.url, answer.Status, refusal(answer))
	case answer.Invalid != nil:
		return nil, fmt.Errorf("server %s: the answer cannot be read as %s: %w", r.url, h.Response.Descriptor().Name(),
			answer.Invalid)
	}
	return answer.Message, nil
}

// refusal returns the message of an answer that is an error.
func refusal(r *client.Response) string {
	if r.GRPC != nil {
		return text.Printable(r.GRPC.Message())
	}
	var body struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(r.Body, &body) == nil && body.Message != "" {
		return text.Printable(body.Message)
	}
	return text.Printable(text.Cut(string(r.Body), limits.CellBytes))
}

// Close implements Server.
func (r *remote) Close() { r.client.Close() }

// local is a gateway in this process.
type local struct{ *localgateway.Gateway }

// Open returns a gateway with the manifests of a directory, whose extensions it has asked for their handlers. What is
// wrong with manifests, and extensions that do not answer, is written to notes.
func Open(
	ctx context.Context, dir string, hooks *catalog.Catalog, versions *hookversion.Converter, notes io.Writer,
) (Server, error) {
	g, err := localgateway.Open(ctx, dir, hooks, versions, true, notes)
	if err != nil {
		return nil, err
	}
	return local{g}, nil
}

// Call implements Server.
func (l local) Call(
	ctx context.Context, h *catalog.Hook, handler string, request proto.Message,
) (proto.Message, error) {
	return l.Dispatch(ctx, gateway.Request{Hook: h, Handler: handler, Message: request})
}
