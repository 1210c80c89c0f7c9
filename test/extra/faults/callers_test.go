// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/network/devcert"
	"github.com/hookgate/hookgate/test/samples"
)

// Callers have addresses of their own, so that limits per caller tell them apart.
const (
	healthyCaller = "127.0.0.2"
	attacker      = "127.0.0.3"
)

// pause is between the calls of one healthy caller.
const pause = 80 * time.Millisecond

// window is what the healthy callers have seen during some time.
type window struct {
	Sent, Specified int
	Others          map[string]int // the other outcomes, and how often
	// Latencies are those of all calls but the first of each caller after a pause, which makes a connection.
	Latencies []time.Duration
}

// add adds what was seen after it.
func (w *window) add(next window) {
	w.Sent, w.Specified = w.Sent+next.Sent, w.Specified+next.Specified
	w.Latencies = append(w.Latencies, next.Latencies...)
	for outcome, times := range next.Others {
		if w.Others == nil {
			w.Others = map[string]int{}
		}
		w.Others[outcome] += times
	}
}

// quantile returns the latency that a part of the calls did not exceed.
func (w *window) quantile(part float64) time.Duration {
	if len(w.Latencies) == 0 {
		return 0
	}
	sorted := slices.Sorted(slices.Values(w.Latencies))
	return sorted[int(part*float64(len(sorted)-1))]
}

// callers is the process of the healthy callers.
type callers struct {
	mu     sync.Mutex
	window window

	// calling is held for reading by each call, and otherwise while the callers pause.
	calling sync.RWMutex
	pauses  atomic.Bool
	resumed int // how often; guarded by calling
	clients []*http.Client
	conn    *grpc.ClientConn // guarded by calling
}

// runCallers calls handlers of healthy extensions at a steady rate until the process is ended: from both fronts to both
// kinds of extensions. The arguments are a directory of certificates, the addresses of the gateway for JSON and gRPC,
// and the handlers.
func runCallers(args []string) error {
	dir, https, rpc, handlers := args[0], args[1], args[2], args[3:]
	config, err := trusting(dir)
	if err != nil {
		return err
	}
	c := &callers{}
	dial := func() error {
		conn, err := dialGRPC(rpc, healthyCaller, config)
		if err == nil {
			c.conn = conn
		}
		return err
	}
	if err := dial(); err != nil {
		return err
	}
	body := samples.Body("BeforeClusterCreate")
	for i, name := range slices.Repeat(handlers, 2) {
		client := newClient(healthyCaller, config)
		c.clients = append(c.clients, client)
		go c.repeat(time.Duration(i)*pause/time.Duration(len(handlers)*4), func() error { return callREST(client, https, name, body) })
		go c.repeat(time.Duration(i)*pause/time.Duration(len(handlers)*4), func() error { return callGRPC(c.conn, name) })
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("callers reporting http=%s\n", listener.Addr())
	go func() { // The callers do not outlive the suite.
		_, _ = io.Copy(io.Discard, os.Stdin)
		os.Exit(0)
	}()
	mux := http.NewServeMux()
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) { _ = json.NewEncoder(w).Encode(c.take()) })
	mux.HandleFunc("/pause", func(http.ResponseWriter, *http.Request) { // when the calls under way have ended
		if c.pauses.CompareAndSwap(false, true) {
			c.calling.Lock()
			_ = c.conn.Close()
			for _, client := range c.clients {
				client.CloseIdleConnections()
			}
		}
	})
	mux.HandleFunc("/resume", func(w http.ResponseWriter, _ *http.Request) {
		if !c.pauses.CompareAndSwap(true, false) {
			return
		}
		if err := dial(); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
		}
		c.resumed++
		c.calling.Unlock()
	})
	return http.Serve(listener, mux)
}

// repeat calls at a steady rate, which a slow answer delays.
func (c *callers) repeat(offset time.Duration, call func() error) {
	time.Sleep(offset)
	tick := time.NewTicker(pause)
	resumed := -1
	for range tick.C {
		c.calling.RLock()
		connected := resumed == c.resumed
		resumed = c.resumed
		began := time.Now()
		err := call()
		took := time.Since(began)
		c.calling.RUnlock()
		seen := window{Sent: 1}
		if connected {
			seen.Latencies = []time.Duration{took}
		}
		if err == nil {
			seen.Specified++
		} else {
			seen.Others = map[string]int{err.Error(): 1}
		}
		c.mu.Lock()
		c.window.add(seen)
		c.mu.Unlock()
	}
}

