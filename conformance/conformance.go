// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"context"
	"crypto/tls"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/hookgate/hookgate/catalog"
)

// Target names the extension to check.
type Target struct {
	// URL is https://host[:port][/prefix] for REST, or grpcs://host:port, grpc://host:port on loopback or unix:///path
	// for gRPC. REST over http:// is possible on loopback; it breaks the rule tls.used.
	URL string
	// CA holds the certificates of the authorities to trust, in PEM; empty means the system's.
	CA []byte
	// Certificate is shown to an extension that asks callers for one; nil for none.
	Certificate *tls.Certificate
	// Token is sent to the extension as a bearer token, unless its certificate is not trusted. Empty means none.
	Token string

	// now is the clock that answers are timed with; nil means time.Now.
	now func() time.Time
	// shortest is the least time after which a caller leaves early; 0 means a millisecond.
	shortest time.Duration
}

// Options are the optional settings of a run.
type Options struct {
	// Catalog has the hooks; nil means those of Cluster API and of infrastructure. The handlers of further groups are
	// called only if Requests has a request of their hook.
	Catalog *catalog.Catalog
	// Only and Skip select checks, by identifier ("patches.apply"), family ("patches") or pattern ("*.stable"). Skip
	// wins.
	Only, Skip []string
	// Requests replace the package's own requests: the mandated JSON, by the name of the hook. Give requests on which
	// your handlers act: a handler that patches nothing passes all checks of patches.
	Requests map[string][]byte
	// ClusterAPIVersion is the version of Cluster API objects that the handlers understand, v1beta1 or v1beta2, as the
	// operator of a gateway would state it in an ExtensionPolicy. Empty means the version that a gRPC extension states,
	// or else the version of the requests, which is v1beta2 in the package's own.
	ClusterAPIVersion string
	// Infrastructure lets the checks of infrastructure make a cluster, a machine and a pool of two machines, and delete
	// them again, in the real backend of the extension. If it is nil, nothing is made.
	Infrastructure *Infrastructure
	// Starting, if set, is called before each check, which is the nth of all that are selected.
	Starting func(check Check, n, all int)
	// Progress, if set, is called with each result, in order.
	Progress func(Result)
}

// Run checks the extension. It takes some seconds, and longer if the extension is slow.
//
// It returns a *ConnectError if the extension cannot be reached, a *SelectionError or *TargetError if an argument is
// wrong. If ctx ends first, it returns the cause of that, with a report of the results until then: the checks that were
// not run have the status Error. Broken rules are no error: see Report.
func Run(ctx context.Context, target Target, options Options) (Report, error) {
	checks, err := options.selected()
	if err != nil {
		return Report{}, err
	}
	s, err := newSession(ctx, target, options)
	if err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("check %s: %w", target.URL, ended(ctx))
		}
		return Report{}, err
	}
	defer s.transport.close()
	report := Report{Target: s.endpoint.url, Protocol: s.endpoint.protocol}
	for _, h := range s.handlers {
		report.Handlers = append(report.Handlers, h.name)
	}
	for _, hookName := range slices.Sorted(maps.Keys(s.provider.handlers)) {
		report.Handlers = append(report.Handlers, s.provider.handlers[hookName].name)
	}
	for i := range checks {
		if options.Starting != nil {
			options.Starting(checks[i], i+1, len(checks))
		}
		result := checks[i].result(ctx, s)
		if ctx.Err() != nil {
			why := ended(ctx)
			for _, c := range checks[i:] {
				report.Results = append(report.Results, Result{
					ID: c.ID, Level: c.Level, Status: Error, Rule: c.Rule, Source: c.Source, Reason: "not run: " + why.Error(),
				})
			}
			return report, fmt.Errorf("check %s: %w", checks[i].ID, why)
		}
		report.Results = append(report.Results, result)
		if options.Progress != nil {
			options.Progress(result)
		}
	}
	return report, nil
}

// ended returns why ctx is done.
func ended(ctx context.Context) error {
	if cause := context.Cause(ctx); cause != context.Canceled { //nolint:errorlint // a cause that wraps it says more
		return cause
	}
	return interruptedError{}
}

// interruptedError is context.Canceled for people.
type interruptedError struct{}

func (interruptedError) Error() string { return "interrupted" }
func (interruptedError) Unwrap() error { return context.Canceled }

// result carries out the check and returns its result.
func (c *Check) result(ctx context.Context, s *session) Result {
	r := Result{ID: c.ID, Level: c.Level, Status: Pass, Rule: c.Rule, Source: c.Source}
	if c.Protocol != "" && c.Protocol != s.endpoint.protocol {
		r.Status, r.Reason = Skip, "this is for "+string(c.Protocol)+" only"
		return r
	}
	if s.dead != "" {
		r.Status, r.Reason = Error, s.dead
		return r
	}
	start := time.Now()
	var v verdict
	crash := c.guarded(ctx, s, &v)
	r.Took = time.Since(start)
	switch {
	case crash != "":
		r.Status, r.Reason, r.Findings = Error, crash, v.findings
		return r
	case len(v.findings) > 0:
		r.Status, r.Findings = Fail, v.findings
	case v.notFor != "":
		r.Status, r.Reason = Skip, v.notFor
	default:
		r.Reason = v.partly
	}
	// An extension that has gone away would fail the checks that follow for a wrong reason, or pass them for one.
	if gone := s.gone(ctx); gone != "" && r.Status != Fail {
		r.Status, r.Reason = Error, gone
	}
	return r
}

// guarded carries out the check. Libraries that read patches and schemas may panic on the answer of an extension; a
// panic must not keep the other checks from running.
func (c *Check) guarded(ctx context.Context, s *session, v *verdict) (crash string) {
	defer func() {
		if r := recover(); r != nil {
			crash = fmt.Sprintf("the check crashed on the answer: %v", r)
		}
	}()
	c.run(ctx, s, v)
	return ""
}
