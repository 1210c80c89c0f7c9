// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"slices"
	"sync"

	"go.opentelemetry.io/otel/propagation"
	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/calls/outcome"
	"github.com/hookgate/hookgate/internal/calls/selection"
)

// InProcess calls hooks for the controllers of the gateway's own process, with the memory, the metrics, the traces and
// the log lines that a call over a front has. It is safe for concurrent use.
type InProcess struct {
	dispatcher *Dispatcher
	caller     string
}

// NewInProcess returns an InProcess. Log lines and the shares of memory know the caller by its name.
func NewInProcess(d *Dispatcher, caller string) *InProcess {
	return &InProcess{dispatcher: d, caller: caller}
}

// Call is Dispatcher.Dispatch for a request that names its handler, or none. holders are the handlers and chains that
// do not let the caller go on: they hold it, refused, or failed.
func (p *InProcess) Call(
	ctx context.Context, h *catalog.Hook, request proto.Message,
) (response proto.Message, holders []string, err error) {
	c := &p.dispatcher.config
	ctx, in := begin(ctx, c.Observer, "in-process", h.Hook, h, propagation.MapCarrier{}, "")
	in.Host, in.Caller, in.Received = p.caller, p.caller, int64(proto.Size(request))
	defer func() {
		if v := recover(); v != nil {
			err = outcome.Recovered(v)
		}
		if err != nil {
			in.fail(err)
			response, err = nil, in.Err
		}
		in.end()
	}()
	if err := in.reserve(ctx, c.Memory, p.caller); err != nil {
		return nil, nil, err
	}
	in.work = in.memory.Work(in.ctx)
	r, err := in.request(c.Codec, request, nil)
	if err != nil {
		return nil, nil, err
	}
	var mu sync.Mutex
	r.heard = func(handler string, answer proto.Message, err error) {
		if err == nil && !holds(answer) {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		holders = append(holders, handler)
	}
	if response, err = p.dispatcher.Dispatch(ctx, r); err == nil {
		in.Sent = int64(proto.Size(response))
	}
	slices.Sort(holders)
	return response, holders, err
}

// holds reports whether an answer does not let the caller go on.
func holds(answer proto.Message) bool {
	_, refused := catalog.FailureOf(answer)
	return refused || outcome.Holds(answer)
}

// Targets returns the names of the handlers, and of the chains, that Call would call with the request, which names
// none, by name. It makes no call. An error means that the gateway does not know: Call would fail.
func (p *InProcess) Targets(ctx context.Context, h *catalog.Hook, request proto.Message) (names []string, err error) {
	defer func() {
		if v := recover(); v != nil {
			names, err = nil, outcome.Recovered(v)
		}
	}()
	snapshot := p.dispatcher.config.Registry.Snapshot()
	if !snapshot.Ready() {
		return nil, selection.NotReady(snapshot)
	}
	r := Request{Hook: h, Message: request}
	m := p.dispatcher.newMatcher()
	defer m.Release(ctx)
	if err := m.Read(r.selected()); err != nil {
		return nil, err
	}
	targets, err := selection.Matching(ctx, snapshot, r.selected(), &m)
	switch {
	case err != nil:
		return nil, err
	case m.NamespacesErr != nil:
		return nil, m.NamespacesErr
	}
	for _, t := range targets {
		names = append(names, t.Name())
	}
	return names, nil
}
