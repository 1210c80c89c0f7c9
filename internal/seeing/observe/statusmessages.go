// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/registry"
)

// unsteady says that the message of a handler changes from call to call, and what to do; nothing if it does not.
func (r *Reporter) unsteady(e *registry.Entry) string {
	hold, ok := r.Observer.holds.Unsteady(e.Name)
	if !ok {
		return ""
	}
	advice := "correct the extension, because no policy can mask all of the changes"
	switch {
	case e.Policy.Masking() == policy.Steady:
		advice = "correct the extension, because messages: Steady does not mask these changes"
	case hold.Maskable:
		advice = "correct the extension, or mask the changes with messages: Steady in an ExtensionPolicy"
	}
	return fmt.Sprintf("the message about Cluster %s/%s changes from call to call, though the answer does not: %s",
		hold.Namespace, hold.Cluster, advice)
}

// lifted names the Clusters that the policy of a handler lets go on. Those of handlers without servers are no holds of
// an extension.
func lifted(e *registry.Entry) string {
	var clusters []string
	if e.Registration.InProcess != nil {
		return ""
	}
	for _, of := range e.Policy.Lifted.List() {
		if of.Handler == e.Handler.Name && of.Hook == e.Handler.Hook.Hook {
			clusters = append(clusters, of.Namespace+"/"+of.Cluster)
		}
	}
	return text.Join(clusters, ", ", limits.Problems)
}
