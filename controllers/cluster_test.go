// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/url"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/kinds/extensionconfig"
	"github.com/hookgate/hookgate/internal/sources/discovery"
	"github.com/hookgate/hookgate/registry"
)

func TestAddresses(t *testing.T) {
	own, err := extensionconfig.ParseAddresses(
		[]string{"gateway.system.svc", "127.0.0.1:9443", "[::1]:9443", "GW.example.com:443"},
	)
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		reason string
		url    string
		want   bool
	}{
		"any port": {reason: "an address without port has all", url: "https://gateway.system.svc:8443", want: true},
		"prefix": {
			reason: "a prefix leads to the same server",
			url:    "https://gateway.system.svc:443/hooks",
			want:   true,
		},
		"upper case": {reason: "host names have no case", url: "https://Gateway.System.svc", want: true},
		"longer": {
			reason: "the cluster's domain may be written out",
			url:    "https://gateway.system.svc.cluster.local.:443",
			want:   true,
		},
		"other service":    {reason: "another Service", url: "https://gateway2.system.svc", want: false},
		"other namespace":  {reason: "another namespace", url: "https://gateway.other.svc", want: false},
		"port":             {reason: "the very address", url: "https://127.0.0.1:9443", want: true},
		"other port":       {reason: "something else on the same host", url: "https://127.0.0.1:9444", want: false},
		"IPv6":             {reason: "one address has many spellings", url: "https://[0:0:0:0:0:0:0:1]:9443", want: true},
		"default port":     {reason: "https means 443", url: "https://gw.example.com", want: true},
		"not default port": {reason: "https means 443", url: "https://127.0.0.1", want: false},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := own.Check(tc.url) != nil; got != tc.want {
				t.Errorf("%s: %q is refused: %t, want %t", tc.reason, tc.url, got, tc.want)
			}
		})
	}
	for _, wrong := range []string{"", "https://gateway.system.svc", "gateway/hooks", "user@gateway", ":9443"} {
		if _, err := extensionconfig.ParseAddresses([]string{wrong}); err == nil {
			t.Errorf("%q is taken for an address", wrong)
		}
	}
}

func TestNewErrors(t *testing.T) {
	hooks := catalog.New()
	discoverer := extension.NewREST(extension.Config{Catalog: hooks, Codec: codec.New(hooks)})
	t.Cleanup(discoverer.Close)
	cases := map[string]struct {
		reason string
		change func(*Config)
		want   string
	}{
		"no REST": {
			reason: "there is nothing to watch",
			change: func(c *Config) { c.REST = nil },
			want:   "cluster source: REST is required",
		},
		"group": {
			reason: "there are two groups",
			change: func(c *Config) { c.Group = "x" },
			want:   `cluster source: Group "x" is neither runtime.cluster.x-k8s.io nor runtime.hookgate.dev`,
		},
		"resync": {
			reason: "time goes forward",
			change: func(c *Config) { c.Resync = -1 },
			want:   "cluster source: Resync, Concurrency and SecretInterval must be more than 0",
		},
		"backoff": {
			reason: "a backoff has a delay",
			change: func(c *Config) { c.Backoff.Multiplier = 2 },
			want:   "cluster source: backoff: BaseDelay must be more than 0",
		},
		"no registry": {
			reason: "the core needs it",
			change: func(c *Config) { c.Registry = nil },
			want:   "cluster source: Catalog and Registry are required",
		},
		"no catalog": {
			reason: "a process has one, which its parts share",
			change: func(c *Config) { c.Catalog = nil },
			want:   "cluster source: Catalog and Registry are required",
		},
		"no lease": {
			reason: "replicas compete for something", change: func(c *Config) { c.LeaderElection.Enabled = true },
			want: "cluster source: leader election: Namespace and Name of the Lease are required",
		},
		"durations": {
			reason: "a leader must give up before others take over",
			change: func(c *Config) {
				c.LeaderElection = LeaderElection{
					Enabled:       true,
					Namespace:     "n",
					Name:          "l",
					LeaseDuration: time.Second,
					RenewDeadline: time.Second,
				}
			},
			want: "cluster source: leader election: LeaseDuration must be more than RenewDeadline, and RenewDeadline more than 1.2 times RetryPeriod",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := Config{
				REST:     &rest.Config{},
				Catalog:  catalog.New(),
				Registry: registry.New(),
				Logger:   slog.New(slog.DiscardHandler),
				Shared:   discovery.Shared{Discoverer: discoverer},
			}
			tc.change(&c)
			if _, err := New(c); err == nil || err.Error() != tc.want {
				t.Errorf("%s: New: %v, want %s", tc.reason, err, tc.want)
			}
		})
	}
}

