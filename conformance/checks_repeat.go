// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/contract/steady"
)

// realistic is the request that every handler can answer.
const realistic = "the realistic request"

// repeats is the number of times that a call is repeated.
const repeats = 5

var repeatChecks = []Check{
	{
		ID: "idempotence.again", Level: Must,
		Rule:   "A call that succeeded also succeeds when it is repeated.",
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
		Rule: "If a request of GeneratePatches, ValidateTopology or DiscoverVariables is repeated, the answer has the same " +
			"effect: the same patched templates, the same variables, the same status and, if the status is Failure, the " +
			"same message.",
		Source: topologyBook + "Patch extension guidelines: Deterministic results",
		run: func(ctx context.Context, s *session, v *verdict) {
			for _, h := range s.working(ctx, v, "GeneratePatches", "ValidateTopology", "DiscoverVariables") {
				want := s.base(ctx, h)
				for range repeats {
					if x := s.ask(ctx, h, s.request(h)); s.meaning(h, x) != s.meaning(h, want) {
						v.failf(x, "the answer differs from the one before: %s", excerpt(want.body))
						break
					}
				}
			}
		},
	},
	{
		ID: "determinism.errors", Level: Must,
		Rule: "The same mistake always gets the same text, without times, identifiers or counters: conditions " +
			"contain the text, and would otherwise never settle.",
		Source: guidelines + "Error messages",
		run: func(ctx context.Context, s *session, v *verdict) {
			complaints := 0
			check := func(first *exchange, ask func() *exchange, what string) {
				// What Cluster API never sends may be turned down by a framework, in words that are not the handler's.
				if first.complaint() == "" ||
					what != realistic && s.endpoint.protocol == REST && first.status() != failure {
					return
				}
				complaints++
				for range repeats {
					if x := ask(); x.complaint() != first.complaint() {
						v.failf(x, "%s: the text differs from the one before: %s", what, excerpt(first.complaint()))
						return
					}
				}
			}
			for _, h := range s.working(ctx, v) {
				again := func() *exchange { return s.ask(ctx, h, s.request(h)) }
				check(s.base(ctx, h), again, realistic)
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
				v.skipf("no request that was tried is refused")
			}
		},
	},
	{
		ID: "determinism.messages", Level: Should,
		Rule: "If a request of a hook that may hold Clusters is repeated, the message of the answer stays the same, " +
			"except for progress such as \"3 of 10\". Callers put the message into a condition, and write the condition " +
			"again for each new text.",
		Source: guidelines + "Error messages",
		run: func(ctx context.Context, s *session, v *verdict) {
			for _, h := range s.working(ctx, v) {
				if !h.hook.Blocking || s.base(ctx, h).said() == "" {
					continue
				}
				if c, before, now := s.changes(ctx, h); c >= steady.Maskable {
					v.failf(now, "the message differs from the one before: %s", excerpt(before.said()))
				}
			}
		},
	},
}

// changes returns how the message of a handler changes while the same request is repeated, and the last two answers. A
// message that has changed once may say what the extension has done meanwhile; that alone is no change.
func (s *session) changes(ctx context.Context, h *handler) (c steady.Change, before, now *exchange) {
	others := 0
	for i := range repeats {
		before, now = now, s.ask(ctx, h, s.request(h))
		if i == 0 {
			continue
		}
		if c = steady.Compare(before.said(), now.said()); c == steady.Other {
			others++
		}
		if c == steady.Maskable || others > 1 {
			return c, before, now
		}
	}
	if said := now.said(); steady.Text(said) == said {
		return steady.None, before, now
	}
	select { // for a time that has no more than seconds
	case <-ctx.Done():
	case <-time.After(time.Second + time.Second/10):
	}
	before, now = now, s.ask(ctx, h, s.request(h))
	return steady.Compare(before.said(), now.said()), before, now
}

// said returns the message of an answer with the status Success, or nothing.
func (x *exchange) said() string {
	if x.status() != success {
		return ""
	}
	return x.parsed.Message
}

// meaning returns what Cluster API makes of an answer of a deterministic hook: the patched templates, whatever the
// patches are, the variables, by name, and the message if the status is Failure.
func (s *session) meaning(h *handler, x *exchange) string {
	if x.outcome != answered {
		return x.got()
	}
	v, err := parse(x.body)
	answer, ok := v.(map[string]any)
	if err != nil || !ok || x.parsed == nil {
		return string(x.body)
	}
	if x.status() == success {
		delete(answer, "message")
	}
	if variables, ok := answer["variables"].([]any); ok {
		slices.SortStableFunc(variables, func(a, b any) int {
			return strings.Compare(nameIn(a), nameIn(b))
		})
	}
	if items, ok := answer["items"].([]any); ok && len(items) == len(x.parsed.Items) {
		answer["items"] = s.effect(h, x, items)
	}
	text, err := json.Marshal(answer) // members by name
	if err != nil {
		return string(x.body)
	}
	return string(text)
}

// nameIn returns the name of a variable.
func nameIn(v any) string {
	variable, _ := v.(map[string]any)
	name, _ := variable["name"].(string)
	return name
}

// effect returns the patched templates, or the patches themselves if they do not apply.
func (s *session) effect(h *handler, x *exchange, items []any) any {
	req, ok := proto.Clone(s.request(h)).(*hooksv1alpha1.GeneratePatchesRequest)
	if !ok || !patchAll(req, x) {
		for i, item := range items {
			if item, ok := item.(map[string]any); ok {
				if patch, err := parse(x.parsed.Items[i].Patch); err == nil {
					item["patch"] = patch
				}
			}
		}
		return items
	}
	var templates []any
	for _, item := range req.GetItems() {
		template, err := parse(item.GetObject().GetRaw())
		if err != nil {
			return items
		}
		templates = append(templates, template)
	}
	return templates
}
