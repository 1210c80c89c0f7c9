// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/controllers"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/internal/sources/discovery"
	"github.com/hookgate/hookgate/registry"
	"github.com/hookgate/hookgate/test/process"
)

// A replica that waits for a conversion is alone if no gateway is ready, which the endpoints of its Service say, and stays
// so when it is the one that is ready.
func TestAlone(t *testing.T) {
	api := newAPIServer(t)
	var answer atomic.Pointer[error]
	answer.Store(new(errors.New("etcdserver: no leader")))
	log := &process.Log{}
	api.before(func(_, path string) error {
		if strings.HasSuffix(path, "/extensionconfigs") {
			return *answer.Load()
		}
		return nil
	})
	api.refuseWatches(func(path string) error {
		if strings.HasSuffix(path, "/extensionconfigs") {
			return *answer.Load()
		}
		return nil
	})
	const endpoints = "/apis/discovery.k8s.io/v1/namespaces/system/endpointslices/gateway-x"
	ready := func(is bool) {
		slice := discoveryv1.EndpointSlice{
			TypeMeta:    metav1.TypeMeta{APIVersion: "discovery.k8s.io/v1", Kind: "EndpointSlice"},
			AddressType: discoveryv1.AddressTypeIPv4,
			Endpoints:   []discoveryv1.Endpoint{{Addresses: []string{"10.0.0.1"}, Conditions: discoveryv1.EndpointConditions{Ready: &is, Serving: &is}}},
		}
		slice.Namespace, slice.Name = "system", "gateway-x"
		slice.Labels = map[string]string{discoveryv1.LabelServiceName: "gateway"}
		api.put(endpoints, slice)
	}
	ready(true)

	own, err := extensionconfig.ParseAddresses([]string{"localhost:9443", "gateway.system.svc"})
	if err != nil {
		t.Fatal(err)
	}
	reg := registry.New()
	source, err := controllers.New(controllers.Config{
		REST: api.config(), Group: controllers.ClusterAPIGroup, Catalog: catalog.New(), Registry: reg,
		Logger: slog.New(slog.NewTextHandler(log, nil)), Endpoints: controllers.NewEndpoints(),
		Shared: discovery.Shared{Discoverer: &extensions{}, Own: own},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- source.Run(ctx) }()
	defer func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
	}()
	refuse := func(text string) { answer.Store(new(errors.New(text))) }
	refuse(`conversion webhook for runtime.cluster.x-k8s.io/v1alpha1, Kind=ExtensionConfig failed: Post "https://x": connection refused`)
	eventually(t, "the replica has asked", func() (string, bool) { return log.String(), strings.Contains(log.String(), "cannot convert") })
	if source.Alone() {
		t.Error("alone, although another gateway is ready")
	}
	ready(false)
	eventually(t, "no gateway is ready", func() (string, bool) { return "not alone", source.Alone() })
	ready(true) // this one
	if !source.Alone() {
		t.Error("not alone any more, by its own endpoint")
	}
	answer.Store(new(error(nil)))
	<-reg.Ready()
}
