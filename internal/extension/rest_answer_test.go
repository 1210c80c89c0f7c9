// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/codec"
)

func zip(t testing.TB, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestAnswersThatAreNone(t *testing.T) {
	cases := map[string]struct {
		reason string
		serve  http.HandlerFunc
		want   string
		parts  []string // what the message has besides; its exact text is the codec's
	}{
		"500": {
			reason: "every status code but 200 is an error",
			serve:  func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "secret", http.StatusInternalServerError) },
			want:   "answered 500 Internal Server Error",
		},
		"204": {
			reason: "success of another kind is no answer",
			serve:  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNoContent) },
			want:   "answered 204 No Content",
		},
		"unknown code": {
			reason: "a code without a name",
			serve:  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(599) },
			want:   "answered 599",
		},
		"404": {
			reason: "the path helps to find the fault",
			serve:  http.NotFound,
			want:   "answered 404 Not Found at /hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclustercreate/v",
		},
		"redirect": {
			reason: "a redirect could lead anywhere",
			serve: func(w http.ResponseWriter, req *http.Request) {
				http.Redirect(w, req, "https://169.254.169.254/", http.StatusTemporaryRedirect)
			},
			want: "answered 307 Temporary Redirect: redirects are not followed",
		},
		"HTML": {
			reason: "a page of a proxy, say",
			serve: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", "text/html; charset=utf-8")
				_, _ = io.WriteString(w, "\n<html>")
			},
			want: "answer is not JSON (Content-Type text/html)",
		},
		"text": {
			reason: "Go's servers find the type by themselves",
			serve:  answer("not found"),
			want:   "answer is not JSON (Content-Type text/plain)",
		},
		"empty": {
			reason: "nothing is not JSON",
			serve:  func(http.ResponseWriter, *http.Request) {},
			want:   "answer is empty",
		},
		"half of the JSON": {
			reason: "the body is complete, the JSON is not",
			serve:  answer(success[:60]),
			want:   "answer: ",
			parts:  []string{"ends early at byte 60"},
		},
		"array": {
			reason: "valid JSON of another shape",
			serve:  answer("[]"),
			want:   "answer: ",
			parts:  []string{"object", "array"},
		},
		"wrong kind": {
			reason: "both kinds are named",
			serve:  answer(strings.Replace(success, "BeforeClusterCreateResponse", "BeforeClusterDeleteResponse", 1)),
			want:   "answer: kind: ",
			parts:  []string{"BeforeClusterCreateResponse", "BeforeClusterDeleteResponse"},
		},
		"wrong apiVersion": {
			reason: "and both versions",
			serve:  answer(strings.Replace(success, "v1alpha1", "v1", 1)),
			want:   "answer: apiVersion: ",
			parts:  []string{"hooks.runtime.cluster.x-k8s.io/v1alpha1", "hooks.runtime.cluster.x-k8s.io/v1"},
		},
		"empty status": {
			reason: "an answer must say which",
			serve:  answer(`{"status":"","retryAfterSeconds":5}`),
			want:   `answer: status: want "Success" or "Failure", got ""`,
		},
		"no status": {
			reason: "an answer must say which",
			serve:  answer(`{"message":"fine"}`),
			want:   `answer: status: want "Success" or "Failure", got ""`,
		},
		"unknown status": {
			reason: "there are two",
			serve:  answer(`{"status":"OK"}`),
			want:   `answer: status: want "Success" or "Failure", got "OK"`,
		},
		"negative": {
			reason: "nobody can wait so long",
			serve:  answer(`{"status":"Success","retryAfterSeconds":-60}`),
			want:   "answer: retryAfterSeconds: -60 is negative",
		},
		"brotli": {
			reason: "it was not requested",
			serve: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", "br")
				_, _ = io.WriteString(w, success)
			},
			want: `answer is encoded with Content-Encoding "br", which was not asked for`,
		},
		"gzip twice": {
			reason: "a bomb in a bomb",
			serve: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", "gzip, gzip")
				_, _ = w.Write(zip(t, string(zip(t, success))))
			},
			want: `answer is encoded with Content-Encoding "gzip, gzip", which was not asked for`,
		},
		"no gzip": {
			reason: "the header lies",
			serve: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", "gzip")
				_, _ = io.WriteString(w, success)
			},
			want: "answer is not valid gzip",
		},
		"wrong gzip": {
			reason: "the checksum is wrong",
			serve: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", "gzip")
				b := zip(t, success)
				b[len(b)-5]++
				_, _ = w.Write(b)
			},
			want: "answer is not valid gzip",
		},
		"half a gzip": {
			reason: "the compressed body ends early",
			serve: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", "gzip")
				_, _ = w.Write(zip(t, success)[:40])
			},
			want: "answer ended early",
		},
		"half a body": {
			reason: "less than Content-Length",
			serve: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "500")
				_, _ = io.WriteString(w, success)
			},
			want: "answer ended early",
		},
		"half a large body": {
			reason: "less than a Content-Length that is not trusted",
			serve: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "9000000")
				_, _ = io.WriteString(w, success)
			},
			want: "answer ended early",
		},
		"broken": {
			reason: "the connection breaks in a body of unknown length",
			serve: func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, success)
				w.(http.Flusher).Flush()
				panic(http.ErrAbortHandler)
			},
			want: "answer ended early",
		},
	}
	a := newAuthority(t)
	for name, tc := range cases {
		for _, h2 := range []bool{false, true} {
			t.Run(name+map[bool]string{true: " http2"}[h2], func(t *testing.T) {
				s := newServer(t, a, func(w http.ResponseWriter, req *http.Request) {
					_, _ = io.Copy(io.Discard, req.Body)
					tc.serve(w, req)
				}, func(s *httptest.Server) { s.EnableHTTP2 = true })
				m, err := call(t.Context(), newREST(t, Config{PreferHTTP2: h2}), newCall(s.cc))
				want := `handler "v.acme": call extension: ` + tc.want
				if len(tc.parts) > 0 && err != nil && strings.HasPrefix(err.Error(), want) {
					want = err.Error()
				}
				wantError(t, tc.reason, m, err, hook.BadResponse, want)
				for _, part := range tc.parts {
					if !strings.Contains(want, part) {
						t.Errorf("%s: %q is not in %q", tc.reason, part, want)
					}
				}
			})
		}
	}
}

