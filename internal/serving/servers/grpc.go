// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package servers

import (
	"errors"
	"log/slog"
	"net"
	"slices"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/hookgate/hookgate/internal/base/limits"
)

// grpcServers serve gRPC on one listener, by one server after the other: gRPC can end all connections of a server
// gracefully, but only with the server. They have to end when callers need a certificate from then on, which the suite
// of faults has as "ca.crt appears". It is safe for concurrent use.
type grpcServers struct {
	create func() *grpc.Server
	logger *slog.Logger

	mu       sync.Mutex
	current  *grpc.Server
	accepts  *acceptQueue   // what current accepts from
	earlier  []*grpc.Server // those that are ending
	listener net.Listener   // nil before serve
	stopped  bool
	serving  sync.WaitGroup
}

func newGRPCServers(create func() *grpc.Server, logger *slog.Logger) *grpcServers {
	return &grpcServers{create: create, logger: logger, current: create()}
}

// services returns what is served.
func (f *grpcServers) services() map[string]grpc.ServiceInfo {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.current.GetServiceInfo()
}

// serve accepts connections until the front is stopped.
func (f *grpcServers) serve(l net.Listener) error {
	f.mu.Lock()
	if f.stopped {
		f.mu.Unlock()
		return l.Close()
	}
	f.listener = l
	f.start()
	f.mu.Unlock()
	defer f.serving.Wait()
	const least, most = 5 * time.Millisecond, time.Second
	pause := least
	for {
		c, err := l.Accept()
		switch {
		case errors.Is(err, net.ErrClosed):
			return nil
		case err != nil: // too many open files, say
			f.logger.Warn("accept gRPC connection", "error", err)
			time.Sleep(pause)
			pause = min(2*pause, most)
			continue
		}
		pause = least
		f.hand(c)
	}
}

// hand passes a connection to the current server.
func (f *grpcServers) hand(c net.Conn) {
	for {
		f.mu.Lock()
		accepts, stopped := f.accepts, f.stopped
		f.mu.Unlock()
		if stopped {
			_ = c.Close()
			return
		}
		select {
		case accepts.connections <- c:
			return
		case <-accepts.closed: // another server has taken over, or the front is being stopped
		}
	}
}

// start lets the current server accept. The caller holds the lock.
func (f *grpcServers) start() {
	server := f.current
	accepts := &acceptQueue{address: f.listener.Addr(), connections: make(chan net.Conn), closed: make(chan struct{})}
	f.accepts = accepts
	f.serving.Go(func() { _ = server.Serve(accepts) }) // until it is stopped, which is no error
}

// renew ends the connections of the current server as their calls end, at the latest when every call must have ended.
// Another server accepts from now on.
func (f *grpcServers) renew() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped || f.listener == nil {
		return
	}
	old := f.current
	f.earlier = append(f.earlier, old)
	f.current = f.create()
	f.start()
	f.serving.Go(func() {
		defer time.AfterFunc(renewTimeout, old.Stop).Stop()
		old.GracefulStop()
		f.mu.Lock()
		defer f.mu.Unlock()
		f.earlier = slices.DeleteFunc(f.earlier, func(s *grpc.Server) bool { return s == old })
	})
}

// renewTimeout is longer than any call takes. Streams that are no calls, such as those of health checks, may stay as
// long.
const renewTimeout = limits.RenewTimeout

// gracefulStop accepts nothing more, and returns when the calls in flight have ended.
func (f *grpcServers) gracefulStop() {
	var stopping sync.WaitGroup
	for _, server := range f.close() {
		stopping.Go(server.GracefulStop)
	}
	stopping.Wait()
}

// stop ends all connections at once.
func (f *grpcServers) stop() {
	var stopping sync.WaitGroup
	for _, server := range f.close() {
		stopping.Go(server.Stop)
	}
	stopping.Wait()
}

// close closes the listener, and returns the servers that have connections.
func (f *grpcServers) close() []*grpc.Server {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopped = true
	if f.listener != nil {
		_ = f.listener.Close() // which ends serve
	}
	return append(slices.Clone(f.earlier), f.current)
}

// acceptQueue is a listener whose connections another one has accepted.
type acceptQueue struct {
	address     net.Addr
	connections chan net.Conn
	close       sync.Once
	closed      chan struct{}
}

func (q *acceptQueue) Accept() (net.Conn, error) {
	select {
	case c := <-q.connections:
		return c, nil
	case <-q.closed:
		return nil, net.ErrClosed
	}
}

func (q *acceptQueue) Close() error {
	q.close.Do(func() { close(q.closed) })
	return nil
}

func (q *acceptQueue) Addr() net.Addr { return q.address }
