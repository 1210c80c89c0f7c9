// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package tunnel

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"

	"github.com/hookgate/hookgate/internal/base/limits"
)

// MaxConnections is the number of connections over one tunnel. A browser makes six to a host.
const MaxConnections = limits.TunnelConnections

// tokenLifetime is how long a token is valid: the least that Kubernetes allows.
const tokenLifetime = 10 * time.Minute

// Tunnel leads to a Pod. If the connection to it is lost, because the Pod is gone for example, the next one that is
// made leads to the Pod that is then meant.
type Tunnel struct {
	config *rest.Config
	target Target
	core   corev1client.CoreV1Interface
	places chan struct{} // has an element for each connection

	mu      sync.Mutex
	pod     *corev1.Pod
	others  []string
	streams httpstream.Connection
	closed  bool
	next    int // id of the next connection
}

// Open finds the Pod and connects to it.
func Open(ctx context.Context, config *rest.Config, target Target) (*Tunnel, error) {
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig: %w", err)
	}
	t := &Tunnel{
		config: config, target: target, core: core, places: make(chan struct{}, MaxConnections),
	}
	if _, _, _, err := t.connected(ctx); err != nil {
		return nil, err
	}
	return t, nil
}

// Pod returns the Pod that the tunnel leads to.
func (t *Tunnel) Pod() *corev1.Pod {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.pod
}

// Others returns the names of the other Pods that are ready and have the labels, when the Pod was chosen by these.
func (t *Tunnel) Others() []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.Clone(t.others)
}

// Token returns a new token of a service account in the namespace of the Pod, for the API server, and when it expires.
// It is empty if there is no such account.
func (t *Tunnel) Token(ctx context.Context, account string) (token string, expires time.Time, err error) {
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{
		ExpirationSeconds: new(int64(tokenLifetime.Seconds())),
	}}
	request, err = t.core.ServiceAccounts(t.target.Namespace).CreateToken(ctx, account, request, metav1.CreateOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return "", time.Time{}, nil
	case err != nil:
		return "", time.Time{}, t.target.explain(err, "create", "serviceaccounts/token "+account)
	}
	return request.Status.Token, request.Status.ExpirationTimestamp.Time, nil
}

// Close ends all connections.
func (t *Tunnel) Close() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.closed = true
	if t.streams != nil {
		_ = t.streams.Close()
	}
}

// DialContext connects to the port of the address in the Pod; its host has no meaning.
func (t *Tunnel) DialContext(ctx context.Context, _, address string) (net.Conn, error) {
	_, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	select {
	case t.places <- struct{}{}:
	default:
		return nil, &Error{What: fmt.Sprintf("there are %d connections to the Pod already", MaxConnections)}
	}
	conn, err := t.dial(ctx, port)
	if err != nil {
		<-t.places
		return nil, err
	}
	return conn, nil
}

func (t *Tunnel) dial(ctx context.Context, port string) (net.Conn, error) {
	for {
		streams, id, made, err := t.connected(ctx)
		if err != nil {
			return nil, err
		}
		both, err := within(ctx, func() (*pair, error) { return newPair(streams, port, id) },
			func(p *pair) { p.close() })
		switch {
		case err == nil:
			return both.start(t.Pod().Name, func() { <-t.places }), nil
		case !made && ctx.Err() == nil:
			t.lose(streams) // it has ended, which its channel need not say yet
		default:
			return nil, t.target.explain(err, "create", "pods/portforward")
		}
	}
}

// lose gives up a connection to the Pod.
func (t *Tunnel) lose(streams httpstream.Connection) {
	_ = streams.Close()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.streams == streams {
		t.streams = nil
	}
}

// connected returns the connection to the Pod, an id for a connection over it, and whether it was just made.
func (t *Tunnel) connected(ctx context.Context) (streams httpstream.Connection, id int, made bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return nil, 0, false, net.ErrClosed
	}
	t.next++
	if t.streams != nil {
		select {
		case <-t.streams.CloseChan():
		default:
			return t.streams, t.next, false, nil
		}
	}
	ctx, cancel := context.WithTimeout(ctx, limits.TunnelTimeout)
	defer cancel()
	pod, others, err := t.target.find(ctx, t.core.Pods(t.target.Namespace))
	if err != nil {
		return nil, 0, false, err
	}
	streams, err = within(ctx, func() (httpstream.Connection, error) { return t.connect(pod.Name) },
		func(c httpstream.Connection) { _ = c.Close() })
	if err != nil {
		return nil, 0, false, t.target.explain(err, "create", "pods/portforward")
	}
	t.pod, t.others, t.streams = pod, others, streams
	return streams, t.next, true, nil
}

// connect asks the API server for a connection to the Pod: over WebSockets, and over SPDY if it, or a proxy before it,
// does not support that.
func (t *Tunnel) connect(pod string) (httpstream.Connection, error) {
	target := t.core.RESTClient().Post().Resource("pods").Namespace(t.target.Namespace).Name(pod).
		SubResource("portforward").URL()
	overWebSockets, err := portforward.NewSPDYOverWebsocketDialerForStreaming(target, t.config)
	if err != nil {
		return nil, err
	}
	transport, upgrader, err := spdy.RoundTripperFor(t.config)
	if err != nil {
		return nil, err
	}
	overSPDY := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, target)
	dialer := portforward.NewFallbackDialerForStreaming(overWebSockets, overSPDY, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	streams, protocol, err := dialer.Dial(portforward.PortForwardProtocolV1Name)
	if err != nil {
		return nil, err
	}
	if protocol != portforward.PortForwardProtocolV1Name {
		_ = streams.Close()
		return nil, errors.New("the API server uses an unknown protocol for port forwarding")
	}
	return streams, nil
}

// within returns the result of f, which cannot be interrupted, or the error of ctx if that ends before; what f makes
// after that is dropped.
func within[T any](ctx context.Context, f func() (T, error), drop func(T)) (T, error) {
	type result struct {
		made T
		err  error
	}
	results := make(chan result, 1)
	go func() {
		made, err := f()
		results <- result{made, err}
	}()
	select {
	case r := <-results:
		return r.made, r.err
	case <-ctx.Done():
		go func() {
			if r := <-results; r.err == nil {
				drop(r.made)
			}
		}()
		var none T
		return none, ctx.Err()
	}
}
