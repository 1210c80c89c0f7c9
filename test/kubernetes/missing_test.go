// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/controllers"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/test/process"
)

// Without the kind ExtensionConfig, or with other versions of it only, a gateway is not ready, reports what to install,
// and needs no restart when that is there.
func TestKindsThatAreMissing(t *testing.T) {
	config, c := emptyServer(t)
	const advice = "install the CustomResourceDefinition of ExtensionConfig in runtime.cluster.x-k8s.io with version v1beta2"
	read := func() *apiextensionsv1.CustomResourceDefinition {
		text, err := os.ReadFile(filepath.Join("..", "..", "deploy", "crd",
			"runtime.cluster.x-k8s.io_extensionconfigs.yaml"))
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := errors.Join(err, yaml.UnmarshalStrict(text, crd)); err != nil {
			t.Fatal(err)
		}
		return crd
	}
	install := func(crd *apiextensionsv1.CustomResourceDefinition) {
		t.Helper()
		if _, err := envtest.InstallCRDs(config, envtest.CRDInstallOptions{CRDs: []*apiextensionsv1.CustomResourceDefinition{crd}, MaxTime: process.ServerPatience}); err != nil {
			t.Fatal(err)
		}
	}
	waits := func() *replica {
		r := start(t, func(s *controllers.Config) { s.REST = config })
		r.client = c
		eventually(t, "the log says what to install", func() (string, bool) {
			return r.log.String(), strings.Contains(r.log.String(), advice)
		})
		select {
		case <-r.registry.Ready():
			t.Error("it is ready")
		default:
		}
		return r
	}

	old := read()
	for i := range old.Spec.Versions {
		v := &old.Spec.Versions[i]
		v.Served = v.Name == "v1alpha1"
	}
	install(old)
	r := waits()
	install(read())
	r.ready(t)
	create(t, c, newConfig(t, "late", newExtension(t, "a")))
	awaitCondition(t, c, "late", discoveredCondition, metav1.ConditionTrue, "")
}

func TestServiceThatDoesNotExist(t *testing.T) {
	r := start(t, func(c *controllers.Config) {
		hooks := catalog.New()
		rest := extension.NewREST(extension.Config{
			Catalog: hooks, Codec: codec.New(hooks),
			LookupHost: func(_ context.Context, host string) ([]netip.Addr, error) {
				return nil, &net.DNSError{Err: "no such host", Name: host, IsNotFound: true}
			},
		})
		t.Cleanup(rest.Close)
		c.Discoverer = rest
	})
	config := newConfig(t, "no-service", nil)
	config.Spec.ClientConfig.Service = runtimev1.ServiceReference{Namespace: "default", Name: "nowhere"}
	create(t, r.client, config)
	got := awaitCondition(t, r.client, "no-service", discoveredCondition, metav1.ConditionFalse, "")
	want := "discover handlers: host name not found: create the Service, or name another in spec.clientConfig.service" + neverDiscovered
	if c := meta.FindStatusCondition(got.Status.Conditions, discoveredCondition); c.Message != want {
		t.Errorf("the condition says %q, want %q", c.Message, want)
	}
}

// A gateway that has waited in vain for the API server, or for a kind, can be stopped.
func TestStopsWhileItWaits(t *testing.T) {
	r := start(t, func(c *controllers.Config) { c.REST.Host = "https://127.0.0.1:1" })
	eventually(t, "the log says that there is no API server", func() (string, bool) {
		return r.log.String(), strings.Contains(r.log.String(), "still waiting for the API server")
	})
	r.stop() // which fails the test if it takes long
}
