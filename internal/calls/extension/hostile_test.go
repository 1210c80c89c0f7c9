// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"fmt"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// What a server may answer that is no answer, or more than one: it neither becomes the answer of another call, nor keeps
// the connection, nor takes longer than the call.
func TestHostileAnswers(t *testing.T) {
	const ok = "HTTP/1.1 200 OK\r\n"
	n := len(success)
	length := fmt.Sprintf("Content-Length: %d\r\n", n)
	chunked := func(after string) string {
		return ok + "Transfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n0\r\n%s\r\n", n, success, after)
	}
	a := newAuthority(t)
	for name, tc := range map[string]struct {
		answer string
		again  string // written without end after answer
		want   string // of the error
		conns  int32  // for two calls
	}{
		"two lengths":            {answer: ok + length + "Content-Length: 1\r\n\r\n" + success, want: "answer has contradictory Content-Lengths", conns: 2},
		"equal lengths":          {answer: ok + length + length + "\r\n" + success, conns: 1},
		"length and chunks":      {answer: ok + length + "Transfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", n, success), conns: 2},
		"short length of chunks": {answer: ok + "Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", n, success), conns: 2},
		"less than the length":   {answer: ok + fmt.Sprintf("Content-Length: %d\r\n\r\n", n-1) + success, want: "answer", conns: 2},
		"negative length":        {answer: ok + "Content-Length: -1\r\n\r\n" + success, want: "not HTTP", conns: 2},
		"bad header alone":       {answer: ok + "Content-Length: -1\r\n\r\n", want: "not HTTP", conns: 2},
		"length of many digits":  {answer: ok + "Content-Length: " + strings.Repeat("9", 30) + "\r\n\r\n" + success, want: "not HTTP", conns: 2},
		"largest length":         {answer: ok + "Content-Length: 9223372036854775807\r\n\r\n" + success, want: "larger than", conns: 2},
		"two codings":            {answer: ok + "Transfer-Encoding: chunked\r\nTransfer-Encoding: gzip\r\n\r\n0\r\n\r\n", want: "not HTTP", conns: 2},
		"unknown coding":         {answer: ok + "Transfer-Encoding: gzip\r\n\r\n0\r\n\r\n", want: "not HTTP", conns: 2},
		"trailers":               {answer: chunked("A: b\r\n"), conns: 1},
		"flood of trailers":      {answer: ok + "Transfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n0\r\n", n, success), again: "A: b\r\n", want: "answer ended early", conns: 2},
		"size of a chunk":        {answer: ok + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", want: "answer ended early", conns: 2},
		"large chunk":            {answer: ok + "Transfer-Encoding: chunked\r\n\r\n7fffffffffffffff\r\n", again: strings.Repeat(" ", 1<<16), want: "larger than", conns: 2},
		"extension of a chunk":   {answer: ok + "Transfer-Encoding: chunked\r\n\r\n1;", again: strings.Repeat("x", 1<<10), want: "answer ended early", conns: 2},
		"length in capitals":     {answer: ok + "Transfer-Encoding: chunked\r\nCONTENT-LENGTH: 1\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", n, success), conns: 2},
		"nearly a length":        {answer: ok + "Content-Lengths: 1\r\nTransfer-Encoding: chunked\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", n, success), conns: 1},
		"chunks of one byte":     {answer: ok + "Transfer-Encoding: chunked\r\n\r\n", again: "1\r\n \r\n", want: "answer comes in chunks that are too small", conns: 2},
		"small in such chunks":   {answer: ok + "Transfer-Encoding: chunked\r\n\r\n" + inBytes(success), conns: 1},
		"small chunks":           {answer: ok + "Transfer-Encoding: chunked\r\n\r\n", again: "1;xxxxxxxxxxxxxxxxxxxxxxxxxx\r\n \r\n", want: "answer ended early", conns: 2},
		"flood of interim ones":  {answer: "", again: "HTTP/1.1 100 Continue\r\n\r\n", want: "header of the answer is larger", conns: 2},
		"flood of header":        {answer: ok, again: "A: b\r\n", want: "header of the answer has more", conns: 2},
		"one line":               {answer: ok + "A: ", again: strings.Repeat("x", 1<<10), want: "header of the answer is larger", conns: 2},
		"first line":             {answer: "HTTP/1.1 200 ", again: strings.Repeat("x", 1<<10), want: "header of the answer is larger", conns: 2},
		"no status":              {answer: "HTTP/1.1 099 X\r\n\r\n" + ok + length + "\r\n" + success, conns: 1},
		"another protocol":       {answer: "HTTP/0.9 200 OK\r\n" + length + "\r\n" + success, conns: 2},
		"no version":             {answer: "ICY 200 OK\r\n" + length + "\r\n" + success, want: "not HTTP", conns: 2},
		"a folded line":          {answer: ok + length + "A: b\r\n c\r\n\r\n" + success, conns: 1},
		"a line that is none":    {answer: ok + length + "A b\r\n\r\n" + success, want: "not HTTP", conns: 2},
		"zero byte in a line":    {answer: ok + length + "A: \x00\r\n\r\n" + success, want: "not HTTP", conns: 2},
		"half of an error":       {answer: "HTTP/1.1 500 Broken\r\nContent-Length: 1000\r\n\r\n" + strings.Repeat("x", maxErrorBody+1), want: "answered 500", conns: 2},
		"no content":             {answer: "HTTP/1.1 204 No Content\r\n" + length + "\r\n" + success, want: "answered 204", conns: 2},
		"not modified":           {answer: "HTTP/1.1 304 Not Modified\r\n" + length + "\r\n" + success, want: "answered 304", conns: 2},
		"more than the length":   {answer: ok + length + "\r\n" + success + ok + length + "\r\n" + success, conns: 2},
		"until the end":          {answer: ok + "Connection: close\r\n\r\n" + success, again: " ", want: "larger than", conns: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var conns atomic.Int32
			cc := rawServer(t, a, func(c net.Conn) {
				conns.Add(1)
				again := []byte(strings.Repeat(tc.again, 1+(16<<10)/max(len(tc.again), 1)))
				for readRequest(c) == nil {
					if _, err := io.WriteString(c, tc.answer); err != nil {
						return
					}
					for tc.again != "" {
						if _, err := c.Write(again); err != nil {
							return
						}
					}
				}
			})
			r := newREST(t, Config{})
			for range 2 {
				one := newCall(cc)
				one.Handler.Handler.Timeout = time.Minute
				_, err := call(t.Context(), r, one)
				if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
					t.Errorf("got %v, want %q", err, tc.want)
				}
			}
			if got := conns.Load(); got != tc.conns {
				t.Errorf("%d connections for two calls, want %d", got, tc.conns)
			}
		})
	}
}

// inBytes returns a text in chunks of one byte.
func inBytes(text string) string {
	var b strings.Builder
	for _, c := range []byte(text) {
		fmt.Fprintf(&b, "1\r\n%c\r\n", c)
	}
	return b.String() + "0\r\n\r\n"
}
