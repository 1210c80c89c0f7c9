// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
)

// languages lists the folders of examples/ that hold an extension of the contract.
var languages = []string{"go", "java", "python", "rust", "typescript"}

const folder = "../../examples"

func TestEveryExampleIsTested(t *testing.T) {
	scripts, err := filepath.Glob(filepath.Join(folder, "*", "run"))
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, script := range scripts {
		found = append(found, filepath.Base(filepath.Dir(script)))
	}
	if diff := cmp.Diff(slices.Sorted(slices.Values(languages)), found); diff != "" {
		t.Errorf("examples with a run script (-tested +found):\n%s", diff)
	}
}

func TestExamples(t *testing.T) {
	for _, language := range languages {
		for _, transport := range []string{"TCP", "Unix socket"} {
			t.Run(language+" over "+transport, func(t *testing.T) {
				address := freeAddress(t)
				url := "grpc://" + address
				if transport != "TCP" {
					address = "unix://" + filepath.Join(shortDir(t), "x.sock")
					url = address
				}
				testExample(t, language, address, url)
			})
		}
	}
}

// testExample tests one example in steps. Each step continues from the one before, because starting a gateway or some
// of the languages is slower than testing them.
func testExample(t *testing.T, language, address, url string) {
	manifest := fmt.Sprintf("apiVersion: runtime.cluster.x-k8s.io/v1beta2\nkind: ExtensionConfig\nmetadata: {name: acme}\nspec: {clientConfig: {url: %q}}\n", url)
	g := startGateway(t, manifest)
	if code, body := g.post(t, "DiscoverVariables", "image-repository-variables.acme", "{}"); code != http.StatusServiceUnavailable {
		t.Errorf("before the extension has started: status %d: %s", code, body)
	}

	x := startExample(t, language, address)
	g.awaitHandlers(t)
	t.Run("answers", func(t *testing.T) {
		for _, name := range slices.Sorted(maps.Keys(exchanges)) {
			checkExchange(t, g, name)
		}
	})
	direct := x.dial(t)
	t.Run("discovery", func(t *testing.T) { checkDiscovery(t, direct) })
	t.Run("not implemented", func(t *testing.T) { checkNotImplemented(t, g, direct) })
	t.Run("not JSON", func(t *testing.T) { checkNotJSON(t, direct) })
	t.Run("limits", func(t *testing.T) { checkLimits(t, direct) })
	t.Run("health", func(t *testing.T) { checkHealth(t, direct) })
	t.Run("conformance", func(t *testing.T) { checkConformance(t, url) })
	t.Run("SIGTERM", func(t *testing.T) { checkTermination(t, x) })
	t.Run("away", func(t *testing.T) { checkAway(t, g) })

	x = startExample(t, language, address)
	g.awaitAnswer(t)
	x.Kill() // as a crash does, which leaves the file of a socket behind
	x = startExample(t, language, address)
	g.awaitAnswer(t)

	later := startGateway(t, manifest) // the extension is there first
	later.awaitHandlers(t)
	checkExchange(t, later, "approved upgrade")
	x.EndWell(t) // although two gateways are connected
	for _, g := range []*gateway{g, later} {
		g.EndWell(t)
	}
}

// checkExchange compares an exchange over both fronts.
func checkExchange(t *testing.T, g *gateway, name string) {
	t.Helper()
	e := exchanges[name]
	want, err := members([]byte(e.want))
	if err != nil {
		t.Fatal(err)
	}
	check := func(front string, answer []byte) {
		t.Helper()
		got, err := members(answer)
		if err != nil {
			t.Errorf("%s, %s: %v", name, front, err)
			return
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s, %s: answer (-want +got):\n%s", name, front, diff)
		}
	}
	code, body := g.post(t, e.hook, e.handler+".acme", e.request)
	if code != http.StatusOK {
		t.Errorf("%s, REST: status %d: %.500s", name, code, body)
	} else {
		check("REST", body)
	}
	if answer, err := g.call(t, e.hook, e.handler+".acme", e.request); err != nil {
		t.Errorf("%s, gRPC: %v", name, err)
	} else {
		check("gRPC", answer)
	}
}

