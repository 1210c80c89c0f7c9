// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/network/connect"
)

// ofSize returns an answer of n bytes.
func ofSize(n int) string {
	frame := `{"status":"Success","message":""}`
	return strings.Replace(frame, `""`, `"`+strings.Repeat("x", n-len(frame))+`"`, 1)
}

// An answer may have 20 MiB unless it is said otherwise; TestEveryAnswerIsCapped has what counts.
func TestAnswersAtTheDefaultLimit(t *testing.T) {
	a := newAuthority(t)
	for _, more := range []int{0, 1} {
		c := newCall(newServer(t, a, answer(ofSize(20<<20+more)), nil).cc)
		c.Handler.Handler.Timeout = 5 * time.Minute // a busy machine takes its time over 20 MiB
		m, err := call(t.Context(), newREST(t, Config{}), c)
		if more == 0 && err != nil {
			t.Errorf("as large as allowed: %v", err)
		} else if more > 0 {
			wantError(t, "a byte too many", m, err, hook.BadResponse, `handler "v.acme": call extension: answer is larger than 20971520 bytes`)
		}
	}
}

// Requests are measured in the bytes that their protocol sends.
func TestRequestsAtTheLimit(t *testing.T) {
	a := newAuthority(t)
	rest, grpc := newServer(t, a, answer(`{"status":"Success"}`), nil).cc, newAuthor(t, a, &author{}, nil)
	body, err := newREST(t, Config{}).config.Codec.Encode(newCall(rest).Request)
	if err != nil {
		t.Fatal(err)
	}
	size := body.Size()
	for _, more := range []int64{0, 1} {
		m, err := call(t.Context(), newREST(t, Config{BodyBytes: size - more}), newCall(rest))
		if more > 0 {
			wantError(t, "REST", m, err, hook.TooLarge, fmt.Sprintf(`handler "v.acme": call extension: request has more than %d bytes as JSON`, size-more))
		} else if err != nil {
			t.Errorf("REST, as large as allowed: %v", err)
		}
	}
	size = int64(proto.Size(catalog.WithHandler(newCall(grpc).Request, "v")))
	for _, more := range []int64{0, 1} {
		m, err := callGRPC(t.Context(), newGRPC(t, Config{BodyBytes: size - more}), newCall(grpc))
		if more > 0 {
			wantError(t, "gRPC", m, err, hook.TooLarge, fmt.Sprintf(`handler "v.acme": call extension: request has %d bytes, which is more than %d`, size, size-more))
		} else if err != nil {
			t.Errorf("gRPC, as large as allowed: %v", err)
		}
	}
}

func TestGRPCAnswersAtTheLimit(t *testing.T) {
	a := newAuthority(t)
	m := fine()
	m.Message = strings.Repeat("x", 1000)
	size := int64(proto.Size(m))
	cc := newAuthor(t, a, says(m, nil), nil)
	if _, err := callGRPC(t.Context(), newGRPC(t, Config{BodyBytes: size}), newCall(cc)); err != nil {
		t.Errorf("as large as allowed: %v", err)
	}
	got, err := callGRPC(t.Context(), newGRPC(t, Config{BodyBytes: size - 1}), newCall(cc))
	wantError(t, "a byte too many", got, err, hook.BadResponse,
		fmt.Sprintf(`handler "v.acme": call extension: answer is larger than %d bytes`, size-1))
}

// The log gets the first 512 bytes of the body of an error, and a mark if there are more.
func TestErrorBodiesAtTheLimit(t *testing.T) {
	a := newAuthority(t)
	for _, n := range []int{0, 1, 511, 512, 513} {
		text := strings.Repeat("z", n)
		s := newServer(t, a, func(w http.ResponseWriter, req *http.Request) {
			w.WriteHeader(http.StatusInternalServerError)
			answer(text)(w, req)
		}, nil)
		_, err := call(t.Context(), newREST(t, Config{}), newCall(s.cc))
		var e *hook.Error
		if !errors.As(err, &e) {
			t.Fatal(err)
		}
		switch {
		case n == 0:
			if e.Cause != nil {
				t.Errorf("no body: the cause is %v", e.Cause)
			}
		case n <= 512:
			if want := fmt.Sprintf("answer with status code 500: %q", text); e.Cause.Error() != want {
				t.Errorf("%d bytes: got %s", n, e.Cause)
			}
		default:
			if want := fmt.Sprintf("answer with status code 500: %q…", text[:512]); e.Cause.Error() != want {
				t.Errorf("%d bytes: got %s", n, e.Cause)
			}
		}
	}
}

// The header of an answer may have 64 KiB, with its status line and the empty line at its end.
func TestHeadersAtTheLimit(t *testing.T) {
	a := newAuthority(t)
	for _, more := range []int{0, 1} {
		cc := rawServer(t, a, func(c net.Conn) {
			if readRequest(c) != nil {
				return
			}
			begin, end := "HTTP/1.1 204 No Content\r\n", "\r\n"
			var header strings.Builder
			header.WriteString(begin)
			for header.Len() < connect.MaxHeaderBytes-10_000 {
				header.WriteString("X: " + strings.Repeat("x", 1000) + "\r\n")
			}
			header.WriteString("Y: " + strings.Repeat("y", connect.MaxHeaderBytes+more-header.Len()-len("Y: \r\n")-len(end)) + "\r\n" + end)
			_, _ = io.WriteString(c, header.String())
		})
		m, err := call(t.Context(), newREST(t, Config{}), newCall(cc))
		want := "answered 204 No Content"
		if more > 0 {
			want = "header of the answer is larger than 65536 bytes"
		}
		wantError(t, fmt.Sprintf("%d bytes more than allowed", more), m, err, hook.BadResponse, `handler "v.acme": call extension: `+want)
	}
}

