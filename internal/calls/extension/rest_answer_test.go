// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
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
	"github.com/hookgate/hookgate/internal/contract/codec"
)

func zip(t testing.TB, text string) []byte {
	t.Helper()
	return zipAt(t, gzip.DefaultCompression, text)
}

func zipAt(t testing.TB, level int, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, level)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// coded answers with a status code alone.
func coded(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// headed answers with a header and a body.
func headed(header, value string, body []byte) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set(header, value)
		_, _ = w.Write(body)
	}
}

func TestAnswersThatAreNone(t *testing.T) {
	redirect := func(w http.ResponseWriter, req *http.Request) {
		http.Redirect(w, req, "https://169.254.169.254/", http.StatusTemporaryRedirect)
	}
	broken := func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, success)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}
	secret := func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "secret", http.StatusInternalServerError) }
	zipped := zip(t, success)
	wrong := bytes.Clone(zipped)
	wrong[len(wrong)-5]++
	const encoding, length, noStatus = "Content-Encoding", "Content-Length", `answer: status: want "Success" or "Failure", got `
	cases := map[string]struct {
		reason string
		serve  http.HandlerFunc
		want   string
		parts  []string // what the message has besides; its exact text is the codec's
	}{
		"500":              {"every status code but 200 is an error", secret, "answered 500 Internal Server Error", nil},
		"204":              {"success of another kind is no answer", coded(204), "answered 204 No Content", nil},
		"unknown code":     {"a code without a name", coded(599), "answered 599", nil},
		"404":              {"the path helps to find the fault", http.NotFound, "answered 404 Not Found at /hooks.runtime.cluster.x-k8s.io/v1alpha1/beforeclustercreate/v", nil},
		"redirect":         {"a redirect could lead anywhere", redirect, "answered 307 Temporary Redirect: redirects are not followed", nil},
		"HTML":             {"a page of a proxy, say", headed("Content-Type", "text/html; charset=utf-8", []byte("\n<html>")), "answer is not JSON (Content-Type text/html)", nil},
		"text":             {"Go's servers find the type by themselves", answer("not found"), "answer is not JSON (Content-Type text/plain)", nil},
		"empty":            {"nothing is not JSON", func(http.ResponseWriter, *http.Request) {}, "answer is empty", nil},
		"half of the JSON": {"the body is complete, the JSON is not", answer(success[:60]), "answer: ", []string{"ends early at byte 60"}},
		"array":            {"valid JSON of another shape", answer("[]"), "answer: ", []string{"object", "array"}},
		"wrong kind": {
			"both kinds are named", answer(strings.Replace(success, "BeforeClusterCreateResponse", "BeforeClusterDeleteResponse", 1)),
			"answer: kind: ", []string{"BeforeClusterCreateResponse", "BeforeClusterDeleteResponse"},
		},
		"wrong apiVersion": {
			"and both versions", answer(strings.Replace(success, "v1alpha1", "v1", 1)),
			"answer: apiVersion: ", []string{"hooks.runtime.cluster.x-k8s.io/v1alpha1", "hooks.runtime.cluster.x-k8s.io/v1"},
		},
		"empty status":      {"an answer must say which", answer(`{"status":"","retryAfterSeconds":5}`), noStatus + `""`, nil},
		"no status":         {"an answer must say which", answer(`{"message":"fine"}`), noStatus + `""`, nil},
		"unknown status":    {"there are two", answer(`{"status":"OK"}`), noStatus + `"OK"`, nil},
		"negative":          {"nobody can wait so long", answer(`{"status":"Success","retryAfterSeconds":-60}`), "answer: retryAfterSeconds: -60 is negative", nil},
		"brotli":            {"it was not requested", headed(encoding, "br", []byte(success)), `answer is encoded with Content-Encoding "br", which was not requested`, nil},
		"gzip twice":        {"a bomb in a bomb", headed(encoding, "gzip, gzip", zip(t, string(zipped))), `answer is encoded with Content-Encoding "gzip, gzip", which was not requested`, nil},
		"no gzip":           {"the header lies", headed(encoding, "gzip", []byte(success)), "answer is not valid gzip", nil},
		"wrong gzip":        {"the checksum is wrong", headed(encoding, "gzip", wrong), "answer is not valid gzip", nil},
		"half a gzip":       {"the compressed body ends early", headed(encoding, "gzip", zipped[:40]), "answer ended early", nil},
		"half a body":       {"less than Content-Length", headed(length, "500", []byte(success)), "answer ended early", nil},
		"half a large body": {"less than a Content-Length that is not trusted", headed(length, "9000000", []byte(success)), "answer ended early", nil},
		"broken":            {"the connection breaks in a body of unknown length", broken, "answer ended early", nil},
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
	chunked := func(body []byte) http.HandlerFunc { // without an end
		return func(w http.ResponseWriter, _ *http.Request) {
			for {
				if _, err := w.Write(body); err != nil {
					return
				}
			}
		}
	}
	stored := func(w http.ResponseWriter, req *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		chunked(nothing)(w, req)
	}
	failed := func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
		_, _ = io.WriteString(w, large)
	}
	const tooLarge = "answer is larger than 100000 bytes"
	cases := map[string]struct {
		reason   string
		serve    http.HandlerFunc
		want     string // empty if the answer is taken
		received int64  // at most
	}{
		"length":           {"the header says that it is too large, and nothing is read", headed("Content-Length", strconv.Itoa(len(large)), []byte(large)), tooLarge, 0},
		"chunked":          {"the header does not say", chunked([]byte(large)), tooLarge, limit + 1},
		"bomb":             {"it is the decompressed size that counts", headed("Content-Encoding", "gzip", bomb), tooLarge, limit},
		"stored":           {"and the compressed one", stored, tooLarge, limit + 1},
		"error":            {"of an error, only what is logged is read", failed, "answered 502 Bad Gateway", maxErrorBody + 1},
		"limit":            {"as large as allowed", answer(ofSize(limit)), "", limit},
		"limit and length": {"as large as allowed, and the header says so", headed("Content-Length", strconv.Itoa(limit), []byte(ofSize(limit))), "", limit},
		"one more":         {"a byte too many", answer(ofSize(limit + 1)), tooLarge, limit + 1},
		"gzip":             {"compressed although not requested", headed("Content-Encoding", "gzip", zip(t, ofSize(limit))), "", 1000},
		"gzip, one more":   {"a byte too many, decompressed", headed("Content-Encoding", "gzip", zip(t, ofSize(limit+1))), tooLarge, 1000},
		"not smaller":      {"within the limit only when decompressed", headed("Content-Encoding", "gzip", zipAt(t, gzip.NoCompression, ofSize(limit))), tooLarge, limit + 1},
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
				result, err := newREST(t, Config{BodyBytes: limit, PreferHTTP2: h2}).Call(t.Context(), c)
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

// What an extension wrote in an answer that cannot be decoded is cut.
func TestTextOfAnAnswerIsCut(t *testing.T) {
	s := newServer(t, newAuthority(t), answer(`{"kind":"`+strings.Repeat("k", 5000)+`"}`), nil)
	_, err := newREST(t, Config{}).Call(t.Context(), newCall(s.cc))
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