func checkDiscovery(t *testing.T, direct *grpc.ClientConn) {
	got, err := hooksv1alpha1.NewDiscoveryServiceClient(direct).Discovery(soon(t), &hooksv1alpha1.DiscoveryRequest{})
	if err != nil {
		t.Fatal(err)
	}
	if got.GetStatus() != hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS {
		t.Errorf("status %s", got.GetStatus())
	}
	var want, have []string
	for _, h := range handlers {
		want = append(want, h.name+" hooks.runtime.cluster.x-k8s.io/v1alpha1 "+h.hook+" 10 FAILURE_POLICY_FAIL v1beta2")
	}
	for _, h := range got.GetHandlers() {
		have = append(have, fmt.Sprint(h.GetName(), " ", h.GetRequestHook().GetApiVersion(), " ", h.GetRequestHook().GetHook(), " ", h.GetTimeoutSeconds(), " ", h.GetFailurePolicy(), " ", h.GetClusterApiVersion()))
	}
	if diff := cmp.Diff(want, have); diff != "" {
		t.Errorf("handlers (-want +got):\n%s", diff)
	}
}

// A hook that a service has but the example does not implement, and a service that it does not have at all.
func checkNotImplemented(t *testing.T, g *gateway, direct *grpc.ClientConn) {
	_, err := hooksv1alpha1.NewLifecycleHooksServiceClient(direct).BeforeClusterDelete(soon(t),
		&hooksv1alpha1.BeforeClusterDeleteRequest{})
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("BeforeClusterDelete: %v, want Unimplemented", err)
	}
	_, err = hooksv1alpha1.NewUpgradePlanHooksServiceClient(direct).GenerateUpgradePlan(soon(t),
		&hooksv1alpha1.GenerateUpgradePlanRequest{})
	if status.Code(err) != codes.Unimplemented {
		t.Errorf("GenerateUpgradePlan: %v, want Unimplemented", err)
	}
	if code, body := g.post(t, "BeforeClusterDelete", "approve-upgrade.acme", `{"cluster":{}}`); code != http.StatusNotFound {
		t.Errorf("through the gateway: status %d: %s", code, body)
	}
}

// The gateway refuses such requests itself, so the test calls the example directly.
func checkNotJSON(t *testing.T, direct *grpc.ClientConn) {
	broken := &hooksv1alpha1.RawExtension{Raw: []byte(`{"metadata":`)}
	whole := &hooksv1alpha1.RawExtension{Raw: []byte(`{}`)}
	for member, call := range map[string]func(context.Context) error{
		"cluster": func(ctx context.Context) error {
			_, err := hooksv1alpha1.NewLifecycleHooksServiceClient(direct).BeforeClusterUpgrade(ctx, &hooksv1alpha1.BeforeClusterUpgradeRequest{
				Cluster: broken, FromKubernetesVersion: "v1.35.1", ToKubernetesVersion: "v1.36.1",
			})
			return err
		},
		"items[0].object": func(ctx context.Context) error {
			_, err := hooksv1alpha1.NewTopologyMutationHooksServiceClient(direct).GeneratePatches(ctx, &hooksv1alpha1.GeneratePatchesRequest{
				Variables: []*hooksv1alpha1.Variable{{Name: "imageRepository",
					Value: &hooksv1alpha1.JSON{Raw: []byte(`"x"`)}}},
				Items: []*hooksv1alpha1.GeneratePatchesRequestItem{{Uid: "1", Object: broken}},
			})
			return err
		},
		"desired.machine": func(ctx context.Context) error {
			_, err := hooksv1alpha1.NewInPlaceUpdateHooksServiceClient(direct).CanUpdateMachine(ctx, &hooksv1alpha1.CanUpdateMachineRequest{
				Current: &hooksv1alpha1.CanUpdateMachineRequestObjects{Machine: whole},
				Desired: &hooksv1alpha1.CanUpdateMachineRequestObjects{Machine: broken},
			})
			return err
		},
	} {
		err := call(soon(t))
		if status.Code(err) != codes.InvalidArgument || !strings.HasPrefix(status.Convert(err).Message(), member+": ") {
			t.Errorf("%s that is not JSON: %v, want InvalidArgument that begins with %q", member, err, member+": ")
		}
	}
}

// 20 MiB are accepted; more is refused with a status, without closing the connection.
func checkLimits(t *testing.T, direct *grpc.ClientConn) {
	upgrade := func(padding int) error {
		_, err := hooksv1alpha1.NewLifecycleHooksServiceClient(direct).BeforeClusterUpgrade(soon(t), &hooksv1alpha1.BeforeClusterUpgradeRequest{
			Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(`{"padding":"` + strings.Repeat("x",
				padding) + `"}`)},
			FromKubernetesVersion: "v1.36.1", ToKubernetesVersion: "v1.36.2",
		})
		return err
	}
	if err := upgrade(20<<20 - 1000); err != nil {
		t.Errorf("20 MiB less 1000 bytes: %v", err)
	}
	// Rust's library uses a different code for this.
	if code := status.Code(upgrade(20 << 20)); code != codes.ResourceExhausted && code != codes.OutOfRange {
		t.Errorf("more than 20 MiB: %s, want ResourceExhausted or OutOfRange", code)
	}
}

