// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/client"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/convert"
	"github.com/hookgate/hookgate/internal/network/connect"
	"github.com/hookgate/hookgate/internal/network/endpoint"
	golden "github.com/hookgate/hookgate/proto"
)

// session is one run. It belongs to one goroutine.
type session struct {
	endpoint  *target
	transport transport
	catalog   *catalog.Catalog
	requests  map[string]proto.Message // by hook
	objects   *convert.Objects
	// understands is the operator's version of Cluster API objects; it overrides the statement of the extension.
	understands string

	discovery *catalog.Hook
	first     *exchange   // the first discovery
	announced []announced // its handlers, as they are
	// reflected reports whether the services listed by server reflection replace Discovery, which is not implemented.
	reflected bool
	services  []string
	handlers  []*handler // those that can be called
	provider  provider
	added     []*addedGroup
	uncalled  []string // hooks of added groups without a request, of handlers that are announced
	dead      string   // why no further check can be carried out

	trust error // why the certificate is not good; nil if it is
	old   error // why TLS 1.2 is not spoken; nil if it is
	state tls.ConnectionState
}

// handler is a handler that can be called.
type handler struct {
	name    string
	hook    *catalog.Hook
	timeout time.Duration
	// understands is the version of Cluster API objects sent to the handler; empty for the version in the requests.
	understands string

	request proto.Message // once asked

	base  *exchange // its answer to the realistic request, once asked
	small *exchange // the answer to the request of withPatchUpdate, for the hooks that have one
}

func newSession(ctx context.Context, t Target, o Options) (*session, error) {
	e, err := newTarget(t)
	if err != nil {
		return nil, err
	}
	if v := o.ClusterAPIVersion; v != "" {
		if err := hook.CheckClusterAPIVersion(v); err != nil {
			return nil, &TargetError{URL: t.URL, Problem: "the version of Cluster API objects " + err.Error()}
		}
	}
	hooks := o.Catalog
	if hooks == nil {
		if hooks, err = catalog.With(catalog.Own()...); err != nil {
			return nil, err
		}
	}
	if o.Infrastructure != nil {
		if err := o.Infrastructure.check(); err != nil {
			return nil, &TargetError{URL: t.URL, Problem: err.Error()}
		}
	}
	s := &session{
		endpoint: e, catalog: hooks, requests: map[string]proto.Message{}, objects: convert.NewObjects(references()),
		understands: o.ClusterAPIVersion, provider: provider{options: o.Infrastructure},
	}
	mandated := codec.New(s.catalog)
	s.discovery, _ = s.catalog.ByName(hook.Discovery)
	for _, h := range s.catalog.Hooks() {
		body := o.Requests[h.Hook]
		if body == nil && h.Group != hook.InfrastructureGroup { // whose requests are made for one run
			body = golden.Request(h.GroupVersionHook)
		}
		if h.Group != s.discovery.Group && (body == nil || h.Singleton() || h.Group == hook.InfrastructureGroup) {
			continue
		}
		m := h.Request.New().Interface()
		if err := mandated.Decode(body, m); err != nil {
			return nil, &TargetError{URL: t.URL, Problem: fmt.Sprintf("the request of %s: %s", h.Hook, err)}
		}
		s.requests[h.Hook] = m
	}
	for name := range o.Requests {
		if s.requests[name] == nil {
			return nil, &TargetError{
				URL: t.URL, Problem: fmt.Sprintf("the requests include one for %q, which is not a hook", name),
			}
		}
	}
	if err := s.connect(ctx, mandated); err != nil {
		return nil, err
	}
	if err := s.discover(ctx); err != nil {
		s.transport.close()
		return nil, err
	}
	s.discoverAdded(ctx)
	s.discoverInfrastructure(ctx)
	return s, nil
}

// connect finds out how to call the extension. The checks of TLS report a fault of its TLS; all other checks tolerate
// it.
func (s *session) connect(ctx context.Context, c *codec.Codec) error {
	e := s.endpoint
	config := e.tlsConfig()
	var err error
	if e.HasTLS() {
		config, err = s.handshake(ctx, config)
	} else {
		var probe net.Conn
		if probe, err = e.dial(ctx); err == nil {
			probe.Close()
		}
	}
	if err != nil {
		return e.connectError(err)
	}
	config.ServerName, config.NextProtos = "", nil // the transports set them
	token := e.token
	if config.InsecureSkipVerify {
		token = "" // there may be another server in the extension's place
	}
	cl, err := client.New(client.Config{
		Endpoint: e.Endpoint, TLS: config, Codec: c, UserAgent: "hookgate", Idle: concurrentCalls, Token: token,
	})
	if err != nil {
		return e.connectError(err)
	}
	s.transport = &clientTransport{client: cl, codec: c, grpc: e.IsGRPC(), now: e.now}
	return nil
}