// Nothing of an answer that cannot be decoded reaches the next one: not its retryAfterSeconds above all.
func TestNothingOfABadAnswerIsKept(t *testing.T) {
	texts := []string{`{"retryAfterSeconds":60,"status":"Success","message":5}`, success}
	s := newServer(t, newAuthority(t), func(w http.ResponseWriter, req *http.Request) {
		answer(texts[0])(w, req)
		texts = texts[1:]
	}, nil)
	r := newREST(t, Config{})
	c := newCall(s.cc)
	if result, err := r.Call(t.Context(), c); result.Response != nil || hook.KindOf(err) != hook.BadResponse {
		t.Fatalf("got %v, %v; want no answer and a BadResponse", result.Response, err)
	}
	if m := mustCall(t, r, s.cc); m.GetRetryAfterSeconds() != 7 {
		t.Errorf("the next answer has retryAfterSeconds %d, want 7", m.GetRetryAfterSeconds())
	}
}

func TestEveryAnswerIsCapped(t *testing.T) {
	const limit = 100_000
	large := `{"status":"Success","message":"` + strings.Repeat("x", limit) + `"}`
	nothing, bomb := zip(t, ""), zip(t, strings.Repeat(" ", 10<<20)+success)
	exact := func(n int) string {
		frame := `{"status":"Success","message":""}`
		return strings.Replace(frame, `""`, `"`+strings.Repeat("x", n-len(frame))+`"`, 1)
	}
	cases := map[string]struct {
		reason   string
		serve    http.HandlerFunc
		want     string // empty if the answer is taken
		received int64  // at most
	}{
		"length": {
			reason: "the header says that it is too large, and nothing is read",
			serve: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", strconv.Itoa(len(large)))
				_, _ = io.WriteString(w, large)
			},
			want: "answer is larger than 100000 bytes",
		},
		"chunked": {
			reason: "the header does not say",
			serve: func(w http.ResponseWriter, _ *http.Request) {
				for range 1000 {
					if _, err := io.WriteString(w, large); err != nil {
						return
					}
				}
			},
			want:     "answer is larger than 100000 bytes",
			received: limit + 1,
		},
		"bomb": {
			reason: "it is the decompressed size that counts",
			serve: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", "gzip")
				_, _ = w.Write(bomb)
			},
			want:     "answer is larger than 100000 bytes",
			received: limit,
		},
		"stored": {
			reason: "and the compressed one",
			serve: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", "gzip")
				for {
					if _, err := w.Write(nothing); err != nil {
						return
					}
				}
			},
			want:     "answer is larger than 100000 bytes",
			received: limit + 1,
		},
		"error": {
			reason: "of an error, only what is logged is read",
			serve: func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(http.StatusBadGateway)
				_, _ = io.WriteString(w, large)
			},
			want:     "answered 502 Bad Gateway",
			received: maxErrorBody + 1,
		},
		"limit": {
			reason:   "as large as allowed",
			serve:    answer(exact(limit)),
			received: limit,
		},
		"limit and length": {
			reason: "as large as allowed, and the header says so",
			serve: func(w http.ResponseWriter, req *http.Request) {
				w.Header().Set("Content-Length", strconv.Itoa(limit))
				answer(exact(limit))(w, req)
			},
			received: limit,
		},
		"one more": {
			reason:   "a byte too many",
			serve:    answer(exact(limit + 1)),
			want:     "answer is larger than 100000 bytes",
			received: limit + 1,
		},
		"gzip": {
			reason: "compressed although not requested",
			serve: func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Encoding", "gzip")
				_, _ = w.Write(zip(t, exact(limit)))
			},
			received: 1000,
		},
	}
	a := newAuthority(t)
	for name, tc := range cases {
		for _, h2 := range []bool{false, true} {
			t.Run(name+map[bool]string{true: " http2"}[h2], func(t *testing.T) {
				s := newServer(t, a, func(w http.ResponseWriter, req *http.Request) {
					_, _ = io.Copy(io.Discard, req.Body)
					tc.serve(w, req)
				}, func(s *httptest.Server) { s.EnableHTTP2 = true })
				c := newCall(s.cc)
				result, err := newREST(t, Config{MaxBytes: limit, PreferHTTP2: h2}).Call(t.Context(), c)
				if tc.want != "" {
					wantError(t, tc.reason, result.Response, err, hook.BadResponse, `handler "v.acme": call extension: `+tc.want)
				} else if err != nil {
					t.Errorf("%s: %v", tc.reason, err)
				}
				if result.Received > tc.received {
					t.Errorf("%s: %d bytes were read, want at most %d", tc.reason, result.Received, tc.received)
				}
			})
		}
	}
}

