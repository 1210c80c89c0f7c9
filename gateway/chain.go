// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"slices"

	"github.com/hookgate/hookgate/internal/calls/bounds"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/extensionstate"
	"github.com/hookgate/hookgate/internal/calls/protect"
)

// chain returns the Caller through which every call to a handler passes, outermost link first. A new concern is one
// line here, and one file named for it. Nil objects, and a nil observer, recorder or Drift, leave their links without
// effect.
//
// The circuit is outside of the deadline, because it judges timeouts by what the deadline has learned about them.
func chain(c Config, extensions *extensionstate.States) extension.Caller {
	observer, recorder := c.Observer, c.Recorder
	return link(c.Transport,
		cache(extensions, observer),
		observer.Handlers(),
		warnDeprecated(observer),
		failurePolicy,
		audit(c.Audited),
		liftHold(c.Lifted),
		steadyMessage,
		boundMessage,
		policyError,
		chargeExtension,
		protect.Circuits(extensions, observer),
		deadline,
		protect.Admission(extensions),
		convertVersions(c.Versions),
		convertObjects(c.Objects),
		reduceRequest,
		recorder.Link(bounds.Keep),
		c.Drift.Link(bounds.Keep),
	)
}

// link wraps last with links, the first of which becomes the outermost.
func link(last extension.Caller, links ...extension.Link) extension.Caller {
	for _, link := range slices.Backward(links) {
		last = link(last)
	}
	return last
}
