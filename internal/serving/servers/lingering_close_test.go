// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"
)

// What a caller sends of its request after the gateway has stopped reading it is no other request, wherever reading has
// stopped: a proxy in front would take its answer for that to the next request, which may be of another caller.
func TestRestOfARequestIsNoRequest(t *testing.T) {
	const another = "GET /another HTTP/1.1\r\nHost: x\r\n\r\n"
	half := string(make([]byte, readByServer/2))
	for name, tc := range map[string]struct {
		header string
		sent   string // before the gateway stops reading
		read   bool   // whether the front reads the body, in vain
	}{
		"chunked, refused":    {"Transfer-Encoding: chunked\r\n", "fff\r\n{", false},
		"chunked, read":       {"Transfer-Encoding: chunked\r\n", "fff\r\n{", true},
		"not chunks, refused": {"Transfer-Encoding: chunked\r\n", "x\r\n", false},
		"not chunks, read":    {"Transfer-Encoding: chunked\r\n", "x\r\n", true},
		"declared, refused":   {fmt.Sprintf("Content-Length: %d\r\n", readByServer+1), half, false},
		"declared, read":      {fmt.Sprintf("Content-Length: %d\r\n", readByServer+1), half, true},
		"small, read":         {"Content-Length: 1000\r\n", "{", true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			paths, ended := make(chan string, 10), make(chan struct{}, 10)
			l := LingeringClose{Bytes: 1 << 20, Timeout: 100 * time.Millisecond}
			server := startServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				paths <- r.URL.Path
				l.Prepare(w, r)
				body := &SentBody{Reader: r.Body}
				if tc.read {
					_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(100 * time.Millisecond))
					_, _ = io.Copy(io.Discard, body)
				}
				w.Header().Set("Content-Length", "2")
				_, _ = io.WriteString(w, "no")
				l.Discard(w, r, body)
				ended <- struct{}{}
			}))
			config := server.tls.Clone()
			config.NextProtos = []string{"http/1.1"}
			c, err := tls.Dial("tcp", server.http, config)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			_ = c.SetDeadline(time.Now().Add(time.Minute))
			if _, err = io.WriteString(c, "POST /first HTTP/1.1\r\nHost: x\r\n"+tc.header+"\r\n"+tc.sent); err != nil {
				t.Fatal(err)
			}
			answers := bufio.NewReader(c)
			first, err := http.ReadResponse(answers, nil)
			if err != nil {
				t.Fatal(err)
			}
			if text, err := io.ReadAll(first.Body); err != nil || string(text) != "no" {
				t.Fatalf("got %q, %v", text, err)
			}
			_ = first.Body.Close()
			<-ended
			go func() { // until the connection ends, as net/http may read some of it for the rest of the body
				for every := time.NewTicker(10 * time.Millisecond); err == nil; <-every.C {
					_, err = io.WriteString(c, another)
				}
			}()
			if second, err := http.ReadResponse(answers, nil); err == nil {
				t.Errorf("the rest of the request was answered %s", second.Status)
				_ = second.Body.Close()
			}
			if got := <-paths; got != "/first" || len(paths) > 0 {
				t.Errorf("requests of %s and %d others", got, len(paths))
			}
		})
	}
}

// A request that may have had a Content-Length beside its Transfer-Encoding is the last one of its connection: whoever
// is in front may have gone by the one, and the gateway goes by the other.
func TestChunksAreLast(t *testing.T) {
	for name, tc := range map[string]struct {
		request string
		last    bool
	}{
		"length":            {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}", false},
		"length and chunks": {"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", true},
		"chunks and length": {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n2\r\n{}\r\n0\r\n\r\n", true},
		"chunks":            {"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n", true},
		"HTTP/1.0": {
			"POST / HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\nContent-Length: 2\r\n\r\n{}", true,
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := startServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				_, _ = io.Copy(w, r.Body)
			}))
			config := server.tls.Clone()
			config.NextProtos = []string{"http/1.1"}
			c, err := tls.Dial("tcp", server.http, config)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = c.Close() }()
			_ = c.SetDeadline(time.Now().Add(time.Minute))
			answers := bufio.NewReader(c)
			for i, want := range []bool{true, !tc.last} {
				_, _ = io.WriteString(c, tc.request)
				answer, err := http.ReadResponse(answers, nil)
				if (err == nil) != want {
					t.Fatalf("request %d: answered %t, want %t (%v)", i, err == nil, want, err)
				}
				if err != nil {
					return
				}
				if text, err := io.ReadAll(answer.Body); string(text) != "{}" || answer.Close != tc.last {
					t.Errorf("got %q, %v; the connection closes: %t", text, err, answer.Close)
				}
				_ = answer.Body.Close()
			}
		})
	}
}
