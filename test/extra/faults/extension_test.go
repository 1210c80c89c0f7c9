// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
)

const (
	apiVersion = "hooks.runtime.cluster.x-k8s.io/v1alpha1"
	// handler is the handler of every extension for BeforeClusterCreate, and sign its handler for DiscoverVariables,
	// which the gateway's own discovery names.
	handler = "before"
	sign    = "sign"
	healthy = "healthy"
	// say is the message of a healthy answer.
	say = "fine"
)

// behavior is how an extension answers. A nil function answers as a healthy extension does.
type behavior struct {
	discovery http.HandlerFunc
	rest      http.HandlerFunc
	grpc      func(context.Context) (*hooksv1alpha1.BeforeClusterCreateResponse, error)
	intrude   func(net.Conn) // what connections over gRPC do besides, once they are called
	zips      bool           // answers over gRPC are compressed, and the one that says bombed is a bomb
	hangs     bool           // no answer ever
	holds     bool           // no answer before the calls are released
}

// timeout returns the timeout of the handler in seconds: only a fault that hangs may run into it. Others have the longest
// that there is, because extensions of rows have the lowest priority of the machine.
func (b behavior) timeout() int32 {
	if b.hangs {
		return 2
	}
	return 30
}

// behaviors returns the behaviors by name.
func behaviors() map[string]behavior {
	return map[string]behavior{
		healthy: {},
		"holds": {holds: true},
		"waits": {hangs: true}, // healthy itself, behind a fault of the connection
		"hangs": {
			hangs: true,
			rest:  func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
			grpc:  hang,
		},
		"floods":   {hangs: true, grpc: hang, intrude: floodFrames},
		"hangs up": {hangs: true, grpc: hang, intrude: hangUp},
		"errors": {
			rest: func(w http.ResponseWriter, _ *http.Request) {
				http.Error(w, "stack trace", http.StatusInternalServerError)
			},
			grpc: func(context.Context) (*hooksv1alpha1.BeforeClusterCreateResponse, error) {
				return nil, status.Error(codes.Internal, "stack trace")
			},
		},
		"garbage": {
			rest: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>log in</html>") },
			grpc: func(context.Context) (*hooksv1alpha1.BeforeClusterCreateResponse, error) {
				return &hooksv1alpha1.BeforeClusterCreateResponse{Status: 99}, nil
			},
		},
		"half": {rest: func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, `{"status": "Success", "retryAfterSeconds": 0, "mess`)
			panic(http.ErrAbortHandler)
		}},
		"huge": {
			rest: func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, `{"status": "Success", "retryAfterSeconds": 0, "message": "`)
				_, _ = io.Copy(w, io.LimitReader(repeated("x"), 30<<20))
				_, _ = io.WriteString(w, `"}`)
			},
			grpc: func(context.Context) (*hooksv1alpha1.BeforeClusterCreateResponse, error) {
				return &hooksv1alpha1.BeforeClusterCreateResponse{
					Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS, Message: strings.Repeat("x", 30<<20),
				}, nil
			},
		},
		"drips": {hangs: true, rest: func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				_, _ = io.WriteString(w, " ")
				w.(http.Flusher).Flush()
				time.Sleep(100 * time.Millisecond)
			}
		}},
		"says a lot": {
			rest: func(w http.ResponseWriter, _ *http.Request) {
				_, _ = io.WriteString(w, `{"status": "Failure", "retryAfterSeconds": 0, "message": "`)
				_, _ = io.Copy(w, io.LimitReader(repeated("no "), 18<<20))
				_, _ = io.WriteString(w, `"}`)
			},
			grpc: func(context.Context) (*hooksv1alpha1.BeforeClusterCreateResponse, error) {
				return &hooksv1alpha1.BeforeClusterCreateResponse{
					Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_FAILURE, Message: strings.Repeat("no ", 6<<20),
				}, nil
			},
		},
		"zipped bomb": {rest: zipped(
			`{"status": "Success", "retryAfterSeconds": 0, "message": "`, "x", 200<<20, `"}`)},
		"bomb of members": {rest: zipped(
			`{"status": "Success", "retryAfterSeconds": 0, "extra": [`, "{},", 18<<20, `{}]}`)},
		"answers zipped bombs": {zips: true, grpc: func(context.Context) (*hooksv1alpha1.BeforeClusterCreateResponse, error) {
			return &hooksv1alpha1.BeforeClusterCreateResponse{Message: bombed}, nil
		}},
		"nested": {rest: zipped(
			`{"status": "Success", "retryAfterSeconds": 0, "extra": `, "[", 5<<20, `}`)},
		"renames": {discovery: func(w http.ResponseWriter, _ *http.Request) {
			var names []string
			for i := range 100 {
				names = append(names, fmt.Sprintf("h%d-%d", time.Now().UnixNano(), i))
			}
			discovered(w, 30, names...)
		}},
		"discovers a bomb": {discovery: zipped(
			`{"status": "Success", "handlers": [`, "{},", 18<<20, `{}]}`)},
	}
}

