// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package caller calls hooks through a gateway: for a control plane provider, or another controller that has runtime
// hooks to offer. The gateway knows the extensions, so that the controller needs no registry of them, no controller of
// ExtensionConfigs and no warm-up.
//
//	gateway, err := caller.New(caller.Config{URL: "grpcs://hookgate.hookgate-system.svc:9090", CAFile: "ca.crt"})
//	out, err := gateway.BeforeControlPlaneUpgrade(ctx, &hooksv1alpha1.BeforeControlPlaneUpgradeRequest{…})
//	if err == nil {
//		if wait, why, held := caller.Hold(out); held {
//			return reconcile.Result{RequeueAfter: wait}, nil // and why into a condition
//		}
//	}
//
// A lifecycle hook without a handler goes to all extensions that match, and the gateway merges their answers. Any other
// hook goes to the one handler that matches. A method returns an answer only if its status is Success.
//
// Over gRPC, a call waits until its deadline for a gateway that cannot be connected to for now, such as one that is
// being rolled out, and is then Unreachable. What does not pass by itself, such as a certificate that is not trusted,
// fails the call at once; and so does any error over JSON, where each call connects by itself.
//
// Calls are made once: a call whose request cannot have been processed is sent again by gRPC or net/http, and nothing
// else is. A controller tries again, as it does after any error.
package caller

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/client"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/redact"
	"github.com/hookgate/hookgate/internal/network/endpoint"
)

// Config says how a gateway is called. URL is required.
type Config struct {
	// URL is grpcs://host:port for gRPC or https://host[:port][/prefix] for JSON; on the same machine also
	// grpc://host:port and unix:///path, which have no TLS.
	URL string
	// CAFile has the certificates of the authorities to trust, in PEM. Empty means the system's.
	CAFile string
	// CertFile and KeyFile are the certificate to show and its key, in PEM.
	CertFile, KeyFile string
	// TokenFile has a bearer token, such as that of a service account.
	TokenFile string
	// Token is a bearer token, for programs that have it from somewhere else than a file.
	Token string
	// Timeout is the deadline of calls whose context has none. The default is 35 s: the longest timeout of a handler, and
	// 5 s for the gateway.
	Timeout time.Duration
	// UserAgent names the program in the log of the gateway. The default is "hookgate-caller".
	UserAgent string
	// Groups are the hooks of groups that are not Hookgate's nor Cluster API's.
	Groups []catalog.Source
	// Logger gets a line when files have changed. Nil means slog.Default().
	Logger *slog.Logger
}

// Client calls the hooks of a gateway. Its methods are those of the stubs, which take no options of a call but their
// own. For hooks that it has no method for, it is the connection of a client of the stubs, such as
// infrastructurev1alpha1.NewMachineHooksServiceClient(client).
//
// The files of the Config are read again when they have changed. A Client is safe for concurrent use.
type Client struct {
	hooksv1alpha1.DiscoveryServiceClient
	hooksv1alpha1.LifecycleHooksServiceClient
	hooksv1alpha1.TopologyMutationHooksServiceClient
	hooksv1alpha1.InPlaceUpdateHooksServiceClient
	hooksv1alpha1.UpgradePlanHooksServiceClient

	name    string // the URL, for errors
	server  *endpoint.Endpoint
	hooks   *catalog.Catalog
	renewed *client.Renewed
	timeout time.Duration
	looked  atomic.Int64 // when the files were last looked at, in nanoseconds
}

var _ grpc.ClientConnInterface = (*Client)(nil)

const (
	// lookInterval is how often files are looked at, when there are calls.
	lookInterval = 10 * time.Second
	// idleConnections is the number of calls over JSON at a time that need no new connections.
	idleConnections = 16
)

// New returns a Client that has not connected yet. It reads the files, and returns an error unless they can be used.
func New(config Config) (*Client, error) {
	hooks, err := catalog.With(append(catalog.Own(), config.Groups...)...)
	if err != nil {
		return nil, fmt.Errorf("hooks of a gateway: %w", err)
	}
	c := &Client{
		name: strings.TrimSuffix(redact.URL(config.URL), "/"), hooks: hooks,
		timeout: cmp.Or(config.Timeout, limits.InfrastructureTimeout),
	}
	e, err := endpoint.Parse(config.URL, endpoint.HTTPS, endpoint.GRPCS, endpoint.GRPC, endpoint.Unix)
	switch {
	case err != nil:
		return nil, fmt.Errorf("gateway %q: %w", c.name, err)
	case e.IsGRPC() && e.Network == "tcp" && e.Port == "":
		return nil, fmt.Errorf("gateway %q: must have a port, as in %s://%s:9090", c.name, e.Scheme, e.Host)
	case !e.HasTLS() && !e.IsLocal():
		return nil, fmt.Errorf("gateway %q: must be on loopback, because %s:// has no TLS; use grpcs://%s",
			c.name, e.Scheme, e.Authority)
	case !e.HasTLS() && (config.CAFile != "" || config.CertFile != "" || config.KeyFile != ""):
		return nil, fmt.Errorf("gateway %q: there is no TLS, so CAFile, CertFile and KeyFile have no effect", c.name)
	}
	mandated := codec.New(hooks)
	c.server = e
	open := func() (*client.Client, error) {
		secure, token, err := config.credentials()
		if err != nil {
			return nil, fmt.Errorf("gateway %s: %w", c.name, err)
		}
		return client.New(client.Config{
			Endpoint: e, TLS: secure, Codec: mandated, Idle: idleConnections, Token: token, Wait: true,
			UserAgent: cmp.Or(config.UserAgent, "hookgate-caller"),
		})
	}
	logger := cmp.Or(config.Logger, slog.Default())
	files := []string{config.CAFile, config.CertFile, config.KeyFile, config.TokenFile}
	if c.renewed, err = client.NewRenewed(files, open, logger); err != nil {
		return nil, err
	}
	c.looked.Store(time.Now().UnixNano())
	c.DiscoveryServiceClient = hooksv1alpha1.NewDiscoveryServiceClient(c)
	c.LifecycleHooksServiceClient = hooksv1alpha1.NewLifecycleHooksServiceClient(c)
	c.TopologyMutationHooksServiceClient = hooksv1alpha1.NewTopologyMutationHooksServiceClient(c)
	c.InPlaceUpdateHooksServiceClient = hooksv1alpha1.NewInPlaceUpdateHooksServiceClient(c)
	c.UpgradePlanHooksServiceClient = hooksv1alpha1.NewUpgradePlanHooksServiceClient(c)
	return c, nil
}

