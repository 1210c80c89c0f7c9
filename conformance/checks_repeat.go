// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"encoding/json"
)

// repeats is the number of times that a call is repeated.
const repeats = 5

var repeatChecks = []Check{
	{
		ID: "idempotence.again", Level: Must,
		Rule:   "A call that succeeded succeeds when it is made again.",
		Source: guidelines + "Idempotence",
		run: func(ctx context.Context, s *session, v *verdict) {
			for _, h := range s.working(ctx, v) {
				for range 2 {
					x := s.ask(ctx, h, s.request(h))
					if problem := s.differs(ctx, h, x); problem != "" {
						v.failf(x, "the same call again: %s", problem)
						break
					}
				}
			}
		},
	},
	{
		ID: "determinism.answers", Level: Must,
		Rule: "The same request of GeneratePatches, ValidateTopology or DiscoverVariables gets the same answer; " +
			"the spelling of JSON does not count.",
		Source: topologyBook + "Patch extension guidelines: Deterministic results",
		run: func(ctx context.Context, s *session, v *verdict) {
			for _, h := range s.working(ctx, v, "GeneratePatches", "ValidateTopology", "DiscoverVariables") {
				want := s.base(ctx, h)
				for range repeats {
					if x := s.ask(ctx, h, s.request(h)); meaning(x) != meaning(want) {
						v.failf(x, "the answer before was another: %s", excerpt(want.body))
						break
					}
				}
			}
		},
	},
	{
		ID: "determinism.errors", Level: Must,
		Rule: "The same mistake gets the same text each time, without times, identifiers or counters: texts get " +
			"into conditions, which would never settle.",
		Source: guidelines + "Error messages",
		run: func(ctx context.Context, s *session, v *verdict) {
			complaints := 0
			check := func(first *exchange, ask func() *exchange, what string) {
				if first.complaint() == "" {
					return
				}
				complaints++
				for range repeats {
					if x := ask(); x.complaint() != first.complaint() {
						v.failf(x, "%s: the text before was another: %s", what, excerpt(first.complaint()))
						return
					}
				}
			}
			for _, h := range s.working(ctx, v) {
				again := func() *exchange { return s.ask(ctx, h, s.request(h)) }
				check(s.base(ctx, h), again, "the realistic request")
				for _, p := range provocations(s.request(h)) {
					ask := func() *exchange { return s.ask(ctx, h, p.request) }
					check(ask(), ask, p.name)
				}
				if s.endpoint.protocol == REST {
					ask := func() *exchange { return s.sendBytes(ctx, h, []byte("{")) }
					check(ask(), ask, "half of a body")
				}
			}
			if complaints == 0 && v.notFor == "" {
				v.skipf("no request that was tried is turned down")
			}
		},
	},
}

// meaning returns an answer in a form that does not depend on the spelling of its JSON.
func meaning(x *exchange) string {
	if x.outcome != answered {
		return x.got()
	}
	v, err := parse(x.body)
	if err != nil {
		return string(x.body)
	}
	if answer, ok := v.(map[string]any); ok && x.parsed != nil {
		if items, ok := answer["items"].([]any); ok {
			for i, item := range items {
				if item, ok := item.(map[string]any); ok && i < len(x.parsed.Items) {
					if patch, err := parse(x.parsed.Items[i].Patch); err == nil {
						item["patch"] = patch
					}
				}
			}
		}
	}
	text, err := json.Marshal(v) // members by name
	if err != nil {
		return string(x.body)
	}
	return string(text)
}
