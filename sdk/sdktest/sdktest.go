// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sdktest tests extensions that are built with package sdk: a request from a file to a handler in this process,
// and the conformance checks of the whole extension over gRPC. What is wrong fails the test.
package sdktest

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/conformance"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/yaml"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/jsonpatch"
	"github.com/hookgate/hookgate/sdk"
)

// Request reads the request of a hook from a file: the contract's JSON, or YAML of the same form, as in
// examples/requests. The groups are those of hooks that are not Hookgate's nor Cluster API's.
func Request[Req proto.Message](t testing.TB, path string, groups ...catalog.Source) Req {
	t.Helper()
	hooks, err := catalog.With(append(catalog.Own(), groups...)...)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !json.Valid(data) {
		if data, err = yaml.ToJSON(data, limits.BodyBytes); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
	}
	var none Req
	in, ok := none.ProtoReflect().New().Interface().(Req)
	if !ok {
		t.Fatalf("%T is not a message of stubs", none)
	}
	if err := codec.New(hooks).Decode(data, in); err != nil {
		t.Fatalf("%s is no %s: %v", path, none.ProtoReflect().Descriptor().Name(), err)
	}
	return in
}

// Call returns the answer of the extension to a request, whose member handler selects the handler. For the gRPC status
// of a call that fails, use x.Call.
func Call[Resp proto.Message](t testing.TB, x *sdk.Extension, in proto.Message) Resp {
	t.Helper()
	answer, err := x.Call(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	out, ok := answer.(Resp)
	if !ok {
		t.Fatalf("the answer is a %T, not a %T", answer, out)
	}
	return out
}

// Patched returns the objects of a request after the patches of an answer, by the uid of their item.
func Patched(
	t testing.TB, in *hooksv1alpha1.GeneratePatchesRequest, out *hooksv1alpha1.GeneratePatchesResponse,
) map[string]map[string]any {
	t.Helper()
	if out.GetStatus() != hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS {
		t.Fatalf("the answer is %s: %s", out.GetStatus(), out.GetMessage())
	}
	trees := map[string]any{}
	for _, item := range in.GetItems() {
		tree, err := new(jsonpatch.Meter).Parse(item.GetObject().GetRaw())
		if err != nil {
			t.Fatalf("item %s of the request: %v", item.GetUid(), err)
		}
		trees[item.GetUid()] = tree
	}
	for _, item := range out.GetItems() {
		tree, ok := trees[item.GetUid()]
		if !ok {
			t.Fatalf("the answer has a patch for %q, which the request does not have", item.GetUid())
		}
		var err error
		trees[item.GetUid()], err = jsonpatch.Apply(tree, item.GetPatchType(), item.GetPatch(), new(jsonpatch.Meter))
		if err != nil {
			t.Fatalf("the patch of item %s: %v\n%s", item.GetUid(), err, item.GetPatch())
		}
	}
	objects := map[string]map[string]any{}
	for uid, tree := range trees {
		object, ok := tree.(map[string]any)
		if !ok {
			t.Fatalf("item %s is not an object after the patches", uid)
		}
		objects[uid] = object
	}
	return objects
}

// Conformance serves the extension on loopback and runs the conformance checks on it, with one subtest for each. Give
// requests on which the handlers act, in options.Requests.
func Conformance(t *testing.T, x *sdk.Extension, options conformance.Options) {
	t.Helper()
	server := grpc.NewServer(grpc.MaxRecvMsgSize(limits.BodyBytes), grpc.MaxSendMsgSize(limits.BodyBytes))
	if err := x.Register(server); err != nil {
		t.Fatal(err)
	}
	healthv1.RegisterHealthServer(server, health.NewServer())
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-served; err != nil {
			t.Error(fmt.Errorf("serve the extension: %w", err))
		}
	})
	conformance.Test(t, conformance.Target{URL: "grpc://" + listener.Addr().String()}, options)
}
