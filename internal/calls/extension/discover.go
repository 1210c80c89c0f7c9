// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/contract/jsonscan"
	"github.com/hookgate/hookgate/internal/network/via"
	"github.com/hookgate/hookgate/registry"
)

// Discovered is the result of discovery. Handlers and Skipped are sorted by name.
type Discovered struct {
	Handlers []registry.Handler
	Skipped  []Skipped
	// Unanswered lists the groups of hooks, besides Cluster API's, whose handlers are not known because of an error. An
	// extension that does not have a group is not listed.
	Unanswered []Unanswered
	// Misspelt says which members of the answers mean nothing because their names are misspelt.
	Misspelt []string
	// HealthUnchecked reports that the gRPC server of the extension has no health service. Calls then go to each of its
	// addresses that can be connected to.
	HealthUnchecked bool
}

// Unanswered is a group of hooks whose handlers an extension did not list.
type Unanswered struct {
	Hook hook.GroupHook // the hook that lists them
	Err  *hook.Error
}

// Skipped is a handler that the gateway never calls, which does not affect the extension's other handlers.
type Skipped struct {
	Name   string
	Reason string // the same for the same handler
}

// Discover asks the extension at cc for its handlers of every group of hooks, in the newest version of the group's
// discovery that it implements. It waits at most 10 s for each version.
//
// Discover skips handlers of hooks that the gateway does not know, because the extension may be newer than the gateway.
// Cluster API refuses the whole answer instead. For anything else that is wrong, Discover refuses the answer too, and
// the error lists all of it.
//
// The error is a *hook.Error of one of the kinds of Call: Unreachable for a caBundle or URL that cannot be used, and
// BadResponse for an answer that is wrong or has the status Failure.
func (r *REST) Discover(ctx context.Context, cc registry.ClientConfig) (Discovered, error) {
	memory, err := r.config.reserveDiscovery(ctx, cc)
	if err != nil {
		return Discovered{}, err
	}
	defer memory.Release()
	d, _, failed := discoverGroups(r.config.Catalog, cc.URL, &r.absences, func(
		h *catalog.Hook,
	) (Discovered, bool, *hook.Error) {
		x := &restRequest{request: discoveryRequest(h, r.config.discoveryVia())}
		x.reserve, x.memory = memory.Within(ctx), memory
		out, failed := r.do(ctx, cc, x, h.Request.New().Interface())
		if failed != nil {
			return Discovered{}, x.absent, failed
		}
		d, failed := x.discovered(r.config.Catalog, out)
		return d, false, failed
	})
	if failed != nil {
		return Discovered{}, failed
	}
	return d, nil
}

// faults collects what is wrong with an answer, in its order.
type faults []string

func (f *faults) addf(format string, args ...any) { *f = append(*f, fmt.Sprintf(format, args...)) }

func (f faults) err() error {
	if len(f) == 0 {
		return nil
	}
	return errors.New(text.Join(f, "; ", limits.DiscoveryFaults))
}

