// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/health"
	healthv1 "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/reflection"
	"google.golang.org/grpc/status"
)

// counted is a health service that counts the questions, and answers with code.
type counted struct {
	*health.Server
	code  codes.Code
	asked *atomic.Int32
}

func (c counted) Check(ctx context.Context, in *healthv1.HealthCheckRequest) (*healthv1.HealthCheckResponse, error) {
	c.asked.Add(1)
	if c.code != codes.OK {
		return nil, status.Error(c.code, "x")
	}
	return c.Server.Check(ctx, in)
}

// Discovery says that the health of an extension is not checked if its server says so, and not if it is busy. What the
// server has said of itself is not asked again.
func TestDiscoverSaysThatHealthIsNotChecked(t *testing.T) {
	ca := newAuthority(t)
	for name, tc := range map[string]struct {
		has       bool
		code      codes.Code
		unchecked bool
		asked     int32
	}{
		"no health service":               {unchecked: true},
		"serving":                         {has: true, asked: 1},
		"unknown server":                  {has: true, code: codes.NotFound, asked: 1},
		"health service without Check":    {has: true, code: codes.Unimplemented, unchecked: true, asked: 1},
		"health service that has trouble": {has: true, code: codes.Internal, asked: 2},
	} {
		t.Run(name, func(t *testing.T) {
			var asked atomic.Int32
			cc := newAuthor(t, ca, &author{}, func(s *grpc.Server) {
				reflection.Register(s)
				if tc.has {
					healthv1.RegisterHealthServer(s, counted{Server: health.NewServer(), code: tc.code, asked: &asked})
				}
			})
			g := newGRPC(t, Config{})
			g.healthTimeout = time.Minute
			for range 2 {
				d, err := g.Discover(t.Context(), cc)
				if err != nil || d.HealthUnchecked != tc.unchecked {
					t.Errorf("got %t, %v, want %t", d.HealthUnchecked, err, tc.unchecked)
				}
			}
			if asked.Load() != tc.asked {
				t.Errorf("asked %d times, want %d", asked.Load(), tc.asked)
			}
		})
	}
}
