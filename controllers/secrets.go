// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/hookgate/hookgate/internal/base/limits"
)

// secrets reads the Secrets of CAs, and knows which of them have changed since. It gets the Secrets that
// ExtensionConfigs name, one after the other: to watch them, the gateway would need the right to list all Secrets,
// whose contents that right includes.
type secrets struct {
	reader   client.Reader // not cached
	interval time.Duration

	mu   sync.Mutex
	used map[string]string // the resource version that was read last, by namespace/name; empty for no Secret
}

func newSecrets(reader client.Reader, interval time.Duration) *secrets {
	return &secrets{reader: reader, interval: interval, used: map[string]string{}}
}

// get reads a Secret.
func (s *secrets) get(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	secret := &corev1.Secret{}
	err := s.reader.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret)
	if err == nil || apierrors.IsNotFound(err) {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.used[namespace+"/"+name] = secret.ResourceVersion
	}
	return secret, err
}

// changed reports whether a Secret is no longer as it was read last. It reads the Secret, but only once it was read for
// an ExtensionConfig.
func (s *secrets) changed(ctx context.Context, reference string) bool {
	s.mu.Lock()
	before, ok := s.used[reference]
	s.mu.Unlock()
	if !ok {
		return false
	}
	namespace, name, _ := strings.Cut(reference, "/")
	now, err := s.get(ctx, namespace, name)
	return (err == nil || apierrors.IsNotFound(err)) && now.ResourceVersion != before
}

// keep forgets all Secrets but those that are referenced.
func (s *secrets) keep(references map[string]bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for reference := range s.used {
		if !references[reference] {
			delete(s.used, reference)
		}
	}
}

// followSecrets looks at the Secrets that ExtensionConfigs name, until ctx is done.
func (r *reconciler) followSecrets(ctx context.Context) {
	pace := rate.NewLimiter(limits.SecretsPerSecond, 1)
	ticker := time.NewTicker(r.secrets.interval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
		if r.leadership.term() == nil {
			continue
		}
		named := r.namedSecrets(ctx)
		r.secrets.keep(named)
		for reference := range named {
			if pace.Wait(ctx) != nil {
				return
			}
			if r.secrets.changed(ctx, reference) {
				r.reconcileNamed(ctx, r.list(ctx, client.MatchingFields{secretIndex: reference}))
			}
		}
	}
}

// namedSecrets returns the Secrets that the ExtensionConfigs in the cache name.
func (r *reconciler) namedSecrets(ctx context.Context) map[string]bool {
	named := map[string]bool{}
	var list runtimev1.ExtensionConfigList
	if err := r.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		if ctx.Err() == nil {
			r.logger.Error("ExtensionConfigs cannot be listed from the cache", "error", err)
		}
		return named
	}
	for i := range list.Items {
		for _, reference := range bySecret(&list.Items[i]) {
			named[reference] = true
		}
	}
	return named
}