func TestMemoryOfFailures(t *testing.T) {
	b := discovery.Backoff{BaseDelay: time.Second, Multiplier: 2, MaxDelay: 3 * time.Second}
	var m memory
	for _, s := range []struct {
		reason     string
		generation int64
		want       time.Duration
	}{
		{"the first failure", 1, time.Second},
		{"it grows", 1, 2 * time.Second},
		{"up to a limit", 1, 3 * time.Second},
		{"a change starts over", 2, time.Second},
		{"and grows", 2, 2 * time.Second},
	} {
		if got := m.failed(s.generation, b); got != s.want {
			t.Errorf("%s: wait %s, want %s", s.reason, got, s.want)
		}
	}
	m.succeeded()
	if got := m.failed(2, b); got != time.Second {
		t.Errorf("a success starts over: wait %s, want 1s", got)
	}
}

func TestMemoryOfWrites(t *testing.T) {
	var m memory
	config := func(version string) *runtimev1.ExtensionConfig {
		c := &runtimev1.ExtensionConfig{}
		c.ResourceVersion = version
		return c
	}
	if m.outdated(config("9"), conflictDelay) {
		t.Error("without a write, the cache is outdated")
	}
	m.wrote(config("10"))
	for version, want := range map[string]bool{"9": true, "10": false, "11": false, "no number": false} {
		if got := m.outdated(config(version), conflictDelay); got != want {
			t.Errorf("after a write of version 10, version %s is outdated: %t", version, got)
		}
	}
	m.written = m.written.Add(-conflictDelay)
	if m.outdated(config("9"), conflictDelay) {
		t.Error("the wait for a lagging cache is not bounded")
	}
}

func TestWatchProblemsAreToldOnce(t *testing.T) {
	var log strings.Builder
	p := &watchProblems{logger: slog.New(slog.NewTextHandler(&log, nil)), group: HookgateGroup}
	reflector := toolscache.NewReflector(
		&toolscache.ListWatch{},
		&runtimev1.ExtensionConfig{},
		toolscache.NewStore(toolscache.MetaNamespaceKeyFunc),
		0,
	)
	resource := schema.GroupResource{Group: HookgateGroup, Resource: "extensionconfigs"}
	refused := &url.Error{Op: "Get", URL: "https://127.0.0.1:1", Err: errors.New("connection refused")}
	steps := []struct {
		reason string
		err    error
		want   string
	}{
		{reason: "a watch ends from time to time", err: io.EOF},
		{reason: "and begins again with what is there now", err: apierrors.NewResourceExpired("too old")},
		{
			reason: "the definition is missing, or of another version",
			err:    apierrors.NewNotFound(resource, ""),
			want:   "install the CustomResourceDefinition of ExtensionConfig in runtime.hookgate.dev with version v1beta2",
		},
		{reason: "it was logged already", err: apierrors.NewNotFound(resource, "")},
		{reason: "a role is missing", err: apierrors.NewForbidden(resource, "", nil), want: "list and watch it"},
		{reason: "the API server is away", err: refused, want: "the known state stays in use"},
		{reason: "it still is", err: &url.Error{Op: "Get", URL: "https://127.0.0.1:1", Err: io.EOF}},
	}
	for _, s := range steps {
		log.Reset()
		p.handle(context.Background(), reflector, s.err)
		if got := log.String(); (s.want == "") != (got == "") || !strings.Contains(got, s.want) {
			t.Errorf("%s: logged %q, want %q", s.reason, got, s.want)
		}
	}
}
