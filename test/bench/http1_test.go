// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"strings"
	"testing"
)

func TestReadAnswer(t *testing.T) {
	for name, tc := range map[string]struct{ reason, answer, body, err string }{
		"ContentLength": {
			reason: "the next answer stays unread", answer: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1", body: "hello",
		},
		"Chunked": {
			reason: "chunks are joined", body: "0123456789abc",
			answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\na\r\n0123456789\r\n3\r\nabc\r\n0\r\n\r\nHTTP/1.1",
		},
		"CutOff": {reason: "half a body is none", answer: "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel", err: "unexpected EOF"},
		"NoLength": {
			reason: "a body that ends with its connection is refused", answer: "HTTP/1.1 200 OK\r\n\r\nhello", err: "neither",
		},
		"HugeLength": {
			reason: "no peer's answer is that long", err: "too large",
			answer: "HTTP/1.1 200 OK\r\nContent-Length: 2000000\r\n\r\n" + strings.Repeat("x", 2000000),
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := bufio.NewReader(strings.NewReader(tc.answer))
			status, body, err := readAnswer(r)
			if tc.err != "" {
				if err == nil || !strings.Contains(err.Error(), tc.err) {
					t.Errorf("%s: error %v, want one with %q", tc.reason, err, tc.err)
				}
				return
			}
			if rest, _ := r.Peek(8); err != nil || status != 200 || string(body) != tc.body || string(rest) != "HTTP/1.1" {
				t.Errorf("%s: got %d %q, %v, and %q is left", tc.reason, status, body, err, rest)
			}
		})
	}
}
