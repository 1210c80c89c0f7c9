// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/test/process"
	"github.com/hookgate/hookgate/test/samples"
)

// callGRPC calls a hook through its generated stub.
func callGRPC(ctx context.Context, t testing.TB, conn *grpc.ClientConn, hook, handler string,
	body []byte) (proto.Message, error) {
	t.Helper()
	lifecycle := hooksv1alpha1.NewLifecycleHooksServiceClient(conn)
	topology := hooksv1alpha1.NewTopologyMutationHooksServiceClient(conn)
	inPlace := hooksv1alpha1.NewInPlaceUpdateHooksServiceClient(conn)
	plan := hooksv1alpha1.NewUpgradePlanHooksServiceClient(conn)
	switch hook {
	case "BeforeClusterCreate":
		return lifecycle.BeforeClusterCreate(ctx, message(t,
			&hooksv1alpha1.BeforeClusterCreateRequest{Handler: handler}, body))
	case "AfterControlPlaneInitialized":
		return lifecycle.AfterControlPlaneInitialized(ctx,
			message(t, &hooksv1alpha1.AfterControlPlaneInitializedRequest{Handler: handler}, body))
	case "BeforeClusterUpgrade":
		return lifecycle.BeforeClusterUpgrade(ctx,
			message(t, &hooksv1alpha1.BeforeClusterUpgradeRequest{Handler: handler}, body))
	case "BeforeControlPlaneUpgrade":
		return lifecycle.BeforeControlPlaneUpgrade(ctx,
			message(t, &hooksv1alpha1.BeforeControlPlaneUpgradeRequest{Handler: handler}, body))
	case "AfterControlPlaneUpgrade":
		return lifecycle.AfterControlPlaneUpgrade(ctx,
			message(t, &hooksv1alpha1.AfterControlPlaneUpgradeRequest{Handler: handler}, body))
	case "BeforeWorkersUpgrade":
		return lifecycle.BeforeWorkersUpgrade(ctx,
			message(t, &hooksv1alpha1.BeforeWorkersUpgradeRequest{Handler: handler}, body))
	case "AfterWorkersUpgrade":
		return lifecycle.AfterWorkersUpgrade(ctx, message(t,
			&hooksv1alpha1.AfterWorkersUpgradeRequest{Handler: handler}, body))
	case "AfterClusterUpgrade":
		return lifecycle.AfterClusterUpgrade(ctx, message(t,
			&hooksv1alpha1.AfterClusterUpgradeRequest{Handler: handler}, body))
	case "BeforeClusterDelete":
		return lifecycle.BeforeClusterDelete(ctx, message(t,
			&hooksv1alpha1.BeforeClusterDeleteRequest{Handler: handler}, body))
	case "GeneratePatches":
		return topology.GeneratePatches(ctx, message(t, &hooksv1alpha1.GeneratePatchesRequest{Handler: handler}, body))
	case "ValidateTopology":
		return topology.ValidateTopology(ctx, message(t, &hooksv1alpha1.ValidateTopologyRequest{Handler: handler},
			body))
	case "DiscoverVariables":
		return topology.DiscoverVariables(ctx, message(t, &hooksv1alpha1.DiscoverVariablesRequest{Handler: handler},
			body))
	case "GenerateUpgradePlan":
		return plan.GenerateUpgradePlan(ctx, message(t, &hooksv1alpha1.GenerateUpgradePlanRequest{Handler: handler},
			body))
	case "CanUpdateMachine":
		return inPlace.CanUpdateMachine(ctx, message(t, &hooksv1alpha1.CanUpdateMachineRequest{Handler: handler}, body))
	case "CanUpdateMachineSet":
		return inPlace.CanUpdateMachineSet(ctx, message(t, &hooksv1alpha1.CanUpdateMachineSetRequest{Handler: handler},
			body))
	case "UpdateMachine":
		return inPlace.UpdateMachine(ctx, message(t, &hooksv1alpha1.UpdateMachineRequest{Handler: handler}, body))
	}
	t.Fatalf("no stub for hook %q", hook)
	return nil, nil
}

func message[M interface {
	ProtoReflect() protoreflect.Message
}](t testing.TB, m M, body []byte) M {
	t.Helper()
	toMessage(t, body, m.ProtoReflect(), true)
	return m
}

// checkSameMessage compares an answer over gRPC with the answer to a direct call. Zero values are left out on both
// sides, because protobuf does not distinguish them from absent ones.
func checkSameMessage(t testing.TB, got proto.Message, want members) {
	t.Helper()
	expected := members{}
	for name, value := range want {
		if value != "" && value != json.Number("0") {
			expected[name] = value
		}
	}
	if diff := cmp.Diff(expected, fromMessage(t, got.ProtoReflect())); diff != "" {
		t.Errorf("the answer differs from the extension's own (-extension +gateway):\n%s", diff)
	}
}

