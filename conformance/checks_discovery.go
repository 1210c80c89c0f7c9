// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"cmp"
	"context"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
)

var discoveryChecks = []Check{
	{
		ID: "discovery.answers", Level: Must,
		Rule:   "Discovery answers with status Success.",
		Source: runtimeClient + "Discover",
		run: func(_ context.Context, s *session, v *verdict) {
			x := s.first
			switch {
			case s.reflected:
				v.skipf("Discovery is not implemented; server reflection stands in for it")
			case x.outcome != answered && s.provider.answers():
				v.skipf("the extension has no hooks of Cluster API, only hooks of infrastructure")
			case x.outcome != answered && s.servesAdded():
				v.skipf("the extension has no hooks of Cluster API, only hooks of another group")
			case x.outcome != answered:
				v.failf(x, "there is no answer of Discovery")
			case x.parsed == nil:
				v.failf(x, "the answer cannot be read: %s", x.wrong)
			case x.status() != success:
				v.failf(x, "the status is %q, not %q", x.status(), success)
			}
		},
	},
	{
		ID: "discovery.some", Level: Must,
		Rule:   "Discovery or DiscoverInfrastructure announces at least one handler.",
		Source: contract + "discovery.proto",
		run: func(_ context.Context, s *session, v *verdict) {
			if s.discovered(v) && len(s.announced) == 0 && len(s.provider.handlers) == 0 {
				v.failf(s.first, "there are no handlers, so the extension is never called")
			}
		},
	},
	{
		ID: "discovery.count", Level: Must,
		Rule:   "An extension has at most 512 handlers: the status of an ExtensionConfig has no room for more.",
		Source: "Cluster API, api/runtime/v1beta2/extensionconfig_types.go, ExtensionConfigStatus.Handlers",
		run: func(_ context.Context, s *session, v *verdict) {
			if s.discovered(v) && len(s.announced) > limits.Handlers {
				v.failf(s.first, "there are %d handlers", len(s.announced))
			}
		},
	},
	{
		ID: "discovery.names", Level: Must,
		Rule:   "Names of handlers are DNS-1123 labels, and no two are the same.",
		Source: runtimeClient + "defaultAndValidateDiscoveryResponse",
		run: func(ctx context.Context, s *session, v *verdict) {
			seen := map[string]bool{}
			eachAnnounced(func(a announced) string {
				if errs := validation.IsDNS1123Label(a.Name); len(errs) > 0 {
					return fmt.Sprintf("name %q is not a DNS-1123 label: %s", a.Name, errs[0])
				}
				if seen[a.Name] {
					return fmt.Sprintf("name %q occurs twice", a.Name)
				}
				seen[a.Name] = true
				return ""
			})(ctx, s, v)
		},
	},
	{
		ID: "discovery.hooks", Level: Must,
		Rule:   "The requestHook of a handler is a hook of Cluster API other than Discovery, with group and version.",
		Source: runtimeClient + "defaultAndValidateDiscoveryResponse",
		run: func(ctx context.Context, s *session, v *verdict) {
			eachAnnounced(func(a announced) string {
				if _, ok := s.hookOf(a); !ok {
					return fmt.Sprintf("there is no hook %q that can have handlers in apiVersion %q; want apiVersion %s",
						a.RequestHook.Hook, a.RequestHook.APIVersion, hook.APIVersion)
				}
				return ""
			})(ctx, s, v)
		},
	},
	{
		ID: "discovery.timeouts", Level: Must,
		Rule:   "timeoutSeconds of a handler is from 0 to 30, or is absent, which means 10.",
		Source: runtimeClient + "defaultAndValidateDiscoveryResponse",
		run: eachAnnounced(func(a announced) string {
			if a.TimeoutSeconds != nil &&
				(*a.TimeoutSeconds < 0 || *a.TimeoutSeconds > int64(limits.Timeout.Seconds())) {
				return fmt.Sprintf("timeoutSeconds is %d, which is not between 0 and 30", *a.TimeoutSeconds)
			}
			return ""
		}),
	},
	{
		ID: "discovery.objects", Level: Must, Protocol: GRPC,
		Rule: "cluster_api_version of a handler is absent, \"v1beta1\" or \"v1beta2\": the gateway converts objects " +
			"between these two versions.",
		Source: contract + "discovery.proto",
		run: eachAnnounced(func(a announced) string {
			if err := hook.CheckClusterAPIVersion(a.ClusterAPIVersion); a.ClusterAPIVersion != "" && err != nil {
				return "cluster_api_version " + err.Error()
			}
			return ""
		}),
	},
	{
		ID: "discovery.timeout-zero", Level: Should,
		Rule:   "timeoutSeconds of a handler is not 0, because callers treat 0 like the default of 10.",
		Source: runtimeClient + "CallExtension",
		run: eachAnnounced(func(a announced) string {
			if a.TimeoutSeconds != nil && *a.TimeoutSeconds == 0 {
				return "timeoutSeconds is 0, which means 10"
			}
			return ""
		}),
	},
	{
		ID: "discovery.failure-policies", Level: Must,
		Rule:   "failurePolicy of a handler is Fail or Ignore, or is absent, which means Fail.",
		Source: runtimeClient + "defaultAndValidateDiscoveryResponse",
		run: eachAnnounced(func(a announced) string {
			if p := a.FailurePolicy; p != nil && *p != string(hook.Fail) && *p != string(hook.Ignore) {
				return fmt.Sprintf("failurePolicy is %q, which is neither Fail nor Ignore", *p)
			}
			return ""
		}),
	},
	{
		ID: "discovery.sole", Level: Must,
		Rule: "There is at most one handler for each of the hooks CanUpdateMachine, CanUpdateMachineSet and " +
			"UpdateMachine.",
		Source: "Cluster API, core/reconcilers/machine/machine_controller_inplace_update.go, callUpdateMachineHook",
		run: func(ctx context.Context, s *session, v *verdict) {
			seen := map[string]string{}
			eachAnnounced(func(a announced) string {
				switch a.RequestHook.Hook {
				case "CanUpdateMachine", "CanUpdateMachineSet", "UpdateMachine":
					if first, ok := seen[a.RequestHook.Hook]; ok {
						return fmt.Sprintf("%s already has the handler %q: if a hook has two handlers, Cluster API "+
							"calls neither", a.RequestHook.Hook, first)
					}
					seen[a.RequestHook.Hook] = a.Name
				}
				return ""
			})(ctx, s, v)
		},
	},
	{
		ID: "discovery.content", Level: Must,
		Rule:   "Discovery always announces the same handlers.",
		Source: guidelines + "Deterministic result",
		run: func(ctx context.Context, s *session, v *verdict) {
			s.rediscover(ctx, v, func(again []announced) string { return otherHandlers(s.announced, again) })
		},
	},
	{
		ID: "discovery.order", Level: Should,
		Rule:   "Discovery announces the handlers in the same order each time.",
		Source: guidelines + "Deterministic result",
		run: func(ctx context.Context, s *session, v *verdict) {
			s.rediscover(ctx, v, func(again []announced) string {
				if namesOf(again) == namesOf(s.announced) || otherHandlers(s.announced, again) != "" {
					return "" // other handlers are for discovery.content
				}
				return "the order is " + namesOf(again) + " after " + namesOf(s.announced)
			})
		},
	},
}

