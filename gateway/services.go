// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/outcome"
)

// Services implements the services of all hooks in the catalog of a Dispatcher, from their descriptors: a hook needs no
// code of its own, and only protoc-gen-go has to generate code, for its messages. Both fronts serve them, so that a
// hook behaves the same whichever way it is called. Errors are of type *hook.Error, which each front maps to its
// protocol. Only requests from a front are answered.
type Services struct{ dispatcher *Dispatcher }

// NewServices returns the services of all hooks in the catalog of d.
func NewServices(d *Dispatcher) *Services { return &Services{dispatcher: d} }

// RegisterGRPC registers all services with a gRPC server.
func (s *Services) RegisterGRPC(g grpc.ServiceRegistrar) {
	var services []*grpc.ServiceDesc
	for _, h := range s.dispatcher.config.Catalog.Hooks() {
		name := string(h.Service.FullName())
		i := slices.IndexFunc(services, func(d *grpc.ServiceDesc) bool { return d.ServiceName == name })
		if i < 0 {
			i = len(services)
			services = append(services, &grpc.ServiceDesc{
				ServiceName: name, HandlerType: (*any)(nil), Metadata: h.Service.ParentFile().Path(),
			})
		}
		services[i].Methods = append(services[i].Methods, grpc.MethodDesc{MethodName: h.Hook, Handler: s.grpcHandler(h)})
	}
	for _, desc := range services {
		g.RegisterService(desc, s)
	}
}

// grpcHandler returns what protoc-gen-go-grpc generates for a method.
func (s *Services) grpcHandler(h *catalog.Hook) grpc.MethodHandler {
	answer := func(ctx context.Context, req any) (any, error) {
		m, ok := req.(proto.Message)
		if !ok {
			return nil, notAMessage(req)
		}
		return s.answer(ctx, m)
	}
	return func(
		service any, ctx context.Context, receive func(any) error, interceptor grpc.UnaryServerInterceptor,
	) (any, error) {
		req := h.Request.New().Interface()
		if err := receive(req); err != nil {
			return nil, err
		}
		if interceptor == nil {
			return answer(ctx, req)
		}
		return interceptor(ctx, req, &grpc.UnaryServerInfo{Server: service, FullMethod: h.Method}, answer)
	}
}

// RegisterREST registers all services with the mux of the REST front.
func (s *Services) RegisterREST(mux *runtime.ServeMux) error {
	var errs []error
	for _, h := range calledMostLast(s.dispatcher.config.Catalog.Hooks()) {
		errs = append(errs, mux.HandlePath(http.MethodPost, h.Path(""), s.restHandler(mux, h)))
		if h.TakesHandler() {
			errs = append(errs, mux.HandlePath(http.MethodPost, h.Path("")+"/{handler}", s.restHandler(mux, h)))
		}
	}
	return errors.Join(errs...)
}

// calledMostLast returns the hooks with those of Cluster API at the end: the mux tries what was registered last first.
func calledMostLast(hooks []*catalog.Hook) []*catalog.Hook {
	var others, ofClusterAPI []*catalog.Hook
	for _, h := range slices.Backward(hooks) {
		if h.Group == hook.Group {
			ofClusterAPI = append(ofClusterAPI, h)
		} else {
			others = append(others, h)
		}
	}
	return append(others, ofClusterAPI...)
}

// restHandler returns what protoc-gen-grpc-gateway generates for a binding of a method.
func (s *Services) restHandler(mux *runtime.ServeMux, h *catalog.Hook) runtime.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request, params map[string]string) {
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		in, out := runtime.MarshalerForRequest(mux, r)
		m, err := s.answerREST(ctx, mux, in, r, h, params)
		if err != nil {
			runtime.HTTPError(ctx, mux, out, w, r, err)
			return
		}
		runtime.ForwardResponseMessage(ctx, mux, out, w, r, m)
	}
}

// answerREST decodes a request of the hook and answers it.
func (s *Services) answerREST(
	ctx context.Context, mux *runtime.ServeMux, in runtime.Marshaler, r *http.Request, h *catalog.Hook,
	params map[string]string,
) (proto.Message, error) {
	ctx, err := runtime.AnnotateIncomingContext(ctx, mux, r, h.Method)
	if err != nil {
		return nil, err
	}
	req := h.Request.New()
	if err := in.NewDecoder(r.Body).Decode(req.Interface()); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	if handler, ok := params["handler"]; ok {
		req.Set(h.Request.Descriptor().Fields().ByName("handler"), protoreflect.ValueOfString(handler))
	}
	return s.answer(ctx, req.Interface())
}

// answer answers a request that a front has received. ctx comes from the front. Over REST, it has the body, which is
// decoded into req here. The errors are those of Dispatcher.Dispatch, and one of kind Loop for a request that has been
// here before.
func (s *Services) answer(ctx context.Context, req proto.Message) (answer proto.Message, err error) {
	d, in := s.dispatcher, callFrom(ctx)
	if in == nil {
		return nil, outcome.Internal(fmt.Errorf("%T did not come over REST or gRPC", req))
	}
	defer func() {
		if answer == nil { // of an error or a panic
			in.About(req) // before the front releases the body
		}
	}()
	snapshot := d.config.Registry.Snapshot()
	r, err := in.request(d.config.Codec, req, func(handler string) reading {
		return readingOf(snapshot, in.Hook, handler, d.config.Objects)
	})
	if err != nil {
		return nil, err
	}
	if err := in.via.Check(d.config.Gateway); err != nil {
		return nil, err
	}
	warnOfCaller(ctx, d.config.Observer, in.Hook)
	return d.dispatchIn(ctx, snapshot, r)
}