// Close closes the connections.
func (c *Client) Close() { c.renewed.Close() }

// Invoke implements grpc.ClientConnInterface: it makes one call. The error is a *hook.Error or, if the status of the
// answer is Failure, a *Failure; out is the answer then, too.
//
// The cause of a *hook.Error says what it is about: a *NoAnswer, an *InvalidAnswer, or the status of a server that is
// no gateway, over gRPC. All other errors are those of the gateway itself.
func (c *Client) Invoke(ctx context.Context, method string, in, out any, options ...grpc.CallOption) error {
	h, ok := c.hooks.ByMethod(method)
	request, okIn := in.(proto.Message)
	answer, okOut := out.(proto.Message)
	if !ok || !okIn || !okOut {
		return hook.Errorf(hook.UnknownHook, "%s is not a method of a known hook: name the hook's group in Config.Groups",
			method)
	}
	for _, option := range options {
		if _, ok := option.(grpc.StaticMethodCallOption); !ok {
			return hook.Errorf(hook.InvalidRequest, "call %s: options of gRPC, such as %T, are not supported", h.Hook, option)
		}
	}
	c.look()
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, c.timeout)
		defer cancel()
	}
	got, err := c.accept(h, c.renewed.Call(ctx, h, handlerOf(request), request))
	if got != nil {
		proto.Reset(answer)
		proto.Merge(answer, got)
	}
	return err
}

// NewStream implements grpc.ClientConnInterface. No hook is a stream.
func (c *Client) NewStream(
	_ context.Context, _ *grpc.StreamDesc, method string, _ ...grpc.CallOption,
) (grpc.ClientStream, error) {
	return nil, hook.Errorf(hook.UnknownHook, "%s is a stream, not a hook", method)
}

// look reads the files again if that is due.
func (c *Client) look() {
	last, now := c.looked.Load(), time.Now().UnixNano()
	if now-last >= int64(lookInterval) && c.looked.CompareAndSwap(last, now) {
		c.renewed.Look()
	}
}

// handlerOf returns the handler that a request names.
func handlerOf(m proto.Message) string {
	named, _ := m.(interface{ GetHandler() string })
	if named == nil {
		return ""
	}
	return named.GetHandler()
}

// credentials reads the files.
func (c *Config) credentials() (*tls.Config, string, error) {
	secure := &tls.Config{MinVersion: tls.VersionTLS12}
	if c.CAFile != "" {
		ca, err := readFile(c.CAFile, limits.CertificateFileBytes)
		if err != nil {
			return nil, "", fmt.Errorf("read CAFile: %w", err)
		}
		secure.RootCAs = x509.NewCertPool()
		if !secure.RootCAs.AppendCertsFromPEM(ca) {
			return nil, "", fmt.Errorf("read CAFile: %s has no certificate in PEM", c.CAFile)
		}
	}
	if (c.CertFile == "") != (c.KeyFile == "") {
		return nil, "", errors.New("CertFile and KeyFile are needed together")
	}
	if c.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(c.CertFile, c.KeyFile)
		if err != nil {
			return nil, "", fmt.Errorf("read CertFile and KeyFile: %w", err)
		}
		secure.Certificates = []tls.Certificate{pair}
	}
	if c.TokenFile == "" {
		return secure, c.Token, nil
	}
	if c.Token != "" {
		return nil, "", errors.New("want Token or TokenFile, got both")
	}
	data, err := readFile(c.TokenFile, limits.TokenBytes+2) // it may end with a new line
	if err != nil {
		return nil, "", fmt.Errorf("read TokenFile: %w", err)
	}
	token := strings.TrimSpace(string(data))
	if token == "" || strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return nil, "", fmt.Errorf("read TokenFile: %s has no token", c.TokenFile)
	}
	return secure, token, nil
}

// readFile returns the content of a file of at most limit bytes.
func readFile(name string, limit int64) ([]byte, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	data, err := io.ReadAll(io.LimitReader(file, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s is larger than %d bytes", name, limit)
	}
	return data, err
}