func checkHealth(t *testing.T, direct *grpc.ClientConn) {
	got, err := healthv1.NewHealthClient(direct).Check(soon(t), &healthv1.HealthCheckRequest{})
	if err != nil || got.GetStatus() != healthv1.HealthCheckResponse_SERVING {
		t.Errorf("health: %v, %v", got.GetStatus(), err)
	}
}

// checkTermination stops the example during a call whose request is still incomplete. The call is finished.
func checkTermination(t *testing.T, x *example) {
	conn := x.dial(t)
	ctx := soon(t)
	call, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: true},
		hooksv1alpha1.LifecycleHooksService_BeforeClusterUpgrade_FullMethodName)
	if err != nil {
		t.Fatal(err)
	}
	// The frames of a connection stay in order: once this is answered, the server has begun the call above.
	if _, err := hooksv1alpha1.NewDiscoveryServiceClient(conn).Discovery(ctx, &hooksv1alpha1.DiscoveryRequest{}); err != nil {
		t.Fatal(err)
	}
	if err := x.Terminate(); err != nil {
		t.Fatal(err)
	}
	if !conn.WaitForStateChange(ctx, connectivity.Ready) {
		t.Fatal("after SIGTERM, the server goes on taking calls on connections that it has")
	}
	request := &hooksv1alpha1.BeforeClusterUpgradeRequest{
		Cluster: &hooksv1alpha1.RawExtension{Raw: []byte(`{}`)}, FromKubernetesVersion: "v1.36.1",
		ToKubernetesVersion: "v1.36.2",
	}
	if err := call.SendMsg(request); err != nil {
		t.Errorf("send the request of a call that had begun: %v", err)
	}
	answer := new(hooksv1alpha1.BeforeClusterUpgradeResponse)
	if err := call.CloseSend(); err != nil {
		t.Error(err)
	}
	if err := call.RecvMsg(answer); err != nil || answer.GetStatus() != hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS {
		t.Errorf("a call that had begun before SIGTERM: %v, %v", answer, err)
	}
	_ = conn.Close()
	if code := x.ExitCode(t); code != 0 {
		t.Errorf("exit status %d after SIGTERM, want 0", code)
	}
}

// checkAway calls while the example is down. The gateway's error names it.
func checkAway(t *testing.T, g *gateway) {
	e := exchanges["approved upgrade"]
	code, body := g.post(t, e.hook, e.handler+".acme", e.request)
	if code != http.StatusServiceUnavailable || !strings.Contains(string(body), "approve-upgrade.acme") {
		t.Errorf("REST: status %d: %s", code, body)
	}
	_, err := g.call(t, e.hook, e.handler+".acme", e.request)
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "approve-upgrade.acme") {
		t.Errorf("gRPC: %v", err)
	}
}

// The script of an unbuilt example says what to do.
func TestNotBuilt(t *testing.T) {
	for _, language := range languages {
		t.Run(language, func(t *testing.T) {
			script, err := os.ReadFile(filepath.Join(folder, language, "run"))
			if err != nil {
				t.Fatal(err)
			}
			copied := filepath.Join(t.TempDir(), "run")
			if err := os.WriteFile(copied, script, 0o700); err != nil {
				t.Fatal(err)
			}
			code, output := runScript(t, copied)
			if want := "run `make examples` first\n"; code != 1 || output != want {
				t.Errorf("exit status %d, printed %q, want 1 and %q", code, output, want)
			}
		})
	}
}

// An address in use, or an invalid one, ends the example with an error.
func TestBadAddress(t *testing.T) {
	for _, language := range languages {
		for name, address := range map[string]string{
			"no folder": "unix://" + filepath.Join(shortDir(t), "missing", "x.sock"),
			"taken":     takenAddress(t),
		} {
			t.Run(language+" "+name, func(t *testing.T) {
				gatewayPath(t)
				code, output := runScript(t, filepath.Join(folder, language, "run"), address)
				if code <= 0 || strings.Contains(output, "listening on") || output == "" {
					t.Errorf("exit status %d, printed %q, want an error", code, output)
				}
			})
		}
	}
}
