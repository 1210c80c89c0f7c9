// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/network/connect"
)

// The timeout sent to an extension is rounded up to 100 ms, and never exceeds the handler's.
func TestTimeoutIsRoundedUp(t *testing.T) {
	for _, tc := range []struct {
		timeout, left time.Duration
		want          string
	}{
		{10 * time.Second, 10 * time.Second, "10s"},
		{10 * time.Second, 10*time.Second - 1, "10s"},
		{10 * time.Second, 9900 * time.Millisecond, "9.9s"},
		{10 * time.Second, 9900*time.Millisecond + 1, "10s"},
		{10 * time.Second, 8 * time.Second, "8s"},
		{time.Second, 100 * time.Millisecond, "100ms"},
		{time.Second, 100*time.Millisecond + 1, "200ms"},
		{time.Second, 1, "100ms"},
		{50 * time.Millisecond, time.Second, "100ms"},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), tc.left)
			defer cancel()
			deadline, _ := ctx.Deadline()
			if got, want := connect.TimeoutQuery(deadline, tc.timeout), "timeout="+tc.want; got != want {
				t.Errorf("handler's timeout %s, %s left: got %s, want %s", tc.timeout, tc.left, got, want)
			}
		})
	}
}

// A deadline of the caller's that is a moment earlier than the timeout is what ended the call; one at the same time is
// not.
func TestWhoseDeadlineEndedACall(t *testing.T) {
	const timeout = 10 * time.Second
	for _, tc := range []struct {
		left time.Duration // until the caller's deadline; 0 is none
		kind hook.Kind
		want string
	}{
		{0, hook.Timeout, "call: no answer within 10s"},
		{timeout + 1, hook.Timeout, "call: no answer within 10s"},
		{timeout, hook.Timeout, "call: no answer within 10s"},
		{timeout - 1, hook.Timeout, "call: no answer before the caller's deadline"},
		{-1, hook.Timeout, "call: no answer before the caller's deadline"},
	} {
		synctest.Test(t, func(t *testing.T) {
			ctx := t.Context()
			if tc.left != 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, tc.left)
				defer cancel()
			}
			x := &request{operation: "call", timeout: timeout}
			bounded, cancel := x.withTimeout(ctx)
			defer cancel()
			start := time.Now()
			<-bounded.Done()
			if took := time.Since(start); took > timeout {
				t.Errorf("caller's %s: the call lasted %s", tc.left, took)
			}
			if e := x.ended(bounded, bounded.Err()); e.Kind != tc.kind || e.Error() != tc.want {
				t.Errorf("caller's %s: got %s: %s, want %s: %s", tc.left, e.Kind, e, tc.kind, tc.want)
			}
		})
	}
}

// A caller that leaves gets Canceled, even if its deadline would have been the nearer one.
func TestCallerThatLeavesBeforeItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		x := &request{operation: "call", timeout: 10 * time.Second}
		bounded, release := x.withTimeout(ctx)
		defer release()
		cancel()
		if e := x.ended(bounded, bounded.Err()); e.Kind != hook.Canceled || e.Error() != "call: the caller left" {
			t.Errorf("got %s: %s", e.Kind, e)
		}
	})
}