// discovered checks the handlers of an answer to asked, and fills in defaults.
func discovered(
	c *catalog.Catalog, asked *catalog.Hook, handlers []*hooksv1alpha1.ExtensionHandler,
) (Discovered, error) {
	if len(handlers) > limits.Handlers {
		return Discovered{}, fmt.Errorf("has %d handlers, which is more than %d: split them over several extensions",
			len(handlers), limits.Handlers)
	}
	var d Discovered
	var wrong faults
	seen := make(map[string]string, len(handlers))
	for i, h := range handlers {
		if !checkName(&wrong, i, h.GetName(), seen) {
			continue
		}
		gvh, err := hook.Parse(h.GetRequestHook().GetApiVersion(), h.GetRequestHook().GetHook())
		if err != nil {
			wrong.addf("handlers[%d].requestHook: %s", i, cut(err.Error()))
			continue
		}
		timeout, ok := timeoutOf(h)
		if !ok {
			wrong.addf("handlers[%d].timeoutSeconds: %d is not between 0 and %d",
				i, h.GetTimeoutSeconds(), int(limits.Timeout.Seconds()))
		}
		policy, ok := policyOf(h)
		if !ok {
			wrong.addf("handlers[%d].failurePolicy: %d is neither %q nor %q", i, h.GetFailurePolicy(),
				hook.Fail, hook.Ignore)
		}
		version := h.GetClusterApiVersion()
		if err := hook.CheckClusterAPIVersion(version); version != "" && err != nil {
			wrong.addf("handlers[%d].cluster_api_version: %s", i, cut(err.Error()))
		}
		if known, ok := c.Lookup(gvh); ok && known.FailOnly && policy == hook.Ignore {
			wrong.addf("handlers[%d].failurePolicy: errors of %s cannot be ignored: want %q", i, gvh.Hook, hook.Fail)
		}
		path, ok := pathOf(h)
		if !ok {
			wrong.addf("handlers[%d].%s: is not a list of the ids of gateways", i, via.PathMember)
		}
		if reason := skipReason(c, asked, gvh); reason != "" {
			d.Skipped = append(d.Skipped, Skipped{Name: h.GetName(), Reason: reason})
			continue
		}
		d.Handlers = append(d.Handlers, registry.Handler{
			Name: h.GetName(), Hook: gvh, Timeout: timeout, FailurePolicy: policy, ClusterAPIVersion: version,
			Gateways: string(path),
		})
	}
	if err := wrong.err(); err != nil {
		return Discovered{}, err
	}
	slices.SortFunc(d.Handlers, func(a, b registry.Handler) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(d.Skipped, func(a, b Skipped) int { return cmp.Compare(a.Name, b.Name) })
	return d, nil
}

// checkName reports whether the name of a handler is right, by itself and beside those seen before, which are by their
// name in lower case. It adds what is wrong.
func checkName(wrong *faults, i int, name string, seen map[string]string) bool {
	lower := strings.ToLower(name)
	first, twice := seen[lower]
	if !twice {
		seen[lower] = name
	}
	var err error
	// A name that is too long is not repeated in a message.
	if twice && len(name) <= validation.DNS1123LabelMaxLength {
		err = registry.SameName(first, name)
	} else {
		err = registry.CheckName(name)
	}
	if err != nil {
		wrong.addf("handlers[%d].name: %v", i, err)
	}
	return err == nil
}

func timeoutOf(h *hooksv1alpha1.ExtensionHandler) (time.Duration, bool) {
	timeout := time.Duration(h.GetTimeoutSeconds()) * time.Second
	if timeout == 0 {
		timeout = limits.DefaultTimeout
	}
	return timeout, timeout > 0 && timeout <= limits.Timeout
}

func policyOf(h *hooksv1alpha1.ExtensionHandler) (hook.FailurePolicy, bool) {
	switch h.GetFailurePolicy() {
	case hooksv1alpha1.FailurePolicy_FAILURE_POLICY_UNSPECIFIED, hooksv1alpha1.FailurePolicy_FAILURE_POLICY_FAIL:
		return hook.Fail, true
	case hooksv1alpha1.FailurePolicy_FAILURE_POLICY_IGNORE:
		return hook.Ignore, true
	}
	return "", false
}

// pathOf returns the gateways behind the one that offers a handler; none unless it says so.
func pathOf(h *hooksv1alpha1.ExtensionHandler) (via.Path, bool) {
	raw := h.GetUnknownMembers()[via.PathMember].GetRaw()
	if raw == nil {
		return "", true
	}
	value, ok := jsonscan.String(raw)
	path := via.Path(value)
	return path, ok && path.Check() == nil
}

// skipReason returns why the gateway never calls handlers of a hook that an answer to asked lists; empty if it does.
func skipReason(c *catalog.Catalog, asked *catalog.Hook, gvh hook.GroupVersionHook) string {
	known, ok := c.Lookup(gvh)
	version, _ := c.Version(gvh.Group, gvh.Version)
	switch {
	case !ok && version != nil && version.Removed():
		return fmt.Sprintf("hook %s is of a version that the gateway removed in %s: build the extension for %s",
			quote(gvh.String()), version.Lifetime.Removed, version.Instead())
	case !ok:
		return fmt.Sprintf("hook %s is not known to this gateway", quote(gvh.String()))
	case known.Singleton():
		return fmt.Sprintf("hook %s has no handlers", quote(gvh.String()))
	case known.Group != asked.Group:
		return fmt.Sprintf("hook %s does not belong to the group of %s: remove the handler from the answer to %s",
			quote(gvh.String()), asked.Hook, asked.Hook)
	}
	return ""
}