// handshake returns the configuration with which a TLS handshake succeeds: the given one, or a lenient one that
// tolerates the faults of the extension's TLS.
func (s *session) handshake(ctx context.Context, strict *tls.Config) (config *tls.Config, err error) {
	if s.state, err = s.endpoint.handshake(ctx, strict); err == nil {
		return strict, nil
	}
	lenient := strict.Clone()
	switch connect.Classify(err).Reason {
	case connect.BadCertificate:
		s.trust, lenient.InsecureSkipVerify = err, true // tls.certificate fails
	case connect.HandshakeRefused, connect.HandshakeFailed:
		s.old, lenient.MinVersion = err, tls.VersionTLS10 // tls.version fails
	default:
		return nil, err
	}
	s.state, err = s.endpoint.handshake(ctx, lenient)
	return lenient, err
}

// discover asks for the handlers for the first time.
func (s *session) discover(ctx context.Context) error {
	x := s.askDiscovery(ctx)
	s.first = x
	if err := s.wrongProtocol(ctx, x); err != nil {
		return err
	}
	if t, ok := s.transport.(*clientTransport); ok && t.grpc {
		s.services, _ = t.client.GRPC().Services(ctx) // most servers have none
		if strings.HasPrefix(x.code, "gRPC Unimplemented") && len(s.services) > 0 {
			s.reflected = true
			s.handlers = s.fromServices(ctx)
			return nil
		}
	}
	if x.outcome != answered || x.parsed == nil || x.status() != success {
		return nil // discovery.answers says it
	}
	s.announced = x.parsed.Handlers
	seen := map[string]bool{}
	for _, a := range s.announced {
		h, ok := s.hookOf(a)
		if !ok || seen[a.Name] || len(validation.IsDNS1123Label(a.Name)) > 0 {
			continue // the checks of discovery say it
		}
		seen[a.Name] = true
		s.handlers = append(s.handlers, &handler{
			name: a.Name, hook: h, timeout: timeoutOf(a), understands: s.understoodBy(a),
		})
	}
	return nil
}

// hookOf returns the hook that a handler is for, if it is one that has handlers.
func (s *session) hookOf(a announced) (*catalog.Hook, bool) {
	gvh, err := hook.Parse(a.RequestHook.APIVersion, a.RequestHook.Hook)
	if err != nil {
		return nil, false
	}
	h, ok := s.catalog.Lookup(gvh)
	return h, ok && !h.Singleton() && h.Group == s.discovery.Group
}

// understoodBy returns the version of objects to send to a handler. The check discovery.objects reports invalid
// statements.
func (s *session) understoodBy(a announced) string {
	if s.understands != "" || hook.CheckClusterAPIVersion(a.ClusterAPIVersion) != nil {
		return s.understands
	}
	return a.ClusterAPIVersion
}

// references resolves the references of the Clusters and Machines in the package's own requests.
func references() *convert.References {
	refs := convert.NewReferences()
	var crds []convert.CRD
	for _, plural := range []string{"awsclusters", "awsmachines", "awsmachinetemplates"} {
		crds = append(crds, convert.CRD{
			Name:   plural + ".infrastructure.cluster.x-k8s.io",
			Labels: map[string]string{"cluster.x-k8s.io/v1beta2": "v1beta2"},
		})
	}
	refs.Set(crds)
	return refs
}

// request returns the realistic request for a handler, with the objects that it understands. A request that cannot be
// converted, which can only be one of the caller's own, is sent unchanged; the gateway would not send it at all.
func (s *session) request(h *handler) proto.Message {
	if h.request == nil {
		h.request = s.requests[h.hook.Hook]
		if h.understands != "" {
			if converted, err := s.objects.Request(h.request, h.understands); err == nil {
				h.request = converted.Message
			}
		}
	}
	return h.request
}

func timeoutOf(a announced) time.Duration {
	if a.TimeoutSeconds == nil || *a.TimeoutSeconds <= 0 {
		return limits.DefaultTimeout
	}
	return min(time.Duration(*a.TimeoutSeconds)*time.Second, limits.Timeout)
}

// fromServices returns a handler for each hook of the extension's services that it implements, as the gateway names
// them.
func (s *session) fromServices(ctx context.Context) []*handler {
	var handlers []*handler
	for _, h := range s.catalog.Hooks() {
		if h.Group != s.discovery.Group || h.Singleton() || !slices.Contains(s.services, serviceOf(h)) {
			continue
		}
		one := &handler{name: strings.ToLower(h.Hook), hook: h, timeout: limits.DefaultTimeout, understands: s.understands}
		if x := s.base(ctx, one); x.code != "gRPC Unimplemented" {
			handlers = append(handlers, one)
		}
	}
	return handlers
}

