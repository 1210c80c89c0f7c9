// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"

	"github.com/hookgate/hookgate/internal/base/status"
)

// The reasons of conditions that mean that all is well, and nothing else.
const (
	readyReason    = "Ready"
	acceptedReason = "Accepted"
	auditReason    = "Audit" // of a rule that is to let all Clusters go on
)

// verdict says in a word how something is.
type verdict struct {
	State status.State // which has the colour
	Text  string
}

// needsAttention reports whether what has a state is to be looked at before others.
func needsAttention(s status.State) bool {
	return s == status.Down || s == status.Failing || s == status.Slow
}

// stated returns the verdict of a state.
func stated(s status.State) verdict {
	if s == status.Unknown {
		return verdict{s, "Not called yet"}
	}
	return verdict{s, string(s)}
}

// verdictOf returns the verdict on an object with a condition. It is empty for anything else.
func verdictOf(row any) verdict {
	switch r := row.(type) {
	case *status.InProcess:
		v := conditionOf(r.Ready, r.Reason, readyReason)
		if h := r.Handler; h != nil && needsAttention(h.State) && h.State.Worse(v.State) {
			return stated(h.State)
		}
		return v
	case *status.Chain:
		return conditionOf(r.Ready, r.Reason, readyReason)
	case *status.Policy:
		return conditionOf(r.Accepted, r.Reason, acceptedReason)
	case *status.Rollout:
		switch {
		case !r.Ready:
		case r.Aborted != "":
			return verdict{status.Failing, "Aborted"}
		case r.Failing > 0:
			return stated(status.Failing)
		case r.Paused:
			return verdict{status.Slow, "Paused"}
		}
		return conditionOf(r.Ready, r.Reason, readyReason)
	}
	return verdict{}
}

// conditionOf returns the verdict of a condition whose reason is well if there is nothing more to say.
func conditionOf(is bool, reason, well string) verdict {
	reason = cmp.Or(reason, well)
	switch {
	case !is && reason == well:
		return verdict{status.Failing, "Not " + well}
	case !is:
		return verdict{status.Failing, reason}
	case reason == well, reason == auditReason:
		return verdict{status.Ready, reason}
	}
	return verdict{status.Slow, reason}
}
