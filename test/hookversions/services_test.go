// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookversions

import (
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
)

// serveGRPC is the extension's side of the gRPC form, for all of its methods.
func (s *server) serveGRPC(_ any, stream grpc.ServerStream) error {
	method, _ := grpc.MethodFromServerStream(stream)
	h, ok := s.catalog.ByMethod(method)
	if !ok || h.Version != s.version {
		return status.Error(codes.Unimplemented, method)
	}
	req := h.Request.New().Interface()
	if err := stream.RecvMsg(req); err != nil {
		return err
	}
	answer, err := s.answer(req)
	if err != nil {
		return err
	}
	return stream.SendMsg(answer)
}
