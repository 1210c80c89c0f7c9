// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"
	"google.golang.org/protobuf/proto"
)

// Config says where and how an extension serves. The zero value is for an extension beside its gateway.
type Config struct {
	// Address is host:port, or unix:///path of a socket that only this user can open. Empty means the environment's
	// EXTENSION_ADDRESS, or else 127.0.0.1:9090. On an address that is not loopback, there must be a certificate.
	Address string
	// CertFile and KeyFile are the certificate to serve with and its key, in PEM. If ClientCAFile is set, callers must
	// show a certificate that one of its authorities has signed. The files are read again when they change. What cannot be
	// used is logged, and what was read last stays.
	CertFile, KeyFile, ClientCAFile string
	// Insecure allows an address that is not loopback without a certificate, where something else protects it.
	Insecure bool
	// MaxCalls is how many calls may be in flight, 100 by default. More are refused with RESOURCE_EXHAUSTED.
	MaxCalls int
	// Options are further options of the gRPC server, such as an interceptor that authenticates callers, or
	// grpc.StatsHandler(otelgrpc.NewServerHandler()), which puts the caller's trace into the context of handlers. They
	// may not have an InTapHandle.
	Options []grpc.ServerOption
}

// MessageBytes is the size of the largest request and of the largest answer.
const MessageBytes = 20 << 20

const (
	addressVariable = "EXTENSION_ADDRESS"
	defaultAddress  = "127.0.0.1:9090"
	defaultMaxCalls = 100
)

// Register registers the hooks of the extension, with Discovery, with a gRPC server of your own. Raise the server's
// limit of messages, grpc.MaxRecvMsgSize, to MessageBytes; the bound of calls in flight is yours, too.
func (x *Extension) Register(server grpc.ServiceRegistrar) error {
	if err := x.Err(); err != nil {
		return err
	}
	for name, s := range x.services {
		description := &grpc.ServiceDesc{
			ServiceName: name, HandlerType: (*any)(nil), Metadata: s.descriptor.ParentFile().Path(),
		}
		for _, m := range s.methods {
			if m.discovery || len(m.handlers) > 0 {
				description.Methods = append(description.Methods, x.describe(m))
			}
		}
		server.RegisterService(description, x)
	}
	return nil
}

// describe returns the method for a gRPC server.
func (x *Extension) describe(m *method) grpc.MethodDesc {
	answer := func(ctx context.Context, in any) (any, error) {
		return x.call(ctx, m, in.(proto.Message)) //nolint:forcetypeassert // it was decoded as one
	}
	return grpc.MethodDesc{MethodName: m.hook, Handler: func(
		_ any, ctx context.Context, decode func(any) error, interceptor grpc.UnaryServerInterceptor,
	) (any, error) {
		in := m.request.New().Interface()
		if err := decode(in); err != nil {
			return nil, err
		}
		if interceptor == nil {
			return answer(ctx, in)
		}
		return interceptor(ctx, in, &grpc.UnaryServerInfo{Server: x, FullMethod: m.fullMethod}, answer)
	}}
}

// Serve serves the extension with gRPC's health and reflection until ctx ends, or the process gets SIGTERM or SIGINT.
// Then it takes no more calls, finishes those in flight for at most 30 s, and returns nil.
func (x *Extension) Serve(ctx context.Context, config Config) error {
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer stop()
	address := cmp.Or(config.Address, os.Getenv(addressVariable), defaultAddress)
	options, err := x.options(ctx, address, config)
	if err != nil {
		return err
	}
	streams, endStreams := context.WithCancel(context.Background())
	defer endStreams()
	options = append(options, grpc.ChainStreamInterceptor(endWith(streams)), grpc.UnknownServiceHandler(x.unknown))
	server, healthServer := grpc.NewServer(append(options, config.Options...)...), health.NewServer()
	if err := x.Register(server); err != nil {
		return err
	}
	for name := range x.services {
		healthServer.SetServingStatus(name, healthv1.HealthCheckResponse_SERVING)
	}
	healthv1.RegisterHealthServer(server, healthServer)
	reflection.Register(server)
	choice := "choose another port"
	if config.Address == "" {
		choice += " with " + addressVariable
	}
	listener, err := listen(ctx, address, choice)
	if err != nil {
		return err
	}
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		<-ctx.Done()
		stop() // another signal ends the process
		healthServer.Shutdown()
		endStreams()
		defer time.AfterFunc(maxTimeout, server.Stop).Stop()
		server.GracefulStop()
	}()
	at := shown(address, listener)
	x.logger().Info("listening on "+at, "address", at)
	err = server.Serve(listener)
	if ctx.Err() == nil {
		server.Stop()
		stop()
	}
	<-drained
	return err
}

