// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
)

var envelopeChecks = []Check{
	{
		ID: "envelope.settings", Level: Must,
		Rule: "If a request has no settings, or has unknown settings, the handler answers the request, or refuses the " +
			"request as the caller's mistake (HTTP 4xx, INVALID_ARGUMENT). A handler that needs other settings may answer " +
			"with Failure.",
		Source: guidelines + "Settings: the operator writes them",
		run: func(ctx context.Context, s *session, v *verdict) {
			unusual := map[string]string{
				"conformance.hookgate.dev/unknown": "", "ключ": "значение\n\"<&>\"", "": "without a name",
			}
			for i := range 100 {
				unusual[fmt.Sprintf("setting-%02d", i)] = strings.Repeat("v", i)
			}
			for _, h := range s.working(ctx, v) {
				req := s.request(h)
				if x := s.ask(ctx, h, withSettings(req, nil)); x.outcome != refused && !x.isAnswer() {
					v.failf(x, "without settings, there is no answer of the hook")
				}
				if x := s.ask(ctx, h, withSettings(req, unusual)); x.outcome != refused && !x.isAnswer() {
					v.failf(x, "with settings that the handler does not know, there is no answer of the hook")
				}
			}
		},
	},
	{
		ID: "envelope.unknown-members", Level: Must,
		Rule:   "Unknown members of a request are ignored: Cluster API adds members without a new version.",
		Source: "docs/contract.md: v1.12 added controlPlaneUpgrades to v1alpha1",
		run: func(ctx context.Context, s *session, v *verdict) {
			for _, h := range s.working(ctx, v) {
				s.sameStatus(ctx, v, h, withUnknown(s.request(h)), "with members that the handler does not know")
			}
		},
	},
}

// sameStatus reports a handler that does not answer a request, or answers it with Failure although it answers the
// realistic request with Success.
func (s *session) sameStatus(ctx context.Context, v *verdict, h *handler, req proto.Message, what string) {
	x := s.ask(ctx, h, req)
	if problem := s.differs(ctx, h, x); problem != "" {
		v.failf(x, "%s, %s", what, problem)
	}
}

// differs returns how an answer is worse than the answer to the realistic request, or "" if it is not.
func (s *session) differs(ctx context.Context, h *handler, x *exchange) string {
	switch base := s.base(ctx, h); {
	case x.outcome != answered || x.message == nil:
		return "there is no answer of the hook"
	case base.status() == success && x.status() != success:
		return fmt.Sprintf("the status is %q, although the realistic request got Success", x.status())
	}
	return ""
}
