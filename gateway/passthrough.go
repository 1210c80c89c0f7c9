// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/convert"
	"github.com/hookgate/hookgate/registry"
)

// reading is how much of a request in JSON is read as a message on its way.
type reading int

const (
	readWhole reading = iota
	// passThrough means that all handlers get the elements that its partial message lacks as the caller wrote them, and
	// nothing else reads them; passThroughToGRPC that some of the handlers get them as protobuf.
	passThrough
	passThroughToGRPC
)

// readingOf returns how much of a request in JSON is read. Whatever reads the elements that its partial message lacks,
// or makes another request of them, is a condition here, or it finds a Call without a Request:
//
//   - selectors and conditions read the newest version of a hook, for which other versions are converted;
//   - a version of the hook, or of Cluster API's objects, that the handler wants and the caller has not sent;
//   - settings of the ExtensionConfig, which are added;
//   - a cache, whose key is made of the message;
//   - a chain, whose steps see what those before them have patched.
//
// Selectors read the partial message, and conditions the JSON.
func readingOf(s *registry.Snapshot, h *catalog.Hook, handler string, objects *convert.Objects) reading {
	if h != h.Hub() {
		return readWhole
	}
	if isNamed(s, h, handler) {
		e, ok := s.Handler(handler)
		if !ok {
			return readWhole
		}
		return readingFor(h, e, objects)
	}
	if chains, _ := s.StandsFor(h.GroupHook()); len(chains) > 0 {
		return readWhole
	}
	most := passThrough
	for _, e := range s.Handlers(h.GroupHook()) {
		switch readingFor(h, e, objects) {
		case readWhole:
			return readWhole
		case passThroughToGRPC:
			most = passThroughToGRPC
		}
	}
	return most
}

// readingFor returns how much of a request is read if it is for one handler.
func readingFor(h *catalog.Hook, e *registry.Entry, objects *convert.Objects) reading {
	switch {
	case e.Handler.Hook.Version != h.Version, len(e.Registration.Settings) > 0, cacheTTL(e) != 0,
		e.Handler.ClusterAPIVersion != "" && objects.Concern(h.Request.Descriptor()):
		return readWhole
	case e.Registration.ClientConfig.Protocol == registry.REST:
		return passThrough
	case e.Registration.ClientConfig.Protocol == registry.GRPC:
		return passThroughToGRPC
	}
	return readWhole
}