// The header of an answer may have 256 lines, with its status line. Those of an interim one before it count, but for what
// comes in one piece with the end of that.
func TestHeaderLinesAtTheLimit(t *testing.T) {
	a := newAuthority(t)
	for name, tc := range map[string]struct {
		before, line string
		lines        int // of before, the status line, and the length
	}{
		"short lines": {"", "a:\r\n", 2},
		"interim":     {"HTTP/1.1 103 Early Hints\r\n" + strings.Repeat("Link: x\r\n", 100), "A: " + strings.Repeat("x", 200) + "\r\n", 103},
	} {
		for _, more := range []int{0, 1} {
			cc := rawServer(t, a, func(c net.Conn) {
				if readRequest(c) != nil {
					return
				}
				if tc.before != "" {
					_, _ = io.WriteString(c, tc.before+"\r\n") // a record of its own
				}
				_, _ = fmt.Fprintf(c, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n%s\r\n%s%s", 2000+len(success),
					strings.Repeat(tc.line, connect.MaxHeaderLines-tc.lines+more), strings.Repeat("\n", 2000), success)
			})
			m, err := call(t.Context(), newREST(t, Config{}), newCall(cc))
			if more > 0 {
				wantError(t, name+": a line more than allowed", m, err, hook.BadResponse,
					`handler "v.acme": call extension: header of the answer has more than 256 lines`)
			} else if err != nil {
				t.Errorf("%s: as many lines as allowed: %v", name, err)
			}
		}
	}
}

// Lines of a header are counted to its end, however it arrives, and those of a body are not.
func TestCountOfHeaderLines(t *testing.T) {
	for text, want := range map[string]int{
		"HTTP/1.1 200 OK\r\nA: b\r\n\r\n{\n\n\n}": 2,
		"HTTP/1.1 200 OK\nA: b\n c\n\nd\ne\n":     3,
		"HTTP/1.1 200 OK\r\nA: b\r\nC":            2,
		"HTTP/1.1 200 OK\r":                       0,
	} {
		header, _, _ := strings.Cut(strings.Replace(text, "\r\n\r\n", "\r\n\r\x00", 1), "\x00")
		header, _, _ = strings.Cut(header, "\n\n")
		for at := range len(header) {
			var r answerReader
			r.begin()
			r.count([]byte(text[:at]))
			r.count([]byte(text[at:]))
			if got := connect.MaxHeaderLines - r.lines; got != want {
				t.Errorf("%q, cut at %d: %d lines, want %d", text, at, got, want)
			}
		}
	}
}

// Timeouts of 0 to 30 s are valid, and 0 means the default.
func TestDiscoverTimeoutsAtTheLimits(t *testing.T) {
	if timeout, ok := timeoutOf(&hooksv1alpha1.ExtensionHandler{}); !ok || timeout != 10*time.Second {
		t.Errorf("none: got %s, %t", timeout, ok)
	}
	for seconds, want := range map[int32]string{-1: "", 0: "10s", 1: "1s", 30: "30s", 31: ""} {
		timeout, ok := timeoutOf(&hooksv1alpha1.ExtensionHandler{TimeoutSeconds: &seconds})
		if ok != (want != "") || ok && timeout.String() != want {
			t.Errorf("%d: got %s, %t; want %q", seconds, timeout, ok, want)
		}
	}
}

// Eight faults of an answer to discovery are listed, and more are counted.
func TestFaultsAtTheLimit(t *testing.T) {
	for n, want := range map[int]string{1: "f", 8: "f; f; f; f; f; f; f; f", 9: "f; f; f; f; f; f; f; f; and 1 more"} {
		var all faults
		for range n {
			all.addf("%s", "f")
		}
		if got := all.err(); got == nil || got.Error() != want {
			t.Errorf("%d: got %v, want %s", n, got, want)
		}
	}
	if err := faults(nil).err(); err != nil {
		t.Errorf("none: got %v", err)
	}
}

// Text of an extension is cut at 256 bytes, never within a character.
func TestCut(t *testing.T) {
	for name, tc := range map[string]struct{ in, want string }{
		"at the limit":     {strings.Repeat("x", 256), strings.Repeat("x", 256)},
		"one more":         {strings.Repeat("x", 257), strings.Repeat("x", 253) + "…"},
		"within character": {strings.Repeat("x", 252) + "éxxx", strings.Repeat("x", 252) + "…"},
	} {
		if got := cut(tc.in); got != tc.want {
			t.Errorf("%s: got %d bytes, want %d", name, len(got), len(tc.want))
		}
	}
}

// Services that are no hooks' are listed up to five.
func TestListedServices(t *testing.T) {
	for n, want := range map[int]string{0: "no services at all", 1: "s0", 5: "s0, s1, s2, s3, s4", 6: "s0, s1, s2, s3, s4 and 1 more"} {
		var names []string
		for i := range n {
			names = append(names, fmt.Sprintf("s%d", i))
		}
		if got := listed(names); got != want {
			t.Errorf("%d: got %s, want %s", n, got, want)
		}
	}
}

// A body of 16 KiB is copied, so that the message may change while net/http still reads; a larger one is guarded.
func TestSmallBodies(t *testing.T) {
	for n, want := range map[int]bool{smallBody: true, smallBody + 1: false} {
		if got := newRESTBody(codec.BodyOf(make([]byte, n))).copy != nil; got != want {
			t.Errorf("%d bytes: copied is %t, want %t", n, got, want)
		}
	}
}
