// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"slices"
	"time"

	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/calls/activity"
	"github.com/hookgate/hookgate/registry"
)

// locals returns handlers without servers with what is known of them.
func (r *Reporter) locals(
	now time.Time, snapshot *registry.Snapshot, inChains map[string][]string, listed []status.InProcess,
) []status.InProcess {
	all := slices.Clone(listed)
	for i := range all {
		local := &all[i]
		registration, ok := snapshot.Registration(local.Name)
		if !ok || registration.InProcess == nil {
			continue // what else has its name is served
		}
		if s := registration.NamespaceSelector; s != nil && !s.Empty() {
			local.Selector = s.String()
		}
		for _, e := range snapshot.HandlersOf(local.Name) {
			if e.Handler.Everything {
				continue // which frees places
			}
			of := r.hooked(now, e)
			of.OfferedAs, of.Collision = r.offeredAs(snapshot, e)
			of.Chains = inChains[e.Name]
			of.Lost = r.Observer.losses.Of(local.Name)[e.Handler.Name]
			if c := snapshot.Closed(e, false); c != nil {
				of.State, of.Error = status.Down, c.Error().Error()
			}
			local.Handler = &of.Handler
		}
	}
	return all
}

// judgeLocal returns the state of a handler that has no server, which is ready before its first call.
func judgeLocal(e *handlerEvidence) verdict {
	v := judgeHandler(e, activity.Server{})
	if v.state == status.Up || v.state == status.Unknown {
		v.state = status.Ready
	}
	return v
}
