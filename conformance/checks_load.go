// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"sync"

	"google.golang.org/protobuf/reflect/protoreflect"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
)

// concurrentCalls is the number of concurrent calls.
const concurrentCalls = 16

var loadChecks = []Check{
	{
		ID: "load.large", Level: Must,
		Rule: "A request of 6 MiB, which exceeds gRPC's default limit of 4 MiB, is answered like a small one " +
			"if the hook can have requests of that size, for example with many templates.",
		Source: runtimeServer + "maxExtensionRequestBodyBytes",
		run: func(ctx context.Context, s *session, v *verdict) {
			for _, h := range s.some(ctx, v, 3, 6<<20) {
				s.sameStatus(ctx, v, h, padded(s.request(h), 6<<20), "with a request of 6 MiB")
			}
		},
	},
	{
		ID: "load.limit", Level: Must,
		Rule: "A request of nearly 20 MiB is answered like a small one if the hook can have requests of that " +
			"size.",
		Source: runtimeServer + "maxExtensionRequestBodyBytes",
		run: func(ctx context.Context, s *session, v *verdict) {
			for _, h := range s.some(ctx, v, 1, limits.BodyBytes-64<<10) {
				s.sameStatus(ctx, v, h, padded(s.request(h), limits.BodyBytes-64<<10), "with a request of nearly 20 MiB")
			}
		},
	},
	{
		ID: "load.over", Level: Should,
		Rule: "The extension does not read a request of more than 20 MiB into memory. The extension refuses the request, " +
			"either with the status Failure or as the caller's mistake.",
		Source: runtimeServer + "maxExtensionRequestBodyBytes",
		run: func(ctx context.Context, s *session, v *verdict) {
			for _, h := range s.some(ctx, v, 1, 0) {
				x := s.ask(ctx, h, padded(s.request(h), limits.BodyBytes+2<<20))
				switch {
				case x.status() == success:
					v.failf(x, "a request of 22 MiB was taken")
				case x.outcome == failed, x.outcome == late:
					v.failf(x, "a request of 22 MiB made the handler fail")
				}
			}
		},
	},
	{
		ID: "load.concurrent", Level: Must,
		Rule: "Concurrent calls are answered like consecutive ones: Cluster API reconciles the topologies " +
			"of many Clusters at once.",
		Source: guidelines + "Availability",
		run: func(ctx context.Context, s *session, v *verdict) {
			handlers := s.working(ctx, v)
			if len(handlers) == 0 {
				return
			}
			type call struct {
				h *handler
				x *exchange
			}
			calls := make([]call, 4*concurrentCalls)
			for i := range calls {
				calls[i].h = handlers[i%len(handlers)]
			}
			// Each goroutine makes its calls one after the other. They start together.
			var running sync.WaitGroup
			for g := range concurrentCalls {
				running.Go(func() {
					for i := g; i < len(calls); i += concurrentCalls {
						calls[i].x = s.ask(ctx, calls[i].h, s.request(calls[i].h))
					}
				})
			}
			running.Wait()
			told := map[*handler]bool{}
			for _, c := range calls {
				problem := s.differs(ctx, c.h, c.x)
				if problem == "" && c.h.hook.Deterministic() && s.meaning(c.h, c.x) != s.meaning(c.h, s.base(ctx, c.h)) {
					problem = "the answer differs"
				}
				if problem != "" && !told[c.h] {
					told[c.h] = true
					v.failf(c.x, "with %d calls at the same time: %s", concurrentCalls, problem)
				}
			}
		},
	},
	{
		ID: "load.deadline", Level: Must,
		Rule:   "A caller that does not wait for its answer does not harm later calls.",
		Source: guidelines + "Timeouts",
		run: func(ctx context.Context, s *session, v *verdict) {
			for _, h := range s.working(ctx, v) {
				req := padded(s.request(h), 64<<10)
				for i := range 8 { // 1 ms to 128 ms
					short, cancel := context.WithTimeout(ctx, s.endpoint.shortest<<i)
					s.transport.call(short, h.hook, h.name, req)
					cancel()
				}
				s.sameStatus(ctx, v, h, s.request(h), "after callers that left early")
			}
		},
	},
}

// maxObject is the size of the largest object that the API server stores.
const maxObject = 3 << 19

// largest returns how large a request of a hook can be: those of a topology have any number of templates.
func (s *session) largest(h *handler) int {
	switch h.hook.Hook {
	case "GeneratePatches", "ValidateTopology":
		return limits.BodyBytes
	}
	if h.hook.Group != s.discovery.Group {
		return limits.BodyBytes // what it has is not known here
	}
	objects := 1 // the settings come from one
	eachMessage(s.request(h).ProtoReflect(), func(m protoreflect.Message) {
		if _, ok := m.Interface().(*hooksv1alpha1.RawExtension); ok {
			objects++
		}
	})
	return objects * maxObject
}

// some returns at most n handlers of different hooks that can have requests of this size, first those whose requests
// are large in practice.
func (s *session) some(ctx context.Context, v *verdict, n, size int) []*handler {
	var chosen, rest []*handler
	seen := map[string]bool{}
	for _, h := range s.working(ctx, v) {
		if seen[h.hook.Hook] || s.largest(h) < size {
			continue
		}
		seen[h.hook.Hook] = true
		if h.hook.Deterministic() && h.hook.Hook != "DiscoverVariables" {
			chosen = append(chosen, h)
		} else {
			rest = append(rest, h)
		}
	}
	if chosen = append(chosen, rest...); len(chosen) == 0 && v.notFor == "" {
		v.skipf("the requests of its hooks are never that large")
	}
	return chosen[:min(n, len(chosen))]
}
