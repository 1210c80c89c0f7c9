// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"slices"

	"github.com/hookgate/hookgate/hookversion"
	"github.com/hookgate/hookgate/internal/convert"
	"github.com/hookgate/hookgate/internal/extension"
	"github.com/hookgate/hookgate/internal/extensionstate"
	"github.com/hookgate/hookgate/internal/observe"
	"github.com/hookgate/hookgate/internal/recording"
)

// chain returns the Caller through which every call to a handler passes, outermost link first. A new concern is one
// line here, and one file named for it. Nil objects, and a nil observer or recorder, leave their links without effect.
//
// The circuit is outside of the deadline, because it judges timeouts by what the deadline has learned about them.
func chain(
	observer *observe.Observer, extensions *extensionstate.States, versions *hookversion.Converter,
	objects *convert.Objects, recorder *recording.Recorder, transport extension.Caller,
) extension.Caller {
	return link(transport,
		cache(extensions, observer),
		observer.Handlers(),
		warnDeprecated(observer),
		failurePolicy,
		boundMessage,
		policyError,
		chargeExtension,
		circuitBreaker(extensions, observer),
		deadline,
		admit(extensions),
		convertVersions(versions),
		convertObjects(objects),
		recorder.Link(keepMemory),
	)
}

// link wraps last with links, the first of which becomes the outermost.
func link(last extension.Caller, links ...extension.Link) extension.Caller {
	for _, link := range slices.Backward(links) {
		last = link(last)
	}
	return last
}