// hang answers nothing.
func hang(ctx context.Context) (*hooksv1alpha1.BeforeClusterCreateResponse, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// zipped returns an answer that is compressed: size bytes of a repeated text, between two others.
func zipped(begin, text string, size int, end string) http.HandlerFunc {
	bomb := sync.OnceValue(func() []byte { return zip(begin, text, size, end) })
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(bomb())
	}
}

// zip compresses size bytes of a repeated text, between two others.
func zip(begin, text string, size int, end string) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, _ = io.WriteString(z, begin)
	piece := strings.Repeat(text, 1+(1<<16)/max(len(text), 1))
	for range size / max(len(piece), 1) {
		_, _ = io.WriteString(z, piece)
	}
	_, _ = io.WriteString(z, end)
	_ = z.Close()
	return b.Bytes()
}

// bombed is the message of an answer that bomber makes a bomb of: a Failure whose message has 18 MiB.
const bombed = "this becomes a bomb"

// bomber compresses answers, so that the extension itself does not need the memory of bombs.
type bomber struct {
	grpc.Compressor
	once sync.Once
	bomb []byte
}

// Do implements grpc.Compressor.
func (b *bomber) Do(w io.Writer, p []byte) error {
	if !bytes.Contains(p, []byte(bombed)) {
		return b.Compressor.Do(w, p)
	}
	b.once.Do(func() {
		answer, err := proto.Marshal(&hooksv1alpha1.BeforeClusterCreateResponse{
			Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_FAILURE, Message: strings.Repeat("no ", 6<<20),
		})
		if err == nil {
			b.bomb = zip(string(answer), "", 0, "")
		}
	})
	_, err := w.Write(b.bomb)
	return err
}

// repeated reads a text again and again.
type repeated string

func (r repeated) Read(p []byte) (int, error) {
	n := 0
	for len(p)-n >= len(r) {
		n += copy(p[n:], r)
	}
	if n == 0 { // a buffer at the end of a limit
		return copy(p, r), nil
	}
	return n, nil
}

// discovered answers discovery with handlers of BeforeClusterCreate.
func discovered(w http.ResponseWriter, seconds int32, names ...string) {
	handlers := make([]map[string]any, len(names), len(names)+1)
	for i, name := range names {
		handlers[i] = map[string]any{
			"name": name, "timeoutSeconds": seconds,
			"requestHook": map[string]string{"apiVersion": apiVersion, "hook": "BeforeClusterCreate"},
		}
	}
	handlers = append(handlers, map[string]any{
		"name": sign, "requestHook": map[string]string{"apiVersion": apiVersion, "hook": "DiscoverVariables"},
	})
	_ = json.NewEncoder(w).Encode(map[string]any{"status": "Success", "handlers": handlers})
}

// extension is the process of an extension.
type extension struct {
	hooksv1alpha1.UnimplementedDiscoveryServiceServer
	hooksv1alpha1.UnimplementedLifecycleHooksServiceServer
	behavior    behavior
	calls       atomic.Int64  // of the hook
	connections atomic.Int64  // over gRPC, if it intrudes
	called      chan struct{} // closed by the first call of the hook over gRPC
	call        func()        // closes called, once

	mu       sync.Mutex
	released chan struct{} // closed when the calls that are held are released
}

// hold returns when the calls are released, or ctx is done.
func (e *extension) hold(ctx context.Context) {
	e.mu.Lock()
	released := e.released
	e.mu.Unlock()
	select {
	case <-released:
	case <-ctx.Done():
	}
}

// release releases the calls that are held, but not those that come later.
func (e *extension) release() {
	e.mu.Lock()
	defer e.mu.Unlock()
	close(e.released)
	e.released = make(chan struct{})
}

