// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"io"
	"strings"
	"testing"
)

func TestReadAnswer(t *testing.T) {
	for name, tc := range map[string]struct {
		reason     string
		answer     string
		wantStatus int
		wantBody   string
		wantRest   string
		wantErr    string
	}{
		"ContentLength": {
			reason:     "the length ends the body, and the next answer stays unread",
			answer:     "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhelloHTTP/1.1",
			wantStatus: 200, wantBody: "hello", wantRest: "HTTP/1.1",
		},
		"EmptyBody": {
			reason:     "a length of 0 is a length",
			answer:     "HTTP/1.1 503 Service Unavailable\r\ncontent-length:0\r\n\r\n",
			wantStatus: 503,
		},
		"Chunked": {
			reason: "chunks are joined, sizes are hexadecimal, extensions and trailers are skipped",
			answer: "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" +
				"a\r\n0123456789\r\n3;x=y\r\nabc\r\n0\r\nTrailer: 1\r\n\r\nrest",
			wantStatus: 200, wantBody: "0123456789abc", wantRest: "rest",
		},
		"Continue": {
			reason:     "an interim answer is not the answer",
			answer:     "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
			wantStatus: 200, wantBody: "ok",
		},
		"NoReason": {
			reason:     "the reason may be absent",
			answer:     "HTTP/1.1 404\r\nContent-Length: 0\r\n\r\n",
			wantStatus: 404,
		},
		"ClosedAtOnce": {
			reason:  "no answer at all",
			answer:  "",
			wantErr: "EOF",
		},
		"HeadCutOff": {
			reason:  "half a head is no answer",
			answer:  "HTTP/1.1 200 OK\r\nContent-Le",
			wantErr: "unexpected EOF",
		},
		"BodyCutOff": {
			reason:  "half a body is no answer",
			answer:  "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel",
			wantErr: "unexpected EOF",
		},
		"NotHTTP": {
			reason:  "another protocol is not taken for an answer",
			answer:  "SSH-2.0-x 200\r\n\r\n",
			wantErr: "status line",
		},
		"BadStatus": {
			reason:  "the status is a number",
			answer:  "HTTP/1.1 OK\r\n\r\n",
			wantErr: "status line",
		},
		"BadLength": {
			reason:  "a length is not negative",
			answer:  "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
			wantErr: "Content-Length",
		},
		"NoLength": {
			reason:  "a body that ends with its connection is refused",
			answer:  "HTTP/1.1 200 OK\r\n\r\nhello",
			wantErr: "neither",
		},
		"HugeLength": {
			reason:  "no peer's answer is that long",
			answer:  "HTTP/1.1 200 OK\r\nContent-Length: 99999999\r\n\r\n",
			wantErr: "more than",
		},
		"BadChunkSize": {
			reason:  "a size is hexadecimal",
			answer:  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
			wantErr: "chunk size",
		},
		"BadChunkEnd": {
			reason:  "a chunk ends where it said",
			answer:  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
			wantErr: "behind a chunk",
		},
		"ChunksCutOff": {
			reason:  "the last chunk must come",
			answer:  "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n",
			wantErr: "EOF",
		},
		"HeaderNoColon": {
			reason:  "a header has a name",
			answer:  "HTTP/1.1 200 OK\r\nnonsense\r\n\r\n",
			wantErr: "header line",
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := bufio.NewReader(strings.NewReader(tc.answer))
			status, body, err := readAnswer(r, nil)
			if tc.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tc.wantErr) {
					t.Fatalf("%s: error %v, want one with %q", tc.reason, err, tc.wantErr)
				}
				return
			}
			if err != nil {
				t.Fatalf("%s: %v", tc.reason, err)
			}
			if status != tc.wantStatus || string(body) != tc.wantBody {
				t.Errorf("%s: got %d %q, want %d %q", tc.reason, status, body, tc.wantStatus, tc.wantBody)
			}
			if rest, err := io.ReadAll(r); err != nil || string(rest) != tc.wantRest {
				t.Errorf("%s: left %q, %v unread, want %q", tc.reason, rest, err, tc.wantRest)
			}
		})
	}
}
