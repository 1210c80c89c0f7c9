// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/test/process"
)

// vector is a golden request and its answer, each as canonical JSON and as a message.
type vector struct {
	hook                    *catalog.Hook
	requestText, answerText []byte
	request, answer         proto.Message
}

// vectors returns the golden vectors of every hook with handlers, each with an unknown member added at its end.
func vectors(t *testing.T, cat *catalog.Catalog) map[string]*vector {
	t.Helper()
	mandated := codec.New(cat)
	read := func(h *catalog.Hook, kind string, of protoreflect.MessageType) ([]byte, proto.Message) {
		text, err := os.ReadFile(filepath.Join("..", "..", "proto", "testdata", h.Version,
			strings.ToLower(h.Hook)+"."+kind+".json"))
		if err != nil {
			t.Fatal(err)
		}
		text = fmt.Appendf(text[:len(text)-1], `,"memberOfTomorrow":{"n":9007199254740993}}`)
		m := of.New().Interface()
		if err := mandated.Decode(text, m); err != nil {
			t.Fatalf("%s of %s: %v", kind, h.Hook, err)
		}
		return text, m
	}
	found := map[string]*vector{}
	for _, h := range cat.Hooks() {
		if h.Singleton() {
			continue
		}
		v := &vector{hook: h}
		v.requestText, v.request = read(h, "request", h.Request)
		v.answerText, v.answer = read(h, "response", h.Response)
		found[strings.ToLower(h.Hook)] = v
	}
	return found
}

// withHandler returns a copy of request addressed to the named handler.
func withHandler(request proto.Message, name string) proto.Message {
	m := proto.Clone(request)
	m.ProtoReflect().Set(m.ProtoReflect().Descriptor().Fields().ByName("handler"), protoreflect.ValueOfString(name))
	return m
}

// replay is a gRPC extension that answers every hook with its vector.
type replay struct {
	vectors map[string]*vector

	mu   sync.Mutex
	last map[string]proto.Message // request, by hook in lower case
}

func (r *replay) serve(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	name := strings.ToLower(method[strings.LastIndex(method, "/")+1:])
	if name == "discovery" {
		if err := stream.RecvMsg(&hooksv1alpha1.DiscoveryRequest{}); err != nil {
			return err
		}
		answer := &hooksv1alpha1.DiscoveryResponse{Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS}
		for name, v := range r.vectors {
			answer.Handlers = append(answer.Handlers, &hooksv1alpha1.ExtensionHandler{
				Name: name, RequestHook: &hooksv1alpha1.GroupVersionHook{ApiVersion: v.hook.APIVersion(),
					Hook: v.hook.Hook},
			})
		}
		return stream.SendMsg(answer)
	}
	v, ok := r.vectors[name]
	if !ok || method != v.hook.Method {
		return status.Error(codes.Unimplemented, method)
	}
	request := v.hook.Request.New().Interface()
	if err := stream.RecvMsg(request); err != nil {
		return err
	}
	r.mu.Lock()
	r.last[name] = request
	r.mu.Unlock()
	return stream.SendMsg(v.answer)
}

// Every hook is the same call in every cell of {REST, gRPC} caller × {REST, gRPC} extension: the extension gets the
// golden request and the caller gets the golden answer, byte for byte if it is JSON.
func TestCells(t *testing.T) {
	process.Program(t, gatewayVariable)
	cat := catalog.New()
	golden := vectors(t, cat)
	if len(golden) != 16 {
		t.Fatalf("there are vectors of %d hooks, want 16", len(golden))
	}

	a := newAuthority(t)
	rest := startStub(t, a)
	for name, v := range golden {
		rest.serve(v.hook.Hook, name, handlerOptions{}, say(string(v.answerText)))
	}
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	south := &replay{vectors: golden, last: map[string]proto.Message{}}
	server := grpc.NewServer(grpc.UnknownServiceHandler(south.serve), grpc.MaxRecvMsgSize(bodyLimit))
	go func() { _ = server.Serve(l) }() // until it is stopped
	t.Cleanup(server.Stop)
	g := startGateway(t, a, map[string]string{
		"json.yaml": registration{name: "json", url: rest.server.URL}.manifest(a),
		"grpc.yaml": "apiVersion: runtime.cluster.x-k8s.io/v1beta2\nkind: ExtensionConfig\nmetadata: {name: grpc}\nspec: {clientConfig: {url: \"grpc://" + l.Addr().String() + "\"}}\n",
	})
	g.awaitHandler(t, "generatepatches--json")
	g.awaitHandler(t, "generatepatches--grpc")
	conn := g.dial(t)

	for name, v := range golden {
		for _, extension := range []string{"json", "grpc"} {
			arrived := func(t *testing.T) {
				t.Helper()
				if extension == "json" {
					rest.mu.Lock()
					defer rest.mu.Unlock()
					if diff := cmp.Diff(string(v.requestText), string(rest.bodies[path(v.hook.Hook, name)])); diff != "" {
						t.Errorf("the extension got, -want +got\n%s", diff)
					}
					delete(rest.bodies, path(v.hook.Hook, name))
					return
				}
				south.mu.Lock()
				defer south.mu.Unlock()
				if diff := cmp.Diff(withHandler(v.request, name), south.last[name], protocmp.Transform()); diff != "" {
					t.Errorf("the extension got, -want +got\n%s", diff)
				}
				delete(south.last, name)
			}
			t.Run(v.hook.Hook+"/REST to "+extension, func(t *testing.T) {
				got := g.post(t, path(v.hook.Hook, name+"."+extension), v.requestText)
				if diff := cmp.Diff(string(v.answerText), string(got.body)); got.code != http.StatusOK || diff != "" {
					t.Errorf("status %d, -want +got\n%s", got.code, diff)
				}
				arrived(t)
			})
			t.Run(v.hook.Hook+"/gRPC to "+extension, func(t *testing.T) {
				answer := v.hook.Response.New().Interface()
				if err := conn.Invoke(soon(t), v.hook.Method, withHandler(v.request, name+"."+extension), answer); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(v.answer, answer, protocmp.Transform()); diff != "" {
					t.Errorf("-want +got\n%s", diff)
				}
				arrived(t)
			})
		}
	}
}
