// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"

	"google.golang.org/grpc"
)

// Services returns the names of a server's services, in order, as its server reflection tells them. The error is gRPC's.
func Services(ctx context.Context, conn *grpc.ClientConn) ([]string, error) {
	return listServices(ctx, conn)
}
