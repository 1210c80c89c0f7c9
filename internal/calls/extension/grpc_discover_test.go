// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/reflection"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/registry"
)

// manyServices lists so many services.
type manyServices int

func (n manyServices) GetServiceInfo() map[string]grpc.ServiceInfo {
	services := map[string]grpc.ServiceInfo{}
	for i := range int(n) {
		services[fmt.Sprintf("hookgate.hooks.v1alpha1.Service%06d", i)] = grpc.ServiceInfo{}
	}
	return services
}

func TestGRPCDiscover(t *testing.T) {
	ca := newAuthority(t)
	named := func() (*hooksv1alpha1.DiscoveryResponse, error) {
		return &hooksv1alpha1.DiscoveryResponse{
			Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS,
			Handlers: []*hooksv1alpha1.ExtensionHandler{{
				Name: "before-create", RequestHook: &hooksv1alpha1.GroupVersionHook{ApiVersion: "hooks.runtime.cluster.x-k8s.io/v1alpha1", Hook: "BeforeClusterCreate"},
			}},
		}, nil
	}
	lifecycle := []string{
		"aftercontrolplaneinitialized", "aftercontrolplaneupgrade", "afterclusterupgrade", "afterworkersupgrade", "beforeclustercreate",
		"beforeclusterdelete", "beforeclusterupgrade", "beforecontrolplaneupgrade", "beforeworkersupgrade",
	}
	for name, tc := range map[string]struct {
		reason   string
		cc       registry.ClientConfig
		handlers []string
		want     string
	}{
		"discovery":  {reason: "the extension lists its handlers", cc: newAuthor(t, ca, &author{discover: named}, nil), handlers: []string{"before-create"}},
		"reflection": {reason: "the server says which services it has", cc: newAuthor(t, ca, &author{}, func(s *grpc.Server) { reflection.Register(s) }), handlers: lifecycle},
		"neither": {
			reason: "the answer is empty", cc: newAuthor(t, ca, &author{}, nil),
			want: "discover handlers: the extension has neither Discovery nor server reflection, so its handlers are unknown: implement Discovery",
		},
		"too many services": {
			reason: "a list that no server has",
			cc: newAuthor(t, ca, &author{}, func(s *grpc.Server) {
				reflectionv1.RegisterServerReflectionServer(s, reflection.NewServerV1(reflection.ServerOptions{Services: manyServices(10_000)}))
			}),
			want: "discover handlers: the extension has neither Discovery nor server reflection, so its handlers are unknown: implement Discovery",
		},
		"other services": {
			reason: "a server that is no extension", cc: newAuthor(t, ca, nil, notServingNothing),
			want: "discover handlers: the extension has no gRPC service for any hook; it has grpc.health.v1.Health, grpc.reflection.v1.ServerReflection, grpc.reflection.v1alpha.ServerReflection",
		},
		"error": {
			reason: "discovery is there, and fails", want: "discover handlers: answered Internal",
			cc: newAuthor(t, ca, &author{discover: func() (*hooksv1alpha1.DiscoveryResponse, error) { return nil, status.Error(codes.Internal, "x") }}, nil),
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGRPC(t, Config{})
			d, err := g.Discover(t.Context(), tc.cc)
			if tc.want != "" {
				wantError(t, tc.reason, nil, err, hook.BadResponse, tc.want)
				return
			}
			if err != nil {
				t.Fatalf("%s: %v (%v)", tc.reason, err, errors.Unwrap(err))
			}
			var names []string
			for _, h := range d.Handlers {
				names = append(names, h.Name)
				if h.Timeout != 10*time.Second || h.FailurePolicy != hook.Fail {
					t.Errorf("handler %+v lacks the defaults", h)
				}
			}
			if diff := cmp.Diff(sorted(tc.handlers), names); diff != "" {
				t.Errorf("%s: -want +got\n%s", tc.reason, diff)
			}
		})
	}
}

// A gRPC extension states which objects its handlers understand, in discovery.
func TestGRPCDiscoversStatedVersions(t *testing.T) {
	state := func(version string) func() (*hooksv1alpha1.DiscoveryResponse, error) {
		return func() (*hooksv1alpha1.DiscoveryResponse, error) {
			return &hooksv1alpha1.DiscoveryResponse{
				Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS,
				Handlers: []*hooksv1alpha1.ExtensionHandler{{
					Name: "before-create", RequestHook: &hooksv1alpha1.GroupVersionHook{ApiVersion: "hooks.runtime.cluster.x-k8s.io/v1alpha1", Hook: "BeforeClusterCreate"},
					ClusterApiVersion: version,
				}},
			}, nil
		}
	}
	ca := newAuthority(t)
	for version, want := range map[string]string{
		"": "", "v1beta1": "", "v1beta2": "",
		"v1alpha4": `discover handlers: answer: handlers[0].cluster_api_version: "v1alpha4" is neither "v1beta1" nor "v1beta2"`,
	} {
		g := newGRPC(t, Config{})
		d, err := g.Discover(t.Context(), newAuthor(t, ca, &author{discover: state(version)}, nil))
		if want != "" {
			wantError(t, "there is no conversion to that version", nil, err, hook.BadResponse, want)
			continue
		}
		if err != nil {
			t.Errorf("%q: %v (%v)", version, err, errors.Unwrap(err))
		} else if got := d.Handlers[0].ClusterAPIVersion; got != version {
			t.Errorf("%q was stated, and %q is known", version, got)
		}
	}
}
