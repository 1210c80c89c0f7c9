// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sidecar

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/hookgate/hookgate/internal/base/notify"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/internal/sources/discovery"
	"github.com/hookgate/hookgate/registry"
)

const (
	// Name is the name in logs and metrics, where other extensions have the name of their ExtensionConfig.
	Name = "sidecar"
	// DefaultResync is how often the extension beside the gateway is discovered again. It is local, and its container
	// may be replaced quickly.
	DefaultResync = 5 * time.Second
)

// DefaultBackoff waits 0.1 s at first and 2 s at most: an extension beside the gateway starts when the gateway does.
func DefaultBackoff() discovery.Backoff {
	return discovery.Backoff{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 2 * time.Second}
}

// Config configures a Source.
type Config struct {
	// URL is grpc://host:port on loopback, or unix:///path.
	URL string
	// Registry is one for a sole extension.
	Registry   Registry
	Discoverer discovery.Discoverer
	Logger     *slog.Logger

	// Resync is how often an extension that answers is discovered again. Zero means DefaultResync.
	Resync time.Duration
	// Backoff is for an extension that does not answer. Zero means DefaultBackoff.
	Backoff discovery.Backoff
	// Observer may be nil.
	Observer discovery.Observer
}

// Registry is the registry that a Source fills.
type Registry interface {
	discovery.Registry
	// SetUnready replaces the reason reported until the registry is ready.
	SetUnready(text string)
}

var _ Registry = (*registry.Registry)(nil)

// Source is a source of one registration: the extension beside the gateway, which speaks gRPC. It needs neither files
// nor an API server.
type Source struct {
	extension  extensionconfig.Extension
	registry   Registry
	reconciler *discovery.Reconciler
	resync     time.Duration
	backoff    discovery.Backoff
}

// CheckURL returns an error unless text can be the URL of an extension beside the gateway.
func CheckURL(text string) error {
	scheme, _, _ := strings.Cut(text, "://")
	if s := strings.ToLower(scheme); s != registry.SchemeGRPC && s != registry.SchemeUnix {
		return errors.New("must begin with grpc:// or unix://: an extension beside the gateway needs no TLS; " +
			"register other extensions with ExtensionConfigs")
	}
	client := registry.ClientConfig{Protocol: registry.GRPC, URL: text}
	return client.CheckURL()
}

// New returns a Source. It does not call the extension yet.
func New(c Config) (*Source, error) {
	if err := CheckURL(c.URL); err != nil {
		return nil, fmt.Errorf("sidecar source: URL: %w", err)
	}
	if c.Registry == nil {
		return nil, errors.New("sidecar source: Registry, Discoverer and Logger are required")
	}
	if c.Resync == 0 {
		c.Resync = DefaultResync
	}
	if c.Resync < 0 {
		return nil, errors.New("sidecar source: Resync must be more than 0")
	}
	if c.Backoff == (discovery.Backoff{}) {
		c.Backoff = DefaultBackoff()
	}
	if err := c.Backoff.Check(); err != nil {
		return nil, fmt.Errorf("sidecar source: %w", err)
	}
	r, err := discovery.NewReconciler(discovery.ReconcilerConfig{
		Registry: c.Registry, Discoverer: c.Discoverer, Logger: c.Logger, Observer: c.Observer,
	})
	if err != nil {
		return nil, fmt.Errorf("sidecar source: %w", err)
	}
	x := extensionconfig.Extension{Registration: registry.Registration{
		Name: Name, ClientConfig: registry.ClientConfig{Owner: Name, Protocol: registry.GRPC, URL: c.URL},
	}}
	c.Registry.SetUnready("the extension beside the gateway has not answered yet")
	return &Source{extension: x, registry: c.Registry, reconciler: r, resync: c.Resync, backoff: c.Backoff}, nil
}

// NamespaceLabels returns the one label that every namespace has. The source knows no other labels, and its extension
// is called for all namespaces.
func (*Source) NamespaceLabels(name string) (labels map[string]string, known bool) {
	return map[string]string{corev1.LabelMetadataName: name}, true
}

// Run discovers the extension until ctx is done. The registry is ready once the extension has answered for the first
// time: before that, an empty list of handlers would be wrong, and callers get the reason instead. It returns nil, and
// may be called once.
func (s *Source) Run(ctx context.Context) error {
	delays, back := s.backoff.Delays(), notify.NewSignal()
	var watch sync.WaitGroup
	defer watch.Wait()
	watch.Go(func() { s.reconciler.Watch(ctx, func(string) { back.Notify() }) })
	for {
		wait := s.resync
		if _, err := s.reconciler.Reconcile(ctx, s.extension); ctx.Err() != nil {
			return nil // it has been stopped
		} else if err != nil {
			s.registry.SetUnready("the extension beside the gateway has not answered yet: " + err.Error())
			wait = delays.Next()
		} else {
			s.registry.SetReady()
			delays.Reset()
		}
		timer := time.NewTimer(wait)
		select {
		case <-ctx.Done():
			timer.Stop()
			return nil
		case <-back.C():
			timer.Stop()
		case <-timer.C:
		}
	}
}