func TestTheBodyOfAnErrorStaysOutOfTheMessage(t *testing.T) {
	body := "secret " + strings.Repeat("z", 2000)
	s := newServer(t, newAuthority(t), func(w http.ResponseWriter, req *http.Request) {
		w.WriteHeader(http.StatusTeapot)
		answer(body)(w, req)
	}, nil)
	_, err := newREST(t, Config{}).Call(t.Context(), newCall(s.cc))
	if err == nil || err.Error() != `handler "v.acme": call extension: answered 418 I'm a teapot` {
		t.Errorf("message: %v", err)
	}
	want := fmt.Sprintf("answer with status code 418: %q…", body[:512])
	if cause := errors.Unwrap(err); cause == nil || cause.Error() != want {
		t.Errorf("cause: %v, want %s", cause, want)
	}

	// What an extension wrote in an answer that cannot be decoded is cut, too.
	s = newServer(t, newAuthority(t), answer(`{"kind":"`+strings.Repeat("k", 5000)+`"}`), nil)
	_, err = newREST(t, Config{}).Call(t.Context(), newCall(s.cc))
	if err == nil || len(err.Error()) > 400 || !strings.Contains(err.Error(), "kind") {
		t.Errorf("an answer with a long kind: %v", err)
	}
}

func TestConnectionsAreKeptAfterErrors(t *testing.T) {
	codes := []int{500, 404, 200, 200}
	s := newServer(t, newAuthority(t), func(w http.ResponseWriter, req *http.Request) {
		w.WriteHeader(codes[0])
		codes = codes[1:]
		answer(`{"status":""}`)(w, req)
	}, nil)
	r := newREST(t, Config{})
	for range 4 {
		if _, err := r.Call(t.Context(), newCall(s.cc)); hook.KindOf(err) != hook.BadResponse {
			t.Fatalf("got %v, want a BadResponse", err)
		}
	}
	if n := s.seen(http.StateNew); n != 1 {
		t.Errorf("%d connections for four small answers, want 1", n)
	}
}

