// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/network/endpoint"
	golden "github.com/hookgate/hookgate/proto"
)

// canned answers every call with the same body.
type canned struct{ body []byte }

func (c canned) call(_ context.Context, h *catalog.Hook, handler string, _ proto.Message) *exchange {
	return c.send(context.Background(), h, handler, nil)
}

func (c canned) send(_ context.Context, h *catalog.Hook, handler string, _ []byte) *exchange {
	x := &exchange{handler: handler, code: "HTTP 200 OK", body: c.body}
	m := h.Response.New().Interface()
	if x.wrong = mandated.Decode(c.body, m); x.wrong == nil {
		x.message = m
	}
	x.decoded()
	return x
}

func (canned) close() {}

// FuzzAnswer gives any answer to all checks: none of them may panic.
func FuzzAnswer(f *testing.F) {
	var requests = map[string]proto.Message{}
	var checks []Check
	for _, h := range hooks.Hooks() {
		m := h.Request.New().Interface()
		if err := mandated.Decode(golden.Request(h.GroupVersionHook), m); err != nil {
			f.Fatal(err)
		}
		requests[h.Hook] = m
		out, err := goodAnswer(h, m)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(render(out))
	}
	f.Add([]byte(`{"status":"Success","handlers":[{"name":"a","requestHook":{"apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","hook":"GeneratePatches"}}]}`))
	f.Add([]byte(`{"status":"Failure","items":[{"uid":"a0000001-6a5b-4c3d-8e2f-000000000001","patchType":"JSONPatch","patch":"W3sib3AiOiJjb3B5IiwiZnJvbSI6IiIsInBhdGgiOiIvYSJ9XQ=="}]}`))
	f.Add([]byte(`{"status":"Success","variables":[{"name":"a","schema":{"openAPIV3Schema":{"type":"array","items":{"type":"string","pattern":"("},"default":[1]}}}]}`))
	for _, c := range Checks() {
		switch c.family() {
		case "tls", "load", "protocol": // the first talks to a server itself, and the others do not look into answers
		default:
			checks = append(checks, c)
		}
	}
	discovery, _ := hooks.ByName("Discovery")
	f.Fuzz(func(t *testing.T, body []byte) {
		s := &session{endpoint: &target{Endpoint: &endpoint.Endpoint{Scheme: endpoint.HTTPS}, protocol: REST}, transport: canned{body}, catalog: hooks, requests: requests, discovery: discovery}
		if err := s.discover(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.handlers = nil
		for _, h := range hooks.Hooks() {
			if !h.Singleton() {
				s.handlers = append(s.handlers, &handler{name: "h", hook: h, timeout: limits.DefaultTimeout})
			}
		}
		for i := range checks {
			if r := checks[i].result(t.Context(), s); r.Status == Error {
				t.Errorf("%s: %s", r.ID, r.Reason)
			}
		}
	})
}
