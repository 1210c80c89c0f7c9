// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/serving/servers"
)

// dialHTTP1 returns a connection of HTTP/1.1 to a server, until the test ends.
func dialHTTP1(t *testing.T, server *httptest.Server) *tls.Conn {
	t.Helper()
	config := server.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	config.NextProtos, config.ServerName = []string{"http/1.1"}, "example.com"
	c, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	_ = c.SetDeadline(time.Now().Add(5 * time.Minute))
	return c.(*tls.Conn)
}

// readToTheEnd lets the REST front read the rest of requests for longer than a busy machine takes, and than a caller of
// a test waits.
func (f *fixture) readToTheEnd() { f.front.(*REST).lingeringClose.Timeout = time.Hour }

// chunked returns b in the chunked transfer encoding.
func chunked(b []byte) []byte {
	return append(fmt.Appendf(nil, "%x\r\n", len(b)), append(b, "\r\n0\r\n\r\n"...)...)
}

// An answer that comes before the end of its request reaches a caller that reads nothing until all is sent.
func TestAnswersReachCallersThatAreStillSending(t *testing.T) {
	f := newFixture(t, nil)
	f.readToTheEnd()
	f.registry.SetReady()
	body := bytes.Repeat([]byte(" "), 40<<20)
	length := fmt.Sprintf("Content-Length: %d\r\n", len(body))
	for name, tc := range map[string]struct {
		request string
		body    []byte
		code    int
		kind    hook.Kind
	}{
		"TooLarge":        {"POST " + createPath + " HTTP/1.1\r\n" + length, body, 413, hook.TooLarge},
		"TooLargeChunked": {"POST " + createPath + " HTTP/1.1\r\nTransfer-Encoding: chunked\r\n", chunked(bytes.Clone(body)), 413, hook.TooLarge},
		"NoHook":          {"POST /x HTTP/1.1\r\n" + length, body, 404, hook.UnknownHook},
		"NotPOST":         {"PUT " + createPath + " HTTP/1.1\r\n" + length, body, 405, hook.InvalidRequest},
		"Timeout":         {"POST " + createPath + "?timeout=soon HTTP/1.1\r\n" + length, body, 400, hook.InvalidRequest},
		"Encoding":        {"POST " + createPath + " HTTP/1.1\r\nContent-Encoding: br\r\n" + length, body, 413, hook.TooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			c := dialHTTP1(t, f.rest)
			if _, err := io.WriteString(c, tc.request+"Host: x\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			if n, err := c.Write(tc.body); err != nil {
				t.Fatalf("the gateway hung up after %d bytes: %v", n, err)
			}
			resp, err := http.ReadResponse(bufio.NewReader(c), nil)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if kind := resp.Header.Get(ErrorKindHeader); resp.StatusCode != tc.code || kind != tc.kind.String() {
				t.Errorf("got %s of kind %s", resp.Status, kind)
			}
			if answer, err := io.ReadAll(resp.Body); err != nil || !strings.Contains(string(answer), `"status":"Failure"`) {
				t.Errorf("got %q, %v", answer, err)
			}
		})
	}
}

// Over HTTP/2, the answer ends soon for a caller that stops sending when it sees it, and the connection stays.
func TestAnswersReachCallersOverHTTP2(t *testing.T) {
	f := newFixture(t, nil)
	f.readToTheEnd()
	f.registry.SetReady()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	for _, size := range []int{100 << 10, 40 << 20} {
		path := map[bool]string{true: createPath, false: "/x"}[size > BodyBytes]
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, f.rest.URL+path, spaces(size))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := f.rest.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_, err = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.ProtoMajor != 2 || resp.StatusCode < 400 || resp.Close {
			t.Errorf("%d bytes: got %s %s, close %t, %v", size, resp.Proto, resp.Status, resp.Close, err)
		}
	}
}

// What is read after an answer is bounded, in bytes and in time.
func TestLingeringCloseIsBounded(t *testing.T) {
	for name, l := range map[string]servers.LingeringClose{
		"Bytes": {Bytes: 1 << 20, Timeout: time.Hour}, "Time": {Bytes: 1 << 40, Timeout: 50 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan struct{})
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(ended)
				l.Prepare(w, r)
				w.WriteHeader(http.StatusTeapot)
				l.Discard(w, r, nil)
			}))
			server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)
			server.StartTLS()
			defer server.Close()
			c := dialHTTP1(t, server)
			if _, err := io.WriteString(c, "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1099511627776\r\n\r\n"); err != nil {
				t.Fatal(err)
			}
			for chunk := make([]byte, 64<<10); name == "Bytes"; {
				if _, err := c.Write(chunk); err != nil {
					break // it ends, because otherwise the gateway would read without end
				}
			}
			<-ended
		})
	}
}

// A caller that waits for 100 Continue gets the answer instead, and nothing is waited for.
func TestLingeringCloseDoesNotContinueExpectations(t *testing.T) {
	f := newFixture(t, nil)
	f.readToTheEnd()
	f.registry.SetReady()
	c := dialHTTP1(t, f.rest)
	if _, err := io.WriteString(c, "POST /x HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 40000000\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	reader := bufio.NewReader(c)
	resp, err := http.ReadResponse(reader, nil)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(io.Discard, resp.Body)
	_ = resp.Body.Close()
	if err != nil || resp.StatusCode != http.StatusNotFound || !resp.Close {
		t.Errorf("got %s, close %t, %v", resp.Status, resp.Close, err)
	}
	if _, err := reader.ReadByte(); !errors.Is(err, io.EOF) {
		t.Errorf("after the answer: %v, want the connection closed", err)
	}
}

// Several headers Content-Encoding are one list, of which no part is ignored.
func TestContentEncodingsAreAList(t *testing.T) {
	f := newFixture(t, nil)
	f.registry.SetReady()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.rest.URL+createPath, strings.NewReader(createBody))
	if err != nil {
		t.Fatal(err)
	}
	req.Header["Content-Encoding"] = []string{"identity", "gzip"}
	resp, err := f.rest.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if want := `Content-Encoding is not supported: \"identity, gzip\": send gzip, or none`; resp.StatusCode != http.StatusBadRequest || !strings.Contains(string(answer), want) {
		t.Errorf("got %s: %s", resp.Status, answer)
	}
}

// A caller that sends too slowly has not left: the gateway says what it did wrong.
func TestReadTimeoutIsTheCallersError(t *testing.T) {
	f := newFixture(t, nil)
	f.registry.SetReady()
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		// As ReadTimeout does, but not before the request is here.
		if err := http.NewResponseController(w).SetReadDeadline(time.Now()); err != nil {
			t.Error(err)
		}
		f.front.ServeHTTP(w, r)
	}))
	server.StartTLS()
	defer server.Close()
	c := dialHTTP1(t, server)
	if _, err := io.WriteString(c, "POST "+createPath+" HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{"); err != nil {
		t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode != http.StatusBadRequest || !strings.Contains(string(answer), "request body was not received within 1m0s") {
		t.Errorf("got %s: %s", resp.Status, answer)
	}
}
