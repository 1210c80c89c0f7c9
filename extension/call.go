// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/registry"
)

// Call is one request to one handler. It belongs to one goroutine.
type Call struct {
	Hook    *catalog.Hook
	Handler *registry.Entry
	// Request is a message of Hook.Request. A transport only reads it, because handlers that are called at the same
	// time share what is in it.
	Request proto.Message
	// Body, if it is not nil, is the JSON of Request as the caller sent it. It is sent as it is.
	Body []byte

	// Sent and Received are the sizes of the bodies in bytes, as far as they got. The transport sets them.
	Sent     int64
	Received int64
	// Lost are the paths of what a conversion for this call could not express, in the request or in the answer.
	Lost []string
	// Ignored is the error that the handler's failure policy hid, if it did.
	Ignored error
}
