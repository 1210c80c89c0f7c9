// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"time"

	"google.golang.org/grpc/codes"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/hookgate/hookgate/registry"
)

// healthTimeout is enough for the question for the health service, which has an answer at once or is of no use.
const healthTimeout = time.Second

// lacksHealth reports whether the server of an extension has said that it has no health service. grpc follows the
// service by itself, and tells only its log of a server without one. lacksHealth asks once for each channel.
func (g *GRPC) lacksHealth(ctx context.Context, cc registry.ClientConfig) bool {
	channel, err := g.channels.get(cc, g.now())
	if err != nil {
		return false
	}
	defer channel.release()
	if lacks := channel.lacksHealth.Load(); lacks != nil {
		return *lacks
	}
	ctx, cancel := context.WithTimeout(ctx, g.healthTimeout)
	defer cancel()
	_, err = healthv1.NewHealthClient(channel.conn).Check(ctx, &healthv1.HealthCheckRequest{})
	switch status.Code(err) {
	case codes.OK, codes.NotFound: // of a server that knows its services by name alone
		channel.lacksHealth.Store(new(false))
	case codes.Unimplemented:
		channel.lacksHealth.Store(new(true))
		return true
	}
	return false
}