// take returns the current window and begins another.
func (c *callers) take() window {
	c.mu.Lock()
	defer c.mu.Unlock()
	w := c.window
	c.window = window{}
	return w
}

// callREST calls a healthy handler, and returns an error for every other answer than its own: an unansweredError if
// there was no whole answer.
func callREST(client *http.Client, address, name string, body []byte) error {
	got, err := post(client, address, name, body)
	switch {
	case err != nil:
		return unansweredError{err}
	case !success(got):
		return fmt.Errorf("status %d: %.300s", got.code, got.body)
	}
	return nil
}

// unansweredError is the error of a request whose connection broke before the end of an answer.
type unansweredError struct{ error }

// answer is an answer over HTTP.
type answer struct {
	code   int
	header http.Header
	body   []byte
}

// post calls BeforeClusterCreate.
func post(client *http.Client, address, name string, body []byte) (answer, error) {
	request, err := http.NewRequest(http.MethodPost, hookURL(address, name), bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	return send(client, request)
}

// postZipped is post with a body in gzip.
func postZipped(client *http.Client, address, name string, body []byte) (answer, error) {
	request, err := http.NewRequest(http.MethodPost, hookURL(address, name), bytes.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	request.Header.Set("Content-Encoding", "gzip")
	return send(client, request)
}

// hookURL returns the URL of a handler, or without a name of the hook, which goes to all handlers.
func hookURL(address, name string) string {
	return "https://" + address + "/" + apiVersion + "/" + path.Join("beforeclustercreate", name)
}

// send sends a request and reads the answer, of which it keeps no more than the gateway may send.
func send(client *http.Client, request *http.Request) (answer, error) {
	response, err := client.Do(request)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(response.Body, 21<<20))
	return answer{response.StatusCode, response.Header, body}, err
}

// callGRPC calls a healthy handler, and returns an error for every other answer than its own.
func callGRPC(conn grpc.ClientConnInterface, name string, options ...grpc.CallOption) error {
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	defer cancel()
	got, err := hooksv1alpha1.NewLifecycleHooksServiceClient(conn).BeforeClusterCreate(ctx,
		&hooksv1alpha1.BeforeClusterCreateRequest{Handler: name, Cluster: &hooksv1alpha1.RawExtension{
			Raw: []byte(`{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Cluster","metadata":{"name":"c","namespace":"n"}}`),
		}}, options...)
	switch {
	case err != nil:
		return err
	case got.GetStatus() != hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS || got.GetMessage() != say:
		return fmt.Errorf("answered %v: %.300s", got.GetStatus(), got.GetMessage())
	}
	return nil
}

// trusting returns the TLS of clients that trust the authority in dir.
func trusting(dir string) (*tls.Config, error) {
	pem, err := os.ReadFile(filepath.Join(dir, devcert.CAFile))
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(pem)
	return &tls.Config{RootCAs: pool}, nil
}

// newClient returns a client that calls from an address of this machine.
func newClient(from string, config *tls.Config) *http.Client {
	return &http.Client{Timeout: 40 * time.Second, Transport: &http.Transport{
		TLSClientConfig: config.Clone(), DialContext: dialFrom(from), DisableCompression: true, MaxIdleConnsPerHost: 100,
	}}
}

func dialFrom(address string) func(context.Context, string, string) (net.Conn, error) {
	return (&net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}}).DialContext
}

// dialGRPC returns a connection for calls from an address of this machine.
func dialGRPC(to, from string, config *tls.Config) (*grpc.ClientConn, error) {
	dial := dialFrom(from)
	return grpc.NewClient(to, grpc.WithTransportCredentials(credentials.NewTLS(config.Clone())),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(64<<20), grpc.MaxCallSendMsgSize(64<<20)),
		grpc.WithContextDialer(func(ctx context.Context, address string) (net.Conn, error) {
			return dial(ctx, "tcp", address)
		}))
}
