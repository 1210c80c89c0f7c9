// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
)

var malformedChecks = []Check{
	{
		ID: "malformed.refused", Level: Should,
		Rule: "A body that is not a request is answered with status Failure or refused as the caller's " +
			"mistake (HTTP 4xx, or any error of gRPC).",
		Source: runtimeServer + "callHandler",
		run: func(ctx context.Context, s *session, v *verdict) {
			for _, h := range s.working(ctx, v) {
				for _, body := range s.noRequests() {
					x := s.sendBytes(ctx, h, body)
					switch {
					case x.outcome == answered && x.status() != failure:
						v.failf(x, "the answer does not say Failure")
					case x.outcome == lost, x.outcome == late:
						v.failf(x, "there is no answer")
					case x.outcome == failed && s.endpoint.protocol == REST:
						v.failf(x, "this reports a failure of the server, but the mistake was the caller's")
					default:
						continue
					}
					break
				}
			}
		},
	},
	{
		ID: "malformed.objects", Level: Should,
		Rule: "Objects, variables and versions of a wrong type do not break a handler: it ignores them, or " +
			"answers Failure, HTTP 4xx or INVALID_ARGUMENT.",
		Source: topologyBook + "Patch extension guidelines: Input validation",
		run: func(ctx context.Context, s *session, v *verdict) {
			for _, h := range s.working(ctx, v) {
				for _, p := range s.provocations(h) {
					if x := s.ask(ctx, h, p.request); x.outcome == failed || x.outcome == lost || x.outcome == late {
						v.failf(x, "%s: the handler failed", p.name)
						break
					}
				}
			}
		},
	},
	{
		ID: "malformed.survives", Level: Must,
		Rule:   "After malformed requests, Discovery and the handlers answer as before.",
		Source: guidelines + "Availability",
		run: func(ctx context.Context, s *session, v *verdict) {
			for _, h := range s.working(ctx, v) {
				for _, body := range s.noRequests() {
					s.sendBytes(ctx, h, body)
				}
				for _, p := range s.provocations(h) {
					s.ask(ctx, h, p.request)
				}
				x := s.ask(ctx, h, s.request(h))
				if problem := s.differs(ctx, h, x); problem != "" {
					v.failf(x, "after wrong requests: %s", problem)
				}
			}
			if v.notFor != "" || s.reflected || s.first.status() != success {
				return
			}
			x := s.askDiscovery(ctx)
			if x.status() != success || otherHandlers(s.announced, x.parsed.Handlers) != "" {
				v.failf(x, "after wrong requests, Discovery answers differently than before")
			}
		},
	},
}

// noRequests returns bodies that no extension can read.
func (s *session) noRequests() [][]byte {
	if s.endpoint.protocol == GRPC {
		return [][]byte{{0xff, 0xff, 0xff, 0xff}, {0x0a, 0x7f, 'x'}}
	}
	return [][]byte{[]byte("{"), nil, []byte("<request/>"), []byte("[1,2]")}
}

// provocations returns requests in which something is wrong. Over gRPC an object need not even be JSON.
func (s *session) provocations(h *handler) []provocation {
	all := provocations(s.request(h))
	if s.endpoint.protocol == GRPC {
		if out, ok := withObjects(s.request(h), []byte("{")); ok {
			all = append(all, provocation{"objects are not JSON", out})
		}
	}
	return all
}

func (s *session) sendBytes(ctx context.Context, h *handler, body []byte) *exchange {
	ctx, cancel := context.WithTimeout(ctx, h.timeout)
	defer cancel()
	return s.transport.send(ctx, h.hook, h.name, body)
}
