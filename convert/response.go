// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import "google.golang.org/protobuf/proto"

// Response brings an answer to the converted request back to what its caller reads.
func (c Converted) Response(resp proto.Message) (proto.Message, []Loss, error) {
	return resp, nil, nil
}
