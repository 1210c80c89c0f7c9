// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/grpc"
	reflectionv1 "google.golang.org/grpc/reflection/grpc_reflection_v1"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/registry"
)

// maxServices is how many services are named in a message.
const maxServices = 5

// reflect asks an extension that does not implement discovery which services it has, and answers in its place.
func (g *GRPC) reflect(ctx context.Context, cc registry.ClientConfig, x *errand) (proto.Message, *hook.Error) {
	channel, err := g.channels.get(cc, g.now())
	if err != nil {
		return nil, x.fail(hook.Unreachable, err.Error(), err)
	}
	defer channel.release()
	services, err := listServices(ctx, channel.conn)
	switch {
	case ctx.Err() != nil:
		return nil, x.ended(ctx, err)
	case err != nil:
		return nil, x.fail(hook.BadResponse, "the extension has neither Discovery nor server reflection, so nobody knows its handlers: implement Discovery", err)
	}

	answer := &hooksv1alpha1.DiscoveryResponse{Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS}
	var served *catalog.Hook
	for _, h := range g.config.Catalog.Hooks() {
		service, _, _ := strings.Cut(strings.TrimPrefix(h.Method, "/"), "/")
		// Of several versions of a hook, the newest is called.
		if h.Singleton() || !slices.Contains(services, service) || served != nil && served.Hook == h.Hook {
			continue
		}
		served = h
		answer.Handlers = append(answer.Handlers, &hooksv1alpha1.ExtensionHandler{
			Name:        strings.ToLower(h.Hook),
			RequestHook: &hooksv1alpha1.GroupVersionHook{ApiVersion: h.APIVersion(), Hook: h.Hook},
		})
	}
	if len(answer.GetHandlers()) == 0 {
		return nil, x.fail(hook.BadResponse, fmt.Sprintf("the extension has none of the hooks' services, but %s", listed(services)), nil)
	}
	return answer, nil
}

// listServices returns the names of a server's services, in order.
func listServices(ctx context.Context, conn *grpc.ClientConn) ([]string, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := reflectionv1.NewServerReflectionClient(conn).ServerReflectionInfo(ctx)
	if err != nil {
		return nil, err
	}
	request := &reflectionv1.ServerReflectionRequest{MessageRequest: &reflectionv1.ServerReflectionRequest_ListServices{}}
	// An error of Send is told by Recv, with its status.
	_ = stream.Send(request)
	answer, err := stream.Recv()
	if err != nil {
		return nil, err
	}
	if e := answer.GetErrorResponse(); e != nil {
		return nil, fmt.Errorf("server reflection: %s", e.GetErrorMessage())
	}
	var names []string
	for _, s := range answer.GetListServicesResponse().GetService() {
		names = append(names, s.GetName())
	}
	slices.Sort(names)
	return names, nil
}

// listed returns names as a message may show them.
func listed(names []string) string {
	if len(names) == 0 {
		return "no services at all"
	}
	more := ""
	if len(names) > maxServices {
		names, more = names[:maxServices], ", …"
	}
	quoted := make([]string, len(names))
	for i, n := range names {
		quoted[i] = cut(n)
	}
	return strings.Join(quoted, ", ") + more
}
