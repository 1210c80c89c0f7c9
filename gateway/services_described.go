// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
)

// describedServices implements the services of a group from their descriptors, so that a group needs no code of its
// own. Only protoc-gen-go has to generate code for it, for the messages.
type describedServices struct {
	dispatcher *Dispatcher
	services   []protoreflect.ServiceDescriptor
}

// DescribedServices returns the services of versions of hooks over d, whose catalog has them.
func DescribedServices(d *Dispatcher, versions ...catalog.Source) GroupServices {
	s := &describedServices{dispatcher: d}
	for _, v := range versions {
		for _, file := range v.Files {
			for i := range file.Services().Len() {
				s.services = append(s.services, file.Services().Get(i))
			}
		}
	}
	return s
}

// RegisterGRPC implements GroupServices.
func (s *describedServices) RegisterGRPC(g grpc.ServiceRegistrar) {
	for _, service := range s.services {
		desc := &grpc.ServiceDesc{
			ServiceName: string(service.FullName()), HandlerType: (*any)(nil), Metadata: service.ParentFile().Path(),
		}
		for _, h := range s.hooksOf(service) {
			desc.Methods = append(desc.Methods, grpc.MethodDesc{MethodName: h.Hook, Handler: s.grpcHandler(h)})
		}
		g.RegisterService(desc, s)
	}
}

// hooksOf returns the hooks of a service.
func (s *describedServices) hooksOf(service protoreflect.ServiceDescriptor) []*catalog.Hook {
	var hooks []*catalog.Hook
	for i := range service.Methods().Len() {
		name := service.Methods().Get(i).Name()
		if h, ok := s.dispatcher.config.Catalog.ByMethod(fmt.Sprintf("/%s/%s", service.FullName(), name)); ok {
			hooks = append(hooks, h)
		}
	}
	return hooks
}

// grpcHandler returns what protoc-gen-go-grpc generates for a method.
func (s *describedServices) grpcHandler(h *catalog.Hook) grpc.MethodHandler {
	answer := func(ctx context.Context, req any) (any, error) {
		m, ok := req.(proto.Message)
		if !ok {
			return nil, notAMessage(req)
		}
		return answerCall[proto.Message](ctx, s.dispatcher, m)
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

// RegisterREST implements GroupServices.
func (s *describedServices) RegisterREST(_ context.Context, mux *runtime.ServeMux) error {
	var errs []error
	for _, service := range s.services {
		for _, h := range s.hooksOf(service) {
			errs = append(errs, mux.HandlePath(http.MethodPost, h.Path(""), s.restHandler(mux, h)))
			if h.TakesHandler() {
				errs = append(errs, mux.HandlePath(http.MethodPost, h.Path("")+"/{handler}", s.restHandler(mux, h)))
			}
		}
	}
	return errors.Join(errs...)
}

// restHandler returns what protoc-gen-grpc-gateway generates for a binding of a method.
func (s *describedServices) restHandler(mux *runtime.ServeMux, h *catalog.Hook) runtime.HandlerFunc {
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
func (s *describedServices) answerREST(
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
	return answerCall[proto.Message](ctx, s.dispatcher, req.Interface())
}