func serviceOf(h *catalog.Hook) string {
	service, _, _ := strings.Cut(strings.TrimPrefix(h.Method, "/"), "/")
	return service
}

// wrongProtocol returns an error if the first answer shows that the extension speaks another protocol, or does not run.
func (s *session) wrongProtocol(ctx context.Context, x *exchange) error {
	e := s.endpoint
	fatal := func(problem, hint string) error { return &ConnectError{URL: e.url, Problem: problem, Hint: hint} }
	switch {
	case e.protocol == REST && (x.isGRPC || x.outcome == lost && !e.HasTLS() && s.speaksHTTP2(ctx)):
		scheme := map[bool]string{true: endpoint.GRPCS, false: endpoint.GRPC}[e.HasTLS()]
		return fatal("it speaks gRPC", "Use "+scheme+"://"+e.Authority+".")
	case e.protocol == REST && !e.HasTLS() && strings.Contains(x.text, "HTTP request to an HTTPS server"):
		return fatal("it speaks HTTPS", "Use https://"+e.Authority+".")
	case x.failure != nil && (x.outcome == lost || x.failure.Reason == connect.NotGRPC):
		return e.connectError(x.failure)
	case x.outcome == lost:
		return fatal("it does not answer Discovery: "+x.text, "")
	}
	return nil
}

// speaksHTTP2 reports whether a server without TLS answers the beginning of HTTP/2 in kind (RFC 9113, 3.4).
func (s *session) speaksHTTP2(ctx context.Context) bool {
	c, err := s.endpoint.dial(ctx)
	if err != nil {
		return false
	}
	defer c.Close()
	settings := []byte{0, 0, 0, 4, 0, 0, 0, 0, 0}
	header := make([]byte, len(settings))
	if err := c.SetDeadline(time.Now().Add(dialTimeout)); err != nil {
		return false
	}
	if _, err := c.Write(append([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), settings...)); err != nil {
		return false
	}
	_, err = io.ReadFull(c, header)
	return err == nil && header[3] == settings[3]
}

func (s *session) askDiscovery(ctx context.Context) *exchange {
	ctx, cancel := context.WithTimeout(ctx, limits.DiscoveryTimeout)
	defer cancel()
	return s.transport.call(ctx, s.discovery, "", s.requests[hook.Discovery])
}

// ask sends a request to a handler, and waits as long as the handler wants callers to wait.
func (s *session) ask(ctx context.Context, h *handler, req proto.Message) *exchange {
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	return s.transport.call(ctx, h.hook, h.name, req)
}

// base returns the answer of a handler to the realistic request, which is sent once.
func (s *session) base(ctx context.Context, h *handler) *exchange {
	if h.base == nil {
		h.base = s.ask(ctx, h, s.request(h))
	}
	return h.base
}

// working returns the handlers, of the hooks if some are given, that answer the realistic request. If there are none,
// the check does not apply, and v says why.
func (s *session) working(ctx context.Context, v *verdict, hooks ...string) []*handler {
	var working []*handler
	announced, silent := 0, 0
	for _, h := range s.handlers {
		if len(hooks) > 0 && !slices.Contains(hooks, h.hook.Hook) {
			continue
		}
		announced++
		if s.base(ctx, h).isAnswer() {
			working = append(working, h)
		} else {
			silent++
		}
	}
	switch {
	case len(s.handlers) == 0:
		v.skipf("%s", s.noHandler())
	case announced == 0:
		v.skipf("there is no handler of %s", strings.Join(hooks, ", "))
	case silent == announced:
		v.skipf("no such handler answers: see answers.valid and answers.status")
	}
	return working
}

// noHandler returns why there is no handler to call.
func (s *session) noHandler() string {
	if len(s.uncalled) == 0 {
		return "no handler is known that can be called"
	}
	return fmt.Sprintf("there is no request for %s: give one, with --request HOOK=FILE",
		strings.Join(slices.Compact(slices.Sorted(slices.Values(s.uncalled))), ", "))
}

// gone returns the reason why the extension has stopped answering, or "" if it still answers.
func (s *session) gone(ctx context.Context) string {
	if s.dead != "" || s.first.outcome != answered && !s.reflected {
		return s.dead
	}
	for range 3 { // a server that restarts may take a moment
		x := s.askDiscovery(ctx)
		if x.outcome != lost && x.outcome != late {
			return ""
		}
		if x.outcome == late {
			break
		}
		select {
		case <-ctx.Done():
			return ""
		case <-time.After(300 * time.Millisecond):
		}
	}
	s.dead = "the extension no longer answers"
	return s.dead
}
