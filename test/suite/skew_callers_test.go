// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"encoding/json"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protoreflect"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/test/process"
	"github.com/hookgate/hookgate/test/samples"
)

// A current extension reads behind v1.12 what it reads behind v1.14, except for fields that v1.12 lacks.
func TestSkewNewExtensionBehindOldCore(t *testing.T) {
	process.Program(t, gatewayVariable)
	a := newAuthority(t)
	e := startExtension(t, a, "new", "0")
	settings := map[string]string{}
	for _, hook := range samples.Hooks() {
		settings[handlersOf(hook)[0]] = echoed
	}
	manifests := crdManifests(t)
	manifests["new.yaml"], manifests["policy.yaml"] = registration{name: "new", url: e.url,
		settings: settings}.manifest(a), understands("new", "", "v1beta2")
	g := startGateway(t, a, manifests)
	g.awaitHandler(t, "patches--new")
	both := callers(g, g.dial(t))
	for _, hook := range samples.Hooks() {
		handler := handlersOf(hook)[0]
		// The fields of a Cluster that both versions know, and the losses between them.
		cluster := fullCluster()
		cluster.Spec.Topology.ControlPlane.HealthCheck.Checks.UnhealthyMachineConditions =
			newerCluster().Spec.Topology.ControlPlane.HealthCheck.Checks.UnhealthyMachineConditions
		var lost []string
		if samples.Lifecycle(hook) {
			lost = []string{"cluster.spec.topology.controlPlane.healthCheck.checks.unhealthyMachineConditions: missing"}
		}
		want := decodedBy(t, direct(t, g.client, e.url, hook, handler,
			withSettings(requestWith(hook, cluster), settings)))
		sent := asOldCore(t, hook, samples.Marshal(requestWith(hook, cluster)))
		for front, call := range both {
			t.Run(front+" "+hook, func(t *testing.T) {
				got := decodedBy(t, call(t, hook, handler+".new", sent))
				if diff := cmp.Diff(lost, differences(generic(t, want), generic(t, got))); diff != "" {
					t.Errorf("behind v1.12 it differs from behind v1.14 by (-want +got):\n%s", diff)
				}
			})
		}
	}
	g.EndWell(t) // by then it has written its log
	if output := g.Output(); strings.Contains(output, "conversion loses a member") {
		t.Error("the gateway says that it lost something")
	}
}

// Core before v1.11 sent members that were removed since. They do not reach a current extension, and the gateway logs
// that once.
func TestSkewLossesOfRequestsBeforeV111(t *testing.T) {
	const hook, handler = "BeforeClusterCreate", "create-audit"
	process.Program(t, gatewayVariable)
	a := newAuthority(t)
	e := startExtension(t, a, "new", "0")
	manifests := crdManifests(t)
	manifests["new.yaml"] = registration{name: "new", url: e.url,
		settings: map[string]string{handler: echoed}}.manifest(a)
	manifests["policy.yaml"] = understands("new", "", "v1beta2")
	g := startGateway(t, a, manifests)
	g.awaitHandler(t, "patches--new")

	request := decodeMembers(t, asOldCore(t, hook, samples.Marshal(requestWith(hook, fullCluster()))))
	cluster := object(t, request, "cluster")
	cluster["apiVersion"], cluster["kind"] = "cluster.x-k8s.io/v1beta1", "Cluster"
	topology := object(t, request, "cluster", "spec", "topology")
	topology["rolloutAfter"] = "2026-06-01T09:00:00Z"
	for _, v := range topology["variables"].([]any) {
		v.(map[string]any)["definitionFrom"] = "inline"
	}
	body, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	for front, call := range callers(g, g.dial(t)) {
		got := decodedBy(t, call(t, hook, handler+".new", body))
		if class := object(t, got, "cluster", "spec", "topology", "classRef")["name"]; class != "production-v3" {
			t.Errorf("%s: the extension got class %v", front, class)
		}
	}
	if want := `hookgate_conversion_lost_members_total{handler="create-audit.new",hook="BeforeClusterCreate"} 4`; !strings.Contains(g.metrics(t), want+"\n") {
		t.Errorf("the metrics have no %s", want)
	}
	g.checkLoggedOnce(t, "cluster.spec.topology.rolloutAfter", "cluster.spec.topology.variables[*].definitionFrom")
}