// discovered reports whether Discovery was answered; if not, it marks the check as not applicable.
func (s *session) discovered(v *verdict) bool {
	switch {
	case s.reflected:
		v.skipf("Discovery is not implemented; server reflection stands in for it")
	case s.first.status() != success:
		v.skipf("Discovery does not answer: see discovery.answers")
	default:
		return true
	}
	return false
}

// eachAnnounced returns a run that reports the problems that check finds, handler by handler.
func eachAnnounced(check func(announced) string) runFunc {
	return func(_ context.Context, s *session, v *verdict) {
		if !s.discovered(v) {
			return
		}
		for i, a := range s.announced {
			if problem := check(a); problem != "" {
				v.failf(s.first, "handlers[%d]: %s", i, problem)
				v.findings[len(v.findings)-1].Handler = a.Name
			}
		}
	}
}

// rediscover calls Discovery ten times, and reports the first problem that check finds.
func (s *session) rediscover(ctx context.Context, v *verdict, check func([]announced) string) {
	if !s.discovered(v) {
		return
	}
	for range 10 {
		x := s.askDiscovery(ctx)
		if x.status() != success {
			v.failf(x, "Discovery answered before, but does not now")
			return
		}
		if problem := check(x.parsed.Handlers); problem != "" {
			v.failf(x, "%s", problem)
			return
		}
	}
}

// otherHandlers returns what differs between two answers of Discovery, or "" if they mean the same: the order of
// handlers means nothing, and what is absent is its default.
func otherHandlers(first, again []announced) string {
	was, is := settled(first), settled(again)
	if namesOf(was) != namesOf(is) {
		return "the handlers differ from those in the first answer: " + namesOf(is) + " after " + namesOf(was)
	}
	for i := range was {
		if !reflect.DeepEqual(was[i], is[i]) {
			return fmt.Sprintf("the values of the handler %q differ from those in the first answer", is[i].Name)
		}
	}
	return ""
}

// settled returns the handlers by name, with the defaults that callers give them.
func settled(handlers []announced) []announced {
	sorted := slices.Clone(handlers)
	slices.SortStableFunc(sorted, func(a, b announced) int { return cmp.Compare(a.Name, b.Name) })
	for i := range sorted {
		if sorted[i].TimeoutSeconds == nil {
			sorted[i].TimeoutSeconds = new(int64(limits.DefaultTimeout.Seconds()))
		}
		if sorted[i].FailurePolicy == nil {
			sorted[i].FailurePolicy = new(string(hook.Fail))
		}
	}
	return sorted
}

func namesOf(handlers []announced) string {
	names := make([]string, len(handlers))
	for i, h := range handlers {
		names[i] = h.Name
	}
	return "[" + strings.Join(names, " ") + "]"
}
