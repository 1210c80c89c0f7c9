// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command vectors writes the golden vectors of the contract into a directory: a request and an answer for each hook,
// each as JSON and as a protobuf message.
package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	runtimehooksv1 "sigs.k8s.io/cluster-api/api/runtime/hooks/v1alpha1"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/contract/codec"
	golden "github.com/hookgate/hookgate/proto"
	"github.com/hookgate/hookgate/test/samples"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: vectors DIR")
		os.Exit(2)
	}
	if err := generate(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func generate(dir string) error {
	hooks, err := catalog.With(catalog.Own()...)
	if err != nil {
		return err
	}
	c := codec.New(hooks)
	for _, h := range hooks.Hooks() {
		request, response := bodies(h)
		for _, v := range []struct {
			kind string
			of   protoreflect.MessageType
			text []byte
		}{{"request", h.Request, request}, {"response", h.Response, response}} {
			name := filepath.Join(dir, golden.Directory(h.GroupVersionHook), strings.ToLower(h.Hook)+"."+v.kind)
			if err := write(c, name, v.of, v.text); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

// bodies returns the mandated JSON of the request and the answer of a hook.
func bodies(h *catalog.Hook) (request, response []byte) {
	switch {
	case h.Group == hook.InfrastructureGroup:
		return samples.InfrastructureBody(h.Hook), samples.InfrastructureResponse(h.Hook)
	case h.Group == hook.MachinesGroup:
		return samples.MachineHookBody(h.Hook), samples.MachineHookResponse(h.Hook)
	case h.Singleton():
		return samples.Marshal(discoveryRequest()), samples.Marshal(samples.Response(h.Hook))
	}
	return samples.Body(h.Hook), samples.Marshal(samples.Response(h.Hook))
}

// write writes the mandated JSON and the message that it decodes to.
func write(c *codec.Codec, name string, of protoreflect.MessageType, text []byte) error {
	m := of.New().Interface()
	if err := c.Decode(text, m); err != nil {
		return err
	}
	binary, err := proto.MarshalOptions{Deterministic: true}.Marshal(m)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	for extension, content := range map[string][]byte{".json": text, ".binpb": binary} {
		if err := os.WriteFile(name+extension, content, 0o644); err != nil {
			return err
		}
	}
	return nil
}

func discoveryRequest() *runtimehooksv1.DiscoveryRequest {
	r := &runtimehooksv1.DiscoveryRequest{}
	r.SetGroupVersionKind(runtimehooksv1.GroupVersion.WithKind(hook.Discovery + "Request"))
	return r
}
