// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/hookgate/hookgate/test/samples"

// payload is one size of request, and the handler that it goes to.
type payload struct {
	size    string
	hook    string
	handler string
	body    []byte
}

func payloads() []payload {
	return []payload{
		{size: "S", hook: hookS, handler: handlerS, body: samples.S()},
		{size: "M", hook: hookML, handler: handlerML, body: samples.M()},
		{size: "L", hook: hookML, handler: handlerML, body: samples.L()},
	}
}