// reader is a gRPC extension. It states what its handlers, all of lifecycle hooks, understand, and answers with the
// Cluster that it received.
type reader struct {
	catalog *catalog.Catalog
	version string
}

func (r reader) serve(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	if strings.HasSuffix(method, "/Discovery") {
		answer := &hooksv1alpha1.DiscoveryResponse{Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS}
		for _, hook := range samples.Hooks() {
			if samples.Lifecycle(hook) {
				answer.Handlers = append(answer.Handlers, &hooksv1alpha1.ExtensionHandler{
					Name: strings.ToLower(hook), RequestHook: &hooksv1alpha1.GroupVersionHook{ApiVersion: runtimehooksv1.GroupVersion.String(), Hook: hook},
					ClusterApiVersion: r.version,
				})
			}
		}
		if err := stream.RecvMsg(&hooksv1alpha1.DiscoveryRequest{}); err != nil {
			return err
		}
		return stream.SendMsg(answer)
	}
	for _, h := range r.catalog.Hooks() {
		if h.Method != method {
			continue
		}
		request, answer := h.Request.New(), h.Response.New()
		if err := stream.RecvMsg(request.Interface()); err != nil {
			return err
		}
		cluster := request.Get(request.Descriptor().Fields().ByName("cluster")).Message()
		raw := cluster.Get(cluster.Descriptor().Fields().ByName("raw")).Bytes()
		answer.Set(answer.Descriptor().Fields().ByName("message"), protoreflect.ValueOfString(string(raw)))
		answer.Set(answer.Descriptor().Fields().ByName("status"),
			protoreflect.ValueOfEnum(hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS.Number()))
		return stream.SendMsg(answer.Interface())
	}
	return status.Error(codes.Unimplemented, method)
}

// A gRPC extension that states that it understands v1beta1 needs no policy, and gets the text that v1.12 sends, for
// callers of any version.
func TestSkewExtensionThatStatesItsVersion(t *testing.T) {
	process.Program(t, gatewayVariable)
	a := newAuthority(t)
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(grpc.UnknownServiceHandler(reader{catalog: catalog.New(), version: "v1beta1"}.serve))
	go func() { _ = server.Serve(l) }() // until it is stopped
	t.Cleanup(server.Stop)
	manifests := crdManifests(t)
	manifests["reader.yaml"] = "apiVersion: runtime.cluster.x-k8s.io/v1beta2\nkind: ExtensionConfig\nmetadata: {name: reader}\nspec: {clientConfig: {url: \"grpc://" + l.Addr().String() + "\"}}\n"
	g := startGateway(t, a, manifests)
	// Discovery does not list handlers of lifecycle hooks one by one.
	process.Eventually(t, "the extension is known", func() bool {
		const hook = "BeforeClusterCreate"
		return g.post(t, path(hook, strings.ToLower(hook)+".reader"), samples.Body(hook)).code != http.StatusNotFound
	})
	both := callers(g, g.dial(t))
	for _, hook := range samples.Hooks() {
		if !samples.Lifecycle(hook) {
			continue
		}
		newer := samples.Marshal(requestWith(hook, fullCluster()))
		older := asOldCore(t, hook, newer)
		want := object(t, decodeMembers(t, older), "cluster")
		for front, call := range both {
			for caller, tc := range map[string]struct {
				body []byte
				more []string
			}{
				"v1.14": {newer, []string{"apiVersion: only there", "kind: only there"}}, // a v1.12 leaves them empty
				"v1.12": {older, nil},
			} {
				t.Run(front+" from "+caller+" "+hook, func(t *testing.T) {
					got := decodedBy(t, call(t, hook, strings.ToLower(hook)+".reader", tc.body))
					if diff := cmp.Diff(tc.more, differences(want, generic(t, got))); diff != "" {
						t.Errorf("what differs from the text of v1.12 (-want +got):\n%s", diff)
					}
				})
			}
		}
	}
}
