// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
)

const (
	// conversionFailed begins what an API server says of objects that it cannot convert. There is no type for it.
	conversionFailed = "conversion webhook for "
	// aloneInterval is the time between two looks at why the ExtensionConfigs cannot be listed.
	aloneInterval = 2 * time.Second
	// aloneTime is how long a replica that was alone counts as such. An API server tries conversions again after up to
	// half a minute, and from then on, the replica sees its own endpoint among those that are ready.
	aloneTime = 2 * time.Minute
)

// alone knows whether a replica waits for a conversion that only it can make. Its zero value does not.
type alone struct {
	mu          sync.Mutex
	unconverted bool // the API server could not convert the ExtensionConfigs
	until       time.Time
}

// Alone reports whether the ExtensionConfigs can be listed only once this replica is ready. An API server that has
// some in an older version converts them with the webhook of a gateway, which it reaches by a Service: of ready ones.
// If none is ready, this one has to be, before it has read anything; if another is, the webhook fails for another
// reason.
func (s *Source) Alone() bool {
	a := &s.alone
	a.mu.Lock()
	defer a.mu.Unlock()
	if now := time.Now(); a.unconverted && now.After(a.until) && s.config.Endpoints.unserved(s.config.Own.Services()) {
		a.until = now.Add(aloneTime)
	}
	return time.Now().Before(a.until)
}

// mayBeAlone reports whether Alone can be true: the endpoints of the gateway are followed.
func (s *Source) mayBeAlone() bool {
	return s.config.Endpoints != nil && !s.config.ReadOnly && len(s.config.Own.Services()) > 0
}

// lookForConversion looks why the ExtensionConfigs cannot be listed, until they are, or ctx is done. The cache does not
// say: an API server asks it to try again later, which clients do by themselves.
func (s *Source) lookForConversion(ctx context.Context) {
	for {
		select {
		case <-s.config.Registry.Ready():
			return
		case <-ctx.Done():
			return
		case <-time.After(aloneInterval):
		}
		err := s.listOne(ctx)
		unconverted := err != nil && strings.Contains(err.Error(), conversionFailed)
		s.alone.mu.Lock()
		first := unconverted && !s.alone.unconverted
		s.alone.unconverted = unconverted
		s.alone.mu.Unlock()
		if first {
			s.config.Logger.Warn("the API server cannot convert ExtensionConfigs that are stored in an older version",
				"error", err,
				"advice", "if no gateway was ready before, this one is ready now, and the API server can reach "+
					"its webhook; otherwise, check that the API server can call the webhook")
		}
	}
}

// listOne lists one ExtensionConfig, once.
func (s *Source) listOne(ctx context.Context) error {
	c := rest.CopyConfig(s.config.REST)
	c.APIPath = "/apis"
	c.GroupVersion = &schema.GroupVersion{Group: s.config.Group, Version: runtimev1.GroupVersion.Version}
	c.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	of, err := rest.RESTClientFor(c)
	if err != nil {
		return fmt.Errorf("list ExtensionConfigs: %w", err)
	}
	return of.Get().Resource("extensionconfigs").Param("limit", "1").MaxRetries(0).Timeout(longWait).Do(ctx).Error()
}
