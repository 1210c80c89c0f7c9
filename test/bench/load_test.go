// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"crypto/tls"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/test/samples"
)

// startServer serves h with new certificates, over both protocols.
func startServer(t *testing.T, h http.Handler) (address string, certs certificates) {
	t.Helper()
	certs, err := newCertificates(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	cert, err := tls.LoadX509KeyPair(certs.certFile(), certs.keyFile())
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2 = true
	s.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"h2", "http/1.1"}}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String(), certs
}

func TestDriveCountsEveryCall(t *testing.T) {
	for _, p := range []protocol{http1Protocol, http2Protocol} {
		t.Run(p.String(), func(t *testing.T) {
			var served atomic.Int64
			var connections sync.Map
			extension := nullExtension(new(atomic.Int64))
			address, certs := startServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				served.Add(1)
				connections.Store(r.RemoteAddr, r.Proto)
				extension.ServeHTTP(w, r)
			}))
			l := load{
				address: address, caPEM: certs.caPEM, path: hookPath(hookS, handlerS), body: samples.S(),
				callers: 3, protocol: p,
			}
			callers, err := l.open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer closeAll(callers)
			s, err := drive(t.Context(), callers, 20*time.Millisecond)
			if err != nil {
				t.Fatal(err)
			}
			if got := int64(len(s.latencies)); got != served.Load() || got < 3 {
				t.Errorf("%d latencies of %d calls by 3 callers", got, served.Load())
			}
			if !slices.IsSorted(s.latencies) || s.latencies[0] <= 0 {
				t.Errorf("latencies are not sorted, or not positive: %v", s.latencies)
			}
			n := 0
			for _, proto := range connections.Range {
				if n++; !strings.HasPrefix(proto.(string), p.String()) {
					t.Errorf("a connection speaks %s", proto)
				}
			}
			if want := map[protocol]int{http1Protocol: 3, http2Protocol: 1}[p]; n != want {
				t.Errorf("3 callers used %d connections, want %d", n, want)
			}
		})
	}
}

func TestDriveStopsAtABadAnswer(t *testing.T) {
	const failure = `{"status":"Failure","message":"no"}`
	for name, tc := range map[string]struct {
		reason string
		answer http.HandlerFunc
		want   string
	}{
		"Failure": {
			reason: "the extension refused",
			answer: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, failure) },
			want:   "Failure",
		},
		"Status": {
			reason: "only 200 is an answer",
			answer: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
			want:   "answer is 502",
		},
		"Chunked": {
			reason: "a body in chunks is read as a whole",
			answer: func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, failure[:20])
				_ = http.NewResponseController(w).Flush()
				_, _ = io.WriteString(w, failure[20:])
			},
			want: `message\":\"no`,
		},
		"Aborted": {
			reason: "the connection ends in the middle",
			answer: func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) },
			want:   "call 1 of caller 1",
		},
	} {
		for _, p := range []protocol{http1Protocol, http2Protocol} {
			t.Run(name+"/"+p.String(), func(t *testing.T) {
				address, certs := startServer(t, tc.answer)
				l := load{address: address, caPEM: certs.caPEM, path: "/", body: samples.S(), callers: 1, protocol: p}
				callers, err := l.open(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer closeAll(callers)
				// One bad answer ends the drive, which would otherwise go on for an hour.
				if _, err = drive(t.Context(), callers, time.Hour); err == nil ||
					!strings.Contains(err.Error(), tc.want) {
					t.Errorf("%s: error %v, want one with %q", tc.reason, err, tc.want)
				}
			})
		}
	}
}

// The extension's paths follow from its discovery.
func TestNullExtensionAnswersItsDiscovery(t *testing.T) {
	address, certs := startServer(t, nullExtension(new(atomic.Int64)))
	for _, path := range []string{
		hookPath("Discovery", ""), hookPath(hookS, handlerS), hookPath(hookML, handlerML),
		slowPath + "50" + hookPath("Discovery", ""), slowPath + "50" + hookPath(hookSlow, fanHandler(49)),
		quickPath + "512" + hookPath("Discovery", ""),
	} {
		l := load{address: address, caPEM: certs.caPEM, path: path, callers: 1, protocol: http1Protocol}
		callers, err := l.open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := callers[0].call(); err != nil {
			t.Errorf("%s: %v", path, err)
		}
		closeAll(callers)
	}
}

func TestNullExtensionOverGRPC(t *testing.T) {
	answers, err := grpcAnswers()
	if err != nil {
		t.Fatal(err)
	}
	set, err := structDescriptors()
	if err != nil {
		t.Fatal(err)
	}
	files, err := protodesc.NewFiles(set)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := files.FindDescriptorByName(structPackage + ".Answer")
	if err != nil {
		t.Fatal(err)
	}
	transcoded := dynamicpb.NewMessage(answer.(protoreflect.MessageDescriptor))
	for method, message := range map[string]proto.Message{
		hooksv1alpha1.DiscoveryService_Discovery_FullMethodName:                   &hooksv1alpha1.DiscoveryResponse{},
		hooksv1alpha1.LifecycleHooksService_BeforeClusterCreate_FullMethodName:    &hooksv1alpha1.BeforeClusterCreateResponse{},
		hooksv1alpha1.TopologyMutationHooksService_GeneratePatches_FullMethodName: &hooksv1alpha1.GeneratePatchesResponse{},
		"/" + structPackage + "." + structService + "/" + structMethod:            transcoded,
	} {
		if err := proto.Unmarshal(answers[method], message); err != nil {
			t.Errorf("%s: %v", method, err)
			continue
		}
		text, err := protojson.Marshal(message)
		if err != nil || !regexp.MustCompile(`"status": ?"(Success|RESPONSE_STATUS_SUCCESS)"`).Match(text) {
			t.Errorf("%s answers %s, %v", method, text, err)
		}
	}
	if len(answers) != 4 {
		t.Errorf("%d methods have answers", len(answers))
	}
}