// runExtension serves JSON and gRPC until the process is ended. The arguments are a behavior, a directory of
// certificates, and the two addresses.
func runExtension(args []string) error {
	e := &extension{behavior: behaviors()[args[0]], released: make(chan struct{}), called: make(chan struct{})}
	e.call = sync.OnceFunc(func() { close(e.called) })
	pair, err := tls.LoadX509KeyPair(args[1]+"/tls.crt", args[1]+"/tls.key")
	if err != nil {
		return err
	}
	rest, err := net.Listen("tcp", args[2])
	if err != nil {
		return err
	}
	rpc, err := net.Listen("tcp", args[3])
	if err != nil {
		return err
	}
	config := &tls.Config{Certificates: []tls.Certificate{pair}}
	options := []grpc.ServerOption{
		grpc.Creds(intrudingCredentials{credentials.NewTLS(config.Clone()), e}), grpc.MaxSendMsgSize(64 << 20),
		grpc.MaxRecvMsgSize(64 << 20),
	}
	if e.behavior.zips {
		bombs := grpc.RPCCompressor(&bomber{Compressor: grpc.NewGZIPCompressor()}) //nolint:staticcheck // for this server only
		options = append(options, bombs)
	}
	server := grpc.NewServer(options...)
	hooksv1alpha1.RegisterDiscoveryServiceServer(server, e)
	hooksv1alpha1.RegisterLifecycleHooksServiceServer(server, e)
	go func() { _ = server.Serve(rpc) }() // as long as the process lives

	mux := http.NewServeMux()
	mux.HandleFunc("/"+apiVersion+"/discovery", func(w http.ResponseWriter, r *http.Request) {
		if e.behavior.discovery != nil {
			e.behavior.discovery(w, r)
			return
		}
		discovered(w, e.behavior.timeout(), handler)
	})
	mux.HandleFunc("/"+apiVersion+"/beforeclustercreate/", func(w http.ResponseWriter, r *http.Request) {
		e.calls.Add(1)
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			return
		}
		if e.behavior.holds {
			e.hold(r.Context())
		}
		if e.behavior.rest != nil {
			e.behavior.rest(w, r)
			return
		}
		_, _ = io.WriteString(w, `{"status": "Success", "retryAfterSeconds": 0, "message": "`+say+`"}`)
	})
	mux.HandleFunc("/release", func(http.ResponseWriter, *http.Request) { e.release() })
	mux.HandleFunc("/calls", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, e.calls.Load()) })
	mux.HandleFunc("/connections", func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, e.connections.Load()) })
	fmt.Printf("extension serving https=%s grpcs=%s\n", rest.Addr(), rpc.Addr())
	s := &http.Server{Handler: mux, TLSConfig: config, ErrorLog: log.New(io.Discard, "", 0)}
	mux.HandleFunc("/quiet", func(http.ResponseWriter, *http.Request) {
		s.SetKeepAlivesEnabled(false) // closes the connections that are idle
		s.SetKeepAlivesEnabled(true)
	})
	go func() { // An extension does not outlive the suite.
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	return s.ServeTLS(rest, "", "")
}

func (e *extension) Discovery(context.Context, *hooksv1alpha1.DiscoveryRequest) (*hooksv1alpha1.DiscoveryResponse, error) {
	seconds := e.behavior.timeout()
	return &hooksv1alpha1.DiscoveryResponse{
		Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS,
		Handlers: []*hooksv1alpha1.ExtensionHandler{{
			Name: handler, TimeoutSeconds: &seconds,
			RequestHook: &hooksv1alpha1.GroupVersionHook{ApiVersion: apiVersion, Hook: "BeforeClusterCreate"},
		}, {
			Name:        sign,
			RequestHook: &hooksv1alpha1.GroupVersionHook{ApiVersion: apiVersion, Hook: "DiscoverVariables"},
		}},
	}, nil
}

func (e *extension) BeforeClusterCreate(ctx context.Context, _ *hooksv1alpha1.BeforeClusterCreateRequest) (
	*hooksv1alpha1.BeforeClusterCreateResponse, error,
) {
	e.calls.Add(1)
	e.call()
	if e.behavior.grpc != nil {
		return e.behavior.grpc(ctx)
	}
	return &hooksv1alpha1.BeforeClusterCreateResponse{
		Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS, Message: say,
	}, nil
}