func TestGRPCEveryHook(t *testing.T) {
	g, e := startHub(t)
	conn := g.dial(t)
	for _, hook := range samples.Hooks() {
		t.Run(hook, func(t *testing.T) {
			body := samples.Body(hook)
			call := func(t *testing.T, handler string, want members) {
				t.Helper()
				got, err := callGRPC(soon(t), t, conn, hook, handler, body)
				if err != nil {
					t.Fatalf("call: %v", err)
				}
				checkSameMessage(t, got, want)
			}
			var all []members
			for _, handler := range handlersOf(hook) {
				want := direct(t, g.client, e.url, hook, handler, withSettings(samples.Request(hook), hubSettings()))
				all = append(all, want)
				t.Run("registered name of "+handler, func(t *testing.T) { call(t, handler+".hub", want) })
				if !samples.Lifecycle(hook) {
					t.Run("label of "+handler, func(t *testing.T) { call(t, handler+"--hub", want) })
				}
			}
			want := all[0]
			if samples.Lifecycle(hook) {
				want = merged(all)
				t.Run("aggregate by name", func(t *testing.T) { call(t, strings.ToLower(hook), want) })
			}
			t.Run("no handler", func(t *testing.T) { call(t, "", want) })
		})
	}
}

func TestGRPCLargeBodies(t *testing.T) {
	g, e := startHub(t)
	conn := g.dial(t)
	request := samples.GeneratePatches(2000)
	body := samples.Marshal(request)
	want := direct(t, g.client, e.url, "GeneratePatches", "patches", withSettings(request, hubSettings()))
	got, err := callGRPC(soon(t), t, conn, "GeneratePatches", "patches--hub", body)
	if err != nil {
		t.Fatalf("5 MB request: %v", err)
	}
	checkSameMessage(t, got, want)

	huge := &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(`{"x":"` + strings.Repeat("x", 25<<20) + `"}`)}}
	if _, err := hooksv1alpha1.NewLifecycleHooksServiceClient(conn).BeforeClusterCreate(soon(t), huge); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("25 MiB request: %v, want ResourceExhausted", err)
	}
}

func TestGRPCDiscovery(t *testing.T) {
	g, _ := startHub(t)
	_, overREST := g.discovery(t)
	got, err := hooksv1alpha1.NewDiscoveryServiceClient(g.dial(t)).Discovery(soon(t), &hooksv1alpha1.DiscoveryRequest{})
	if err != nil {
		t.Fatalf("Discovery: %v", err)
	}
	if got.GetStatus() != hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS {
		t.Errorf("status %s", got.GetStatus())
	}
	var want, names []string
	for _, h := range overREST {
		want = append(want, h.Name)
	}
	for _, h := range got.GetHandlers() {
		names = append(names, h.GetName())
	}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("handlers (-REST +gRPC):\n%s", diff)
	}
}

func TestGRPCHealthAndReflection(t *testing.T) {
	process.Program(t, gatewayVariable)
	g := startGateway(t, newAuthority(t), nil)
	conn := g.dial(t)
	health, err := healthv1.NewHealthClient(conn).Watch(soon(t), &healthv1.HealthCheckRequest{})
	if err != nil {
		t.Fatalf("health: %v", err)
	}
	for last := healthv1.HealthCheckResponse_UNKNOWN; last != healthv1.HealthCheckResponse_SERVING; {
		got, err := health.Recv() // the gateway serves before it is ready
		if err != nil {
			t.Fatalf("health: %v after %v, want %v", err, last, healthv1.HealthCheckResponse_SERVING)
		}
		last = got.GetStatus()
	}
	stream, err := reflectionv1.NewServerReflectionClient(conn).ServerReflectionInfo(soon(t))
	if err != nil {
		t.Fatalf("reflection: %v", err)
	}
	if err := stream.Send(&reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}}); err != nil {
		t.Fatalf("reflection: %v", err)
	}
	list, err := stream.Recv()
	if err != nil {
		t.Fatalf("reflection: %v", err)
	}
	services := map[string]bool{}
	for _, s := range list.GetListServicesResponse().GetService() {
		services[strings.TrimPrefix(s.GetName(), "hookgate.hooks.v1alpha1.")] = true
	}
	for _, want := range []string{"DiscoveryService", "LifecycleHooksService", "TopologyMutationHooksService", "InPlaceUpdateHooksService", "UpgradePlanHooksService"} {
		if !services[want] {
			t.Errorf("reflection does not list %s", want)
		}
	}
}
