// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package shared has what a gateway shares with the rest of its process. Its types are internal, so that users of the
// module, who serve hooks by package command, leave it out.
package shared

import (
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/recording"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/convert"
	"github.com/hookgate/hookgate/internal/network/budget"
	"github.com/hookgate/hookgate/internal/seeing/drift"
	"github.com/hookgate/hookgate/internal/seeing/observe"
)

// Parts are what calls pass. They are safe for concurrent use. Codec and Transport are required.
type Parts struct {
	// Codec encodes and decodes the messages of the gateway's catalog.
	Codec *codec.Codec
	// Transport calls extensions.
	Transport extension.Caller
	// Objects converts the Cluster API objects in requests. Nil means that handlers get them as they were sent.
	Objects *convert.Objects
	// Observer observes every call, and every call to a handler. Nil means that calls are not observed.
	Observer *observe.Observer
	// Memory bounds the memory of calls. Nil bounds nothing.
	Memory *budget.Budget
	// Recorder records every call that Transport makes for a caller. Nil records none.
	Recorder *recording.Recorder
	// Drift looks for answers that have changed although their requests have not. Nil looks for none.
	Drift *drift.Watch
}
