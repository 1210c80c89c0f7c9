// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/outcome"
)

// nameHold gives an answer that holds its caller without a message one that names the handler, as the caller knows it:
// callers show the message to those who wait, and do not know which of several handlers holds. What is recorded,
// compared and cached is the answer as it was.
func nameHold(h *catalog.Hook, handler string, answer proto.Message) proto.Message {
	if h.Group != hook.Group || !outcome.Holds(answer) || strings.TrimSpace(catalog.MessageOf(answer)) != "" {
		return answer
	}
	text := "handler %q is at work"
	if h.Mergeable {
		text = "handler %q holds, and does not say why"
	}
	named := proto.Clone(answer) // which a comparison or a chain may have, too
	catalog.SetStatus(named, catalog.Success, fmt.Sprintf(text, handler))
	return named
}
