// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookgate/hookgate/internal/base/alloctest"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/serving/servers"
	"github.com/hookgate/hookgate/test/certificates"
)

// post returns a request of a host.
func post(ctx context.Context, host string, body io.Reader) *http.Request {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", body)
	r.RemoteAddr = net.JoinHostPort(host, "1")
	return r
}

func TestRequestsAreBounded(t *testing.T) {
	small := func() *bounds {
		d := admissionBounds()
		d.limit, d.values = 8, 3
		return d
	}
	for name, tt := range map[string]struct {
		body io.Reader
		want int
	}{
		"All":               {strings.NewReader(`12345678`), http.StatusOK},
		"TooLarge":          {strings.NewReader(`123456789`), http.StatusRequestEntityTooLarge},
		"TooLargeAndSilent": {io.MultiReader(strings.NewReader(`123456789`)), http.StatusRequestEntityTooLarge},
		"Values":            {strings.NewReader(`[1,"[,"]`), http.StatusOK},
		"TooManyValues":     {strings.NewReader(`[1,1,1]`), http.StatusRequestEntityTooLarge},
		"Broken":            {io.MultiReader(strings.NewReader(`1`), iotestError{}), http.StatusRequestTimeout},
		"Nothing":           {http.NoBody, http.StatusOK},
	} {
		w := httptest.NewRecorder()
		small().around(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if _, err := io.Copy(w, r.Body); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		})).ServeHTTP(w, post(t.Context(), "192.0.2.1", tt.body))
		if w.Code != tt.want {
			t.Errorf("%s: answered %d %s, want %d", name, w.Code, w.Body, tt.want)
		}
	}
	w := httptest.NewRecorder()
	small().around(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "much more than was asked")
	})).ServeHTTP(w, post(t.Context(), "192.0.2.1", strings.NewReader("1")))
	if w.Code != http.StatusServiceUnavailable || w.Body.String() != "the answer has more than 0 MiB\n" {
		t.Errorf("an answer that is too large: %d %s", w.Code, w.Body)
	}
}

type iotestError struct{}

func (iotestError) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }

// TestManyValuesAreNotDecoded checks what a request may take whose body is made of values that are large once they are
// decoded.
func TestManyValuesAreNotDecoded(t *testing.T) {
	h := handler(t)
	for _, list := range []string{`"metadata":{"managedFields":[`, `"status":{"conditions":[`, `"status":{"handlers":[`} {
		for _, n := range []int{limits.AdmissionValues / 3, 2_000_000} {
			object := `{"kind":"ExtensionConfig","apiVersion":"runtime.hookgate.dev/v1beta2",` + list + strings.Repeat("{},", n) + `{}]}}`
			body := []byte(`{"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1","request":{"uid":"u","operation":"CREATE","object":` + object + `}}`)
			for _, path := range []string{MutatePath(group), ValidatePath(group)} {
				r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
				r.Header.Set("Content-Type", "application/json")
				w := httptest.NewRecorder()
				// About 600 MiB, and a quarter more with the race detector, for which pools drop what they are given.
				alloctest.Bound{Base: 1 << 30}.Check(t, 0, func() { h.ServeHTTP(w, r) })
				if n > limits.AdmissionValues && w.Code != http.StatusRequestEntityTooLarge {
					t.Errorf("%s: answered %d", path, w.Code)
				}
			}
		}
	}
}

func TestRequestsWaitForAPlace(t *testing.T) { synctest.Test(t, requestsWaitForAPlace) }

