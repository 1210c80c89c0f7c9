// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"time"

	"github.com/hookgate/hookgate/registry"
)

// Protocols calls each extension in the protocol that it speaks, as its ClientConfig says. It is safe for concurrent
// use.
type Protocols struct {
	rest     *REST
	grpc     *GRPC
	partners *partners
}

// NewProtocols returns a Protocols without connections.
func NewProtocols(config Config) *Protocols {
	config.setDefaults() // once, so that both share what bounds all extensions
	return &Protocols{rest: NewREST(config), grpc: NewGRPC(config), partners: config.partners}
}

// Call calls REST.Call or GRPC.Call, or answers locally where there is no server.
func (p *Protocols) Call(ctx context.Context, c Call) (Result, error) {
	if c.Handler.Registration.InProcess != nil {
		return callLocal(ctx, &c)
	}
	if c.Handler.Registration.ClientConfig.Protocol == registry.GRPC {
		return p.grpc.Call(ctx, c)
	}
	return p.rest.Call(ctx, c)
}

// Discover calls REST.Discover or GRPC.Discover.
func (p *Protocols) Discover(ctx context.Context, cc registry.ClientConfig) (Discovered, error) {
	if cc.Protocol == registry.GRPC {
		return p.grpc.Discover(ctx, cc)
	}
	return p.rest.Discover(ctx, cc)
}

// Want makes the next discovery of each extension ask for the handlers of a group of hooks, even if the extension did
// not have the group before.
func (p *Protocols) Want(group string) {
	p.rest.absences.want(group)
	p.grpc.absences.want(group)
}

// Retain keeps the connections to the given extensions and closes all others, as REST.Retain does.
func (p *Protocols) Retain(ccs []registry.ClientConfig) {
	var rest, grpc []registry.ClientConfig
	for _, cc := range ccs {
		if cc.Protocol == registry.GRPC {
			grpc = append(grpc, cc)
		} else {
			rest = append(rest, cc)
		}
	}
	p.rest.Retain(rest)
	p.grpc.Retain(grpc)
	p.partners.retain(ccs)
}

// Certificates returns the certificates that calls of an extension depend on. It does no I/O.
func (p *Protocols) Certificates(cc registry.ClientConfig) Certificates {
	of, ok := p.partners.find(cc)
	if !ok {
		return Certificates{}
	}
	return of.certificates(time.Now())
}

// Close closes all connections. It does not wait for calls that are under way.
func (p *Protocols) Close() {
	p.rest.Close()
	p.grpc.Close()
}