// shown returns the address for people: that of the listener if the system chose the port.
func shown(address string, listener net.Listener) string {
	if _, port, err := net.SplitHostPort(address); err == nil && port == "0" {
		return listener.Addr().String()
	}
	return address
}

// options returns the options of the gRPC server.
func (x *Extension) options(ctx context.Context, address string, config Config) ([]grpc.ServerOption, error) {
	options := []grpc.ServerOption{
		grpc.MaxRecvMsgSize(MessageBytes), grpc.MaxSendMsgSize(MessageBytes),
		grpc.InTapHandle(x.bound(cmp.Or(config.MaxCalls, defaultMaxCalls))),
	}
	if config.CertFile != "" || config.KeyFile != "" {
		settings, err := serverTLS(ctx, config, x.logger())
		if err != nil {
			return nil, err
		}
		return append(options, grpc.Creds(credentials.NewTLS(settings))), nil
	}
	if config.ClientCAFile != "" {
		return nil, errors.New("ClientCAFile needs a server certificate: set CertFile and KeyFile")
	}
	if !config.Insecure {
		if err := checkLoopback(ctx, address); err != nil {
			return nil, err
		}
	}
	return options, nil
}

// bound refuses calls of hooks beyond a number in flight, before it reads their requests.
func (x *Extension) bound(most int) tap.ServerInHandle {
	slots := make(chan struct{}, most)
	methods := map[string]*method{}
	for _, s := range x.services {
		for _, m := range s.methods {
			methods[m.fullMethod] = m
		}
	}
	return func(ctx context.Context, info *tap.Info) (context.Context, error) {
		m := methods[info.FullMethodName]
		if m == nil {
			return ctx, nil
		}
		select {
		case slots <- struct{}{}:
			context.AfterFunc(ctx, func() { <-slots }) // the context of a call ends with it
			return ctx, nil
		default:
			err := status.Errorf(codes.ResourceExhausted, "the extension has %d calls in flight, and takes no more", most)
			x.logCall(ctx, m.hook, "", time.Now(), ended(kindOverloaded, err))
			return ctx, err
		}
	}
}

// unknown refuses a call of a hook that the extension does not have. Clients also try services of gRPC that it lacks.
func (x *Extension) unknown(_ any, stream grpc.ServerStream) error {
	path, _ := grpc.MethodFromServerStream(stream)
	name := path[strings.LastIndexByte(path, '/')+1:]
	err := status.Errorf(codes.Unimplemented, "the extension has no handler of %.100s", name)
	if !strings.HasPrefix(path, "/grpc.") {
		p := ended(kindUnknownHook, err)
		if strings.HasSuffix(path, ".DiscoveryService/"+name) {
			p.level = slog.LevelDebug // a gateway calls the discoveries of all groups
		}
		x.logCall(stream.Context(), fmt.Sprintf("%.100s", name), "", time.Now(), p)
	}
	return err
}

// endWith ends streams with ctx. Streams are no calls: health checks and reflection would go on for ever.
func endWith(ctx context.Context) grpc.StreamServerInterceptor {
	return func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
		ended := make(chan error, 1)
		go func() { ended <- handle(srv, stream) }() // the stream ends when this function returns
		select {
		case err := <-ended:
			return err
		case <-ctx.Done():
			return status.Error(codes.Unavailable, "the extension is shutting down")
		}
	}
}

// errLoopback explains what an address that is not loopback needs.
func errLoopback(address string) error {
	return fmt.Errorf("listen on %s: the address is not loopback, so other hosts could call the extension: set "+
		"CertFile and KeyFile, or set Insecure if something else protects the address", address)
}
