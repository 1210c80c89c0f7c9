// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !unix

package extension

import "net"

// socket finds nothing: what a server does with an idle connection shows in the next request.
type socket struct{}

func (*socket) open(net.Conn) {}

func (*socket) poll([]byte) (int, error) { return 0, errQuiet }
