// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/convert"
	"github.com/hookgate/hookgate/registry"
)

// goesUnread reports whether a request in JSON is sent to its handlers as the caller wrote it, and nothing on the way
// reads the elements that its outline lacks. Whatever reads them, or makes another request of them, is a condition
// here, or it finds a Call without a Request:
//
//   - selectors and conditions read the newest version of a hook, for which other versions are converted;
//   - a version of the hook, or of Cluster API's objects, that the handler wants and the caller has not sent;
//   - settings of the ExtensionConfig, which are added;
//   - a cache, whose key is made of the message;
//   - gRPC.
//
// Selectors read the outline, and conditions the JSON.
func goesUnread(s *registry.Snapshot, h *catalog.Hook, handler string, objects *convert.Objects) bool {
	if h != h.Hub() {
		return false
	}
	if isNamed(s, h, handler) {
		e, ok := s.Handler(handler)
		return ok && sendsBody(h, e, objects)
	}
	for _, e := range s.Handlers(h.GroupHook()) {
		if !sendsBody(h, e, objects) {
			return false
		}
	}
	return true
}

// sendsBody reports whether a call of the hook to the handler is the caller's body.
func sendsBody(h *catalog.Hook, e *registry.Entry, objects *convert.Objects) bool {
	return e.Registration.ClientConfig.Protocol == registry.REST && e.Handler.Hook.Version == h.Version &&
		len(e.Registration.Settings) == 0 && cacheTTL(e) == 0 &&
		(e.Handler.ClusterAPIVersion == "" || !objects.Concern(h.Request.Descriptor()))
}
