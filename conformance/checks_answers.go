// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// slow is the time within which a handler should answer, if its timeout is not shorter than twice that.
const slow = 2 * time.Second

var answerChecks = []Check{
	{
		ID: "answers.valid", Level: Must,
		Rule:   "An announced handler answers a realistic request with a valid answer of the handler's hook.",
		Source: runtimeClient + "httpCall; docs/limits.md",
		run: eachBase(func(h *handler, x *exchange) string {
			switch {
			case x.outcome == late:
				return "" // for answers.in-time
			case x.outcome != answered:
				return "there is no answer of " + h.hook.Hook
			case x.wrong != nil:
				return fmt.Sprintf("the answer cannot be read as %sResponse: %s", h.hook.Hook, x.wrong)
			}
			return ""
		}),
	},
	{
		ID: "answers.in-time", Level: Must,
		Rule:   "A handler answers within its own timeoutSeconds.",
		Source: guidelines + "Timeouts",
		run: eachBase(func(h *handler, x *exchange) string {
			if x.outcome == late {
				return fmt.Sprintf("its timeout is %s", h.timeout)
			}
			return ""
		}),
	},
	{
		ID: "answers.quick", Level: Should,
		Rule: "A handler answers within two seconds, because callers wait for the answer, and within half of its " +
			"timeoutSeconds, because a busy handler takes longer.",
		Source: guidelines + "Timeouts: typically in milliseconds",
		run: func(ctx context.Context, s *session, v *verdict) {
			eachBase(func(h *handler, x *exchange) string {
				most := min(slow, h.timeout/2)
				if x.outcome != answered || x.took <= most {
					return ""
				}
				// A first call may be slow because the extension warms up.
				if again := s.ask(ctx, h, s.request(h)); again.took > most {
					return fmt.Sprintf("the second call took %s (the first call: %s), and the timeout is %s",
						again.took.Round(100*time.Millisecond), x.took.Round(100*time.Millisecond), h.timeout)
				}
				return ""
			})(ctx, s, v)
		},
	},
	{
		ID: "answers.kind", Level: Must, Protocol: REST,
		Rule: "kind and apiVersion of an answer, if present, are correct for the hook: the gateway refuses an answer with " +
			"wrong values, but Cluster API ignores these values.",
		Source: hookTypes + "common_types.go, CommonResponse; " + runtimeClient + "httpCall",
		run: eachBase(func(h *handler, x *exchange) string {
			if x.parsed == nil {
				return ""
			}
			kind, version := h.hook.Hook+"Response", h.hook.APIVersion()
			switch {
			case x.parsed.Kind != nil && *x.parsed.Kind != kind && *x.parsed.Kind != "":
				return fmt.Sprintf("kind is %q, not %q", *x.parsed.Kind, kind)
			case x.parsed.APIVersion != nil && *x.parsed.APIVersion != version && *x.parsed.APIVersion != "":
				return fmt.Sprintf("apiVersion is %q, not %q", *x.parsed.APIVersion, version)
			}
			return ""
		}),
	},
	{
		ID: "answers.members", Level: Must,
		Rule: "Answers, including those of Discovery, have no misspelt members. Callers ignore misspelt members: " +
			"an answer with retry_after_seconds, for example, does not make the caller wait.",
		Source: hookTypes + "common_types.go, CommonRetryResponse",
		run: func(ctx context.Context, s *session, v *verdict) {
			spell := func(_ *handler, x *exchange) string { return strings.Join(x.misspelt, "; ") }
			eachBase(spell)(ctx, s, v)
			if problem := spell(nil, s.first); problem != "" {
				v.failf(s.first, "%s", problem)
			}
		},
	},
	{
		ID: "answers.status", Level: Must,
		Rule:   "The status of an answer is Success or Failure; an answer without a status is an error.",
		Source: runtimeClient + "validateResponseStatus",
		run: eachBase(func(_ *handler, x *exchange) string {
			if x.parsed == nil || x.outcome != answered || x.status() == success || x.status() == failure {
				return ""
			}
			return fmt.Sprintf("the status is %q", x.status())
		}),
	},
	{
		ID: "answers.success", Level: Should,
		Rule:   "A realistic request is answered with Success. Answers of hooks that can block may have retryAfterSeconds.",
		Source: guidelines + "Blocking Hooks",
		run: eachBase(func(_ *handler, x *exchange) string {
			if x.status() == failure {
				return "the status is Failure; if that is correct, give a request of your own for this hook"
			}
			return ""
		}),
	},
	{
		ID: "answers.retry", Level: Must,
		Rule:   "retryAfterSeconds of an answer is not negative.",
		Source: hookTypes + "common_types.go, CommonRetryResponse",
		run: eachBase(func(_ *handler, x *exchange) string {
			if x.parsed != nil && x.parsed.RetryAfterSeconds < 0 {
				return fmt.Sprintf("retryAfterSeconds is %d", x.parsed.RetryAfterSeconds)
			}
			return ""
		}),
	},
	{
		ID: "answers.retry-allowed", Level: Should,
		Rule:   "Only answers of hooks that can block have retryAfterSeconds: callers ignore it in other answers.",
		Source: hookTypes + "common_types.go, CommonRetryResponse",
		run: eachBase(func(h *handler, x *exchange) string {
			if x.parsed != nil && x.parsed.RetryAfterSeconds != 0 && !h.hook.Blocking {
				return h.hook.Hook + " cannot block"
			}
			return ""
		}),
	},
	{
		ID: "answers.message", Level: Should,
		Rule:   "A Failure has a message that says what is wrong: people see only this message.",
		Source: guidelines + "Error messages",
		run: eachBase(func(_ *handler, x *exchange) string {
			if x.status() == failure && x.parsed.Message == "" {
				return "the message is empty"
			}
			return ""
		}),
	},
}

// eachBase returns a run that reports the problems that check finds in the answers to the realistic requests.
func eachBase(check func(*handler, *exchange) string) runFunc {
	return func(ctx context.Context, s *session, v *verdict) {
		if len(s.handlers) == 0 {
			v.skipf("%s", s.noHandler())
		}
		for _, h := range s.handlers {
			x := s.base(ctx, h)
			if problem := check(h, x); problem != "" {
				v.failf(x, "%s", problem)
			}
		}
	}
}