// TestRandomAnswers sends answers that were damaged at random. Whatever comes, there is either an answer or an error of
// the extension's fault, and nothing panics.
func TestRandomAnswers(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	texts := make(chan []byte, 1)
	var again atomic.Bool
	cc := rawServer(t, newAuthority(t), func(c net.Conn) {
		if readRequest(c) != nil {
			return
		}
		select {
		case text := <-texts:
			_, _ = c.Write(text)
		default:
			again.Store(true)
		}
	})
	whole := "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: " + strconv.Itoa(len(success)) +
		"\r\nConnection: close\r\n\r\n" + success
	r := newREST(t, Config{})
	good := 0
	for range 150 {
		text := []byte(whole)
		for range rng.IntN(4) {
			switch i := rng.IntN(len(text)); rng.IntN(3) {
			case 0:
				text[i] = byte(rng.Uint32())
			case 1:
				text = append(text[:i], text[min(len(text), i+rng.IntN(20)):]...)
			default:
				text = append(text[:i:i], append([]byte("\r\n{\"0"), text[i:]...)...)
			}
			if len(text) == 0 {
				text = []byte("x")
			}
		}
		texts <- text
		r.Close() // the damage may make a connection look as if it could be used again
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		result, err := r.Call(ctx, newCall(cc))
		cancel()
		m := result.Response
		switch k := hook.KindOf(err); {
		case again.Load():
			t.Fatalf("%q: the request was sent more than once: %v, %v", text, m, err)
		case len(texts) > 0:
			t.Fatalf("%q: the request was not sent: %v, %v", text, m, err)
		case err == nil && m != nil:
			good++
		case m == nil && (k == hook.BadResponse || k == hook.Unreachable):
		default:
			t.Fatalf("%q: got %v, %v", text, m, err)
		}
	}
	if good == 0 {
		t.Error("not even the undamaged answers were taken")
	}
}

// An extension may begin to answer while it reads the request. Neither is cut short, and the connection is used again.
func TestAnswerBeginsBeforeTheRequestEnds(t *testing.T) {
	s := newServer(t, newAuthority(t), func(w http.ResponseWriter, req *http.Request) {
		rc := http.NewResponseController(w)
		if err := rc.EnableFullDuplex(); err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(w, success[:len(success)/2])
		if err := rc.Flush(); err != nil {
			t.Error(err)
		}
		if n, err := io.Copy(io.Discard, req.Body); err != nil || n != req.ContentLength {
			t.Errorf("the extension read %d of %d bytes of the request: %v", n, req.ContentLength, err)
		}
		_, _ = io.WriteString(w, success[len(success)/2:])
	}, nil)
	r := newREST(t, Config{})
	rt, err := r.routes.get(s.cc)
	if err != nil {
		t.Fatal(err)
	}
	p := rt.host.acquire(r.now())
	defer p.release()
	p.http1.sendingWait = patience // the server has read the whole request, but the client may not know it yet
	for range 3 {
		c := newCall(s.cc)
		c.Handler.Handler.Timeout = 5 * time.Minute // a busy machine takes its time over 16 MiB
		c.Request.(*hooksv1alpha1.BeforeClusterCreateRequest).Cluster.Raw = []byte(`{"x":"` + strings.Repeat("y", 16<<20) + `"}`)
		result, err := r.Call(t.Context(), c)
		if err != nil {
			t.Fatalf("%v (%v)", err, errors.Unwrap(err))
		}
		if result.Sent <= 16<<20 {
			t.Errorf("Sent is %d bytes", result.Sent)
		}
	}
	if n := s.seen(http.StateNew); n != 1 {
		t.Errorf("there were %d connections, want 1", n)
	}
}

// Once everything was sent, the end of the body stays its end: with an error, net/http would close the connection under
// the answer.
func TestBodyEndsAfterItWasDetached(t *testing.T) {
	o := newRESTBody(codec.BodyOf(bytes.Repeat([]byte("x"), smallBody+1)))
	whole, part := o.reader(), make([]byte, smallBody+1)
	if _, err := io.ReadFull(whole, part); err != nil {
		t.Fatal(err)
	}
	o.detach(false)
	if n, err := whole.Read(part); n != 0 || err != io.EOF {
		t.Errorf("after all: %d, %v, want EOF", n, err)
	}
	o = newRESTBody(codec.BodyOf(bytes.Repeat([]byte("x"), smallBody+1)))
	half := o.reader()
	if _, err := io.ReadFull(half, part[:10]); err != nil {
		t.Fatal(err)
	}
	o.detach(false)
	if n, err := half.Read(part); n != 0 || !errors.Is(err, errDetached) {
		t.Errorf("after a part: %d, %v, want %v", n, err, errDetached)
	}
}
