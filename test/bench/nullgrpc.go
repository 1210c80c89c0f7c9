// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
)

// untouched is the codec of the null extension over gRPC: requests are received, and not decoded.
type untouched struct{}

func (untouched) Name() string { return "proto" }

func (untouched) Marshal(v any) (mem.BufferSlice, error) {
	return mem.BufferSlice{mem.SliceBuffer(v.([]byte))}, nil
}

func (untouched) Unmarshal(mem.BufferSlice, any) error { return nil }

// grpcAnswers returns the answers of the null extension by the path of the method. They are the least that is valid.
func grpcAnswers() (map[string][]byte, error) {
	const success = hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS
	handler := func(name, hookName string) *hooksv1alpha1.ExtensionHandler {
		return &hooksv1alpha1.ExtensionHandler{
			Name: name, RequestHook: &hooksv1alpha1.GroupVersionHook{ApiVersion: hook.APIVersion, Hook: hookName},
		}
	}
	answers := make(map[string][]byte)
	for method, answer := range map[string]proto.Message{
		hooksv1alpha1.DiscoveryService_Discovery_FullMethodName: &hooksv1alpha1.DiscoveryResponse{
			Status:   success,
			Handlers: []*hooksv1alpha1.ExtensionHandler{handler(handlerS, hookS), handler(handlerML, hookML)},
		},
		hooksv1alpha1.LifecycleHooksService_BeforeClusterCreate_FullMethodName: &hooksv1alpha1.BeforeClusterCreateResponse{
			Status: success,
		},
		hooksv1alpha1.TopologyMutationHooksService_GeneratePatches_FullMethodName: &hooksv1alpha1.GeneratePatchesResponse{
			Status: success,
		},
	} {
		encoded, err := proto.Marshal(answer)
		if err != nil {
			return nil, err
		}
		answers[method] = encoded
	}
	// What Envoy's transcoder gets, by the descriptors that structDescriptors makes.
	answers[fmt.Sprintf("/%s.%s/%s", structPackage, structService, structMethod)] = protowire.AppendString(
		protowire.AppendTag(nil, 1, protowire.BytesType), "Success")
	return answers, nil
}

// serveNullGRPC is servePeer for the null extension over gRPC.
func serveNullGRPC(certFile, keyFile string) error {
	answers, err := grpcAnswers()
	if err != nil {
		return err
	}
	tls, err := credentials.NewServerTLSFromFile(certFile, keyFile)
	if err != nil {
		return err
	}
	l, err := listenAsPeer()
	if err != nil {
		return err
	}
	return grpc.NewServer(grpc.Creds(tls), grpc.ForceServerCodecV2(untouched{}), grpc.MaxRecvMsgSize(64<<20),
		grpc.UnknownServiceHandler(func(_ any, stream grpc.ServerStream) error {
			method, _ := grpc.MethodFromServerStream(stream)
			answer, ok := answers[method]
			if !ok {
				return status.Errorf(codes.Unimplemented, "no method %s", method)
			}
			if err := stream.RecvMsg(nil); err != nil {
				return err
			}
			return stream.SendMsg(answer)
		})).Serve(l)
}
