// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/registry"
)

// Request is what is read of a request; gateway.Request describes the fields. It is only read.
type Request struct {
	Hook       *catalog.Hook
	Handler    string
	Message    proto.Message
	Partial    proto.Message
	Namespaces []string
	Body       []byte
}

// IsNamed reports whether a name of a handler is that of a single one, rather than of the handler that represents all
// handlers of the hook in Discovery.
func IsNamed(s *registry.Snapshot, h *catalog.Hook, handler string) bool {
	return handler != "" && (s.IsSidecar() || !h.Mergeable || !strings.EqualFold(handler, h.Hook))
}

// TooLong returns the error of a request that names a handler by more than a name may have.
func TooLong(handler string) error {
	return hook.Errorf(hook.UnknownHandler, "no handler %q: names have at most %d bytes",
		text.Cut(handler, limits.NameBytes/8), limits.NameBytes)
}

// NotReady returns the error of a request while the registrations are not known.
func NotReady(s *registry.Snapshot) error {
	return hook.Errorf(hook.NotReady, "%s: try again", s.Unready())
}