func requestsWaitForAPlace(t *testing.T) {
	running, end := 0, make(chan struct{})
	d := admissionBounds()
	d.places = newShares(3, 2)
	h := d.around(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		running++
		<-end
		running--
	}))
	serve := func(ctx context.Context, host string, want int) {
		t.Helper()
		go h.ServeHTTP(httptest.NewRecorder(), post(ctx, host, http.NoBody))
		synctest.Wait()
		if running != want {
			t.Errorf("%d requests have a place, want %d", running, want)
		}
	}
	serve(t.Context(), "192.0.2.1", 1)
	serve(t.Context(), "192.0.2.1", 2)
	impatient, leave := context.WithCancel(t.Context())
	serve(impatient, "192.0.2.1", 2) // its host has its share
	leave()                          // so that it must not take a place later
	serve(t.Context(), "192.0.2.2", 3)
	serve(t.Context(), "192.0.2.2", 3)
	for left := 3; left >= 0; left-- {
		end <- struct{}{}
		synctest.Wait()
		if running != min(left, 3) {
			t.Errorf("%d requests have a place, want %d", running, left)
		}
		if left == 0 {
			break
		}
	}
	if n := len(d.places.hosts) + len(d.bytes.hosts); n != 0 {
		t.Errorf("%d hosts are known that have nothing", n)
	}
}

// TestSlowPeersKeepNobodyOut starts more requests than there are places, whose bodies do not come, and as many whose
// answers nobody reads, and asks from another host.
func TestSlowPeersKeepNobodyOut(t *testing.T) {
	pair := certificates.New(t)
	config := certificates.Server(t, pair)
	mux := Admissions(map[string]http.Handler{"/": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body) // it has come
		_, _ = w.Write(bytes.Repeat([]byte("x"), len(body)))
	})}, slog.New(slog.DiscardHandler))
	s := servers.NewSide(servers.SideConfig{Name: "webhooks", Address: "127.0.0.1:0", TLS: config, Handler: mux, Logger: slog.New(slog.DiscardHandler)})
	if err := s.Listen(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	defer func() {
		stop()
		if err := <-ended; err != nil {
			t.Logf("drained with %v", err) // slow peers are there to the end
		}
	}()
	from := func(host string) *http.Client {
		dialer := &net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(host)}}
		transport := &http.Transport{TLSClientConfig: pair.ClientTLS(), DialContext: dialer.DialContext}
		t.Cleanup(transport.CloseIdleConnections)
		return &http.Client{Transport: transport, Timeout: 20 * time.Second}
	}
	url := "https://" + s.Addr().String() + "/"
	slowly := from("127.0.0.2")
	slow, leave := context.WithCancel(t.Context())
	defer leave()
	for i := range 3 * limits.Admissions {
		body := io.Reader(strings.NewReader(strings.Repeat(" ", 1<<20))) // whose answer is not read
		if i%2 == 0 {
			r, w := io.Pipe()
			defer func() { _ = w.Close() }()
			go func() { _, _ = w.Write([]byte("{")) }()
			body = r
		}
		request, err := http.NewRequestWithContext(slow, http.MethodPost, url, body)
		if err != nil {
			t.Fatal(err)
		}
		request.ContentLength = 1 << 20
		go func() {
			if response, err := slowly.Do(request); err == nil {
				<-slow.Done()
				_ = response.Body.Close()
			}
		}()
	}
	client := from("127.0.0.3")
	for i := range 3 * limits.Admissions {
		response, err := client.Post(url, "application/json", strings.NewReader(strconv.Itoa(i)))
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("answered %s", response.Status)
		}
	}
}

func TestHosts(t *testing.T) {
	for remote, want := range map[string]string{
		"192.0.2.1:5": "192.0.2.1/32", "[::ffff:192.0.2.1]:5": "192.0.2.1/32", "[2001:db8::1:2%eth0]:5": "2001:db8::/64", "@": "invalid Prefix",
	} {
		if got := hostOf(&http.Request{RemoteAddr: remote}).String(); got != want {
			t.Errorf("%s: got %s, want %s", remote, got, want)
		}
	}
}

func TestHostsHaveOnlySoManyRequests(t *testing.T) {
	s := newShares(10, 10)
	host := hostOf(&http.Request{RemoteAddr: "192.0.2.1:5"})
	for range limits.WebhookRequests {
		if s.enter(host) == nil {
			t.Fatal("refused too early")
		}
	}
	if _, err := s.take(t.Context(), host, 1); err == nil {
		t.Error("one more request has entered")
	}
	if _, ok := s.try(host, 1); ok {
		t.Error("one more request has entered")
	}
}
