// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"slices"
	"strings"

	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
)

// nowhere is a hook that does not exist, and noHandler a handler that does not exist.
const (
	nowhere   = "NoSuchHookAtAll"
	noHandler = "no-such-handler-at-all"
)

var protocolChecks = []Check{
	{
		ID: "protocol.unknown-hook", Level: Should,
		Rule:   "A call to a hook that the extension does not have is answered with 404, or over gRPC with UNIMPLEMENTED.",
		Source: runtimeServer + "Start; gRPC, doc/statuscodes.md",
		run: func(ctx context.Context, s *session, v *verdict) {
			want := "HTTP 404"
			if s.endpoint.protocol == GRPC {
				want = "gRPC Unimplemented"
			}
			if x := s.askNowhere(ctx, noHandler); !strings.HasPrefix(x.code, want) {
				v.failf(x, "that is not %s", want)
			}
		},
	},
	{
		ID: "protocol.unknown-handler", Level: Should, Protocol: REST,
		Rule:   "A call to a handler that the extension does not have is answered with 404.",
		Source: runtimeServer + "Start",
		run: func(ctx context.Context, s *session, v *verdict) {
			for _, h := range s.some(ctx, v, 1, 0) {
				ctx, cancel := context.WithTimeout(ctx, h.timeout)
				x := s.transport.call(ctx, h.hook, noHandler, s.request(h))
				cancel()
				if !strings.HasPrefix(x.code, "HTTP 404") {
					v.failf(x, "that is not HTTP 404")
				}
			}
		},
	},
	{
		ID: "protocol.health", Level: Should, Protocol: GRPC,
		Rule: "The standard health service reports that the server is serving: the gateway skips a server that " +
			"does not report this.",
		Source: "gRPC, health-checking.md",
		run: func(ctx context.Context, s *session, v *verdict) {
			t, ok := s.transport.(*clientTransport)
			if !ok || !t.grpc {
				return
			}
			ctx, cancel := context.WithTimeout(ctx, limits.DiscoveryTimeout)
			defer cancel()
			answer, err := healthv1.NewHealthClient(t.client.GRPC()).Check(ctx, &healthv1.HealthCheckRequest{})
			f := Finding{Sent: healthv1.Health_Check_FullMethodName + " of the service \"\""}
			switch {
			case status.Code(err) == codes.Unimplemented:
				f.Got, f.Problem = "gRPC Unimplemented", "there is no health service"
			case err != nil:
				f.Got, f.Problem = "gRPC "+status.Code(err).String()+": "+status.Convert(err).Message(),
					"the health service does not answer"
			case answer.GetStatus() != healthv1.HealthCheckResponse_SERVING:
				f.Got, f.Problem = answer.GetStatus().String(),
					"the server says that it is not serving, so the gateway does not call it"
			default:
				return
			}
			v.findings = append(v.findings, f)
		},
	},
	{
		ID: "protocol.reflection", Level: Should, Protocol: GRPC,
		Rule:   "Server reflection, if there is any, lists the services of the announced hooks.",
		Source: "gRPC, server-reflection.md",
		run: func(_ context.Context, s *session, v *verdict) {
			if len(s.services) == 0 {
				v.skipf("there is no server reflection, which is optional")
				return
			}
			for _, h := range s.handlers {
				if service := serviceOf(h.hook); !slices.Contains(s.services, service) {
					v.findings = append(v.findings, Finding{Handler: h.name, Sent: "a list of services was asked for",
						Got: strings.Join(s.services, ", "), Problem: service + " is missing"})
				}
			}
		},
	},
}

// askNowhere calls a hook that does not exist.
func (s *session) askNowhere(ctx context.Context, handler string) *exchange {
	unknown := &catalog.Hook{
		GroupVersionHook: hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: nowhere},
		Method:           "/hookgate.hooks.v1alpha1." + nowhere + "Service/" + nowhere,
		Request:          s.discovery.Request, Response: s.discovery.Response,
	}
	body := []byte("{}")
	if s.endpoint.protocol == GRPC {
		body = nil
	}
	ctx, cancel := context.WithTimeout(ctx, limits.DiscoveryTimeout)
	defer cancel()
	return s.transport.send(ctx, unknown, handler, body)
}
