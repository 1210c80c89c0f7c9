// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/registry"
)

// The margin that is kept of a caller's deadline is a tenth of it, and half a second at most; it counts only where the
// handler's timeout, or 30 s, does not come first.
func TestDeadlineAtItsLimits(t *testing.T) {
	const ms = time.Millisecond
	const late, within = "no answer before the caller's deadline", "no answer within its timeout of "
	tests := map[string]struct {
		reason          string
		handler, caller time.Duration
		want            time.Duration
		text            string
	}{
		"Longest":            {"30 s are allowed", 30 * time.Second, 0, 30 * time.Second, within + "30s"},
		"TooLong":            {"no handler may take longer", 30*time.Second + 1, 0, 30 * time.Second, within + "30s"},
		"JustShorter":        {"a shorter timeout counts", 30*time.Second - 1, 0, 30*time.Second - 1, within + "29.999999999s"},
		"CallerAtTheLimit":   {"the caller waits just long enough for 30 s", 30 * time.Second, 30500 * ms, 30 * time.Second, within + "30s"},
		"CallerJustBelow":    {"and here it does not", 30 * time.Second, 30500*ms - 1, 30*time.Second - 1, late},
		"CallerJustAbove":    {"and here it does", 30 * time.Second, 30500*ms + 1, 30 * time.Second, within + "30s"},
		"MarginAtItsMost":    {"a tenth of 5 s is half a second", 30 * time.Second, 5 * time.Second, 4500 * ms, late},
		"MarginBelowMost":    {"a tenth of less than 5 s is less", 30 * time.Second, 4990 * ms, 4491 * ms, late},
		"MarginAboveMost":    {"a tenth of more than 5 s would be more", 30 * time.Second, 5010 * ms, 4510 * ms, late},
		"SmallMargin":        {"a tenth of 100 ms", time.Second, 100 * ms, 90 * ms, late},
		"HandlerEqualsRest":  {"both come at the same time, and the text does not depend on chance", 900 * ms, time.Second, 900 * ms, within + "900ms"},
		"HandlerJustBelow":   {"the handler's comes first", 900*ms - 1, time.Second, 900*ms - 1, within + "899.999999ms"},
		"HandlerJustAbove":   {"the caller's comes first", 900*ms + 1, time.Second, 900 * ms, late},
		"CallerWithoutTime":  {"nothing is left", time.Second, 1, 1, late},
		"HandlerWithoutTime": {"a handler without a timeout has none", 0, time.Second, 0, within + "0s"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			c := callTo(t, "BeforeClusterCreate", func(h *registry.Handler) { h.Timeout = tc.handler })
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if tc.caller > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tc.caller)
					defer cancel()
				}
				cause := errors.New("cause")
				start := time.Now()
				result, err := deadline(func(ctx context.Context, _ extension.Call) (extension.Result, error) {
					<-ctx.Done()
					return extension.Result{Sent: 5, Lost: []string{"a"}}, hook.Errorf(hook.Timeout, "whatever").WithCause(cause)
				})(ctx, c)
				if took := time.Since(start); took != tc.want {
					t.Errorf("%s: took %s, want %s", tc.reason, took, tc.want)
				}
				if err == nil || err.Error() != tc.text || hook.KindOf(err) != hook.Timeout {
					t.Errorf("%s: got error %v, want %s", tc.reason, err, tc.text)
				}
				if !errors.Is(err, cause) || result.Sent != 5 || len(result.Lost) != 1 {
					t.Errorf("%s: the cause, or what is known about the call, is lost: %v, %+v", tc.reason, err, result)
				}
			})
		})
	}
}

// Only a timeout gets another text.
func TestDeadlinePassesOtherErrors(t *testing.T) {
	c := callTo(t, "BeforeClusterCreate")
	for _, kind := range hook.Kinds() {
		failed := hook.Errorf(kind, "no")
		_, err := deadline(func(context.Context, extension.Call) (extension.Result, error) { return extension.Result{}, failed })(t.Context(), c)
		if err == nil || (err.Error() == "no") != (kind != hook.Timeout) || hook.KindOf(err) != kind {
			t.Errorf("%s: got %v", kind, err)
		}
		if kind == hook.Timeout && !errors.Is(err, failed) {
			t.Errorf("a timeout without a cause is its own cause: got %v", errors.Unwrap(err))
		}
	}
}

// A lookup that outlasts a caller's short deadline says no more about the extension than a timeout does.
func TestDeadlineDuringALookup(t *testing.T) {
	c := callTo(t, "BeforeClusterCreate", func(h *registry.Handler) { h.Timeout = 4 * time.Second })
	for _, left := range []time.Duration{time.Second, 0} {
		synctest.Test(t, func(t *testing.T) {
			ctx := t.Context()
			if left != 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, left)
				defer cancel()
			}
			result, err := deadline(func(ctx context.Context, _ extension.Call) (extension.Result, error) {
				<-ctx.Done()
				return extension.Result{}, hook.Errorf(hook.Unreachable, "host name lookup timed out")
			})(ctx, c)
			if hook.KindOf(err) != hook.Unreachable || result.Inconclusive != (left != 0) {
				t.Errorf("%s left: got %v, inconclusive %t", left, err, result.Inconclusive)
			}
		})
	}
}

func TestPolicyTimeoutAndFailurePolicy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := filled(t, registrationOf("a", handlerOf("v", "BeforeClusterCreate", hook.Fail)))
		caller := callerFunc(func(ctx context.Context, _ extension.Call) (proto.Message, error) {
			<-ctx.Done()
			return nil, hook.Errorf(hook.Timeout, "whatever").WithCause(ctx.Err())
		})
		d := newDispatcher(r, fixedNamespaces{}, caller)
		dispatch := func() (time.Duration, error) {
			start := time.Now()
			_, err := d.dispatch(t.Context(), hookOf(t, "BeforeClusterCreate"), "", &hooksv1alpha1.BeforeClusterCreateRequest{Cluster: clusterIn("n")})
			return time.Since(start), err
		}
		r.SetPolicies("a", forHandler("v", policy.Policy{Timeout: 3 * time.Second}))
		if took, err := dispatch(); took != 3*time.Second || err == nil || err.Error() != `handler "v.a": no answer within its timeout of 3s` {
			t.Errorf("the policy's timeout counts: got %v after %s", err, took)
		}
		r.SetPolicies("a", forHandler("v", policy.Policy{Timeout: 3 * time.Second, FailurePolicy: hook.Ignore}))
		if took, err := dispatch(); took != 3*time.Second || err != nil {
			t.Errorf("the policy's failure policy counts: got %v after %s", err, took)
		}
		r.SetPolicies("a", registry.Policies{})
		if took, err := dispatch(); took != 10*time.Second || hook.KindOf(err) != hook.Timeout {
			t.Errorf("without a policy the handler's own count: got %v after %s", err, took)
		}
	})
}
