// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"sync"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/calls/bounds"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/jsonpatch"
	"github.com/hookgate/hookgate/internal/kinds/handlerchain"
)

// ExplainCall is Explain, and then calls the handlers as Dispatch does, and adds their answers. It refuses hooks whose
// handlers act.
func (d *Dispatcher) ExplainCall(ctx context.Context, r Request) (*Explanation, error) {
	if !r.Hook.ReadOnly() {
		return nil, hook.Errorf(hook.InvalidRequest,
			"handlers of %s have side effects, so they are not called to explain a call; only handlers of %s are called",
			r.Hook.Hook, d.config.Catalog.ReadOnlyNames())
	}
	x, targets, err := d.explain(ctx, d.config.Registry.Snapshot(), r)
	if err != nil || x.Failure != nil {
		return x, err
	}
	t := &trial{codec: d.config.Codec, answers: map[string]*ExplainedAnswer{}}
	r.trial = t
	_, _ = d.call(ctx, r, targets[0]) // which t keeps; none of these hooks has several targets
	x.Answer = t.answers[targets[0].Name()]
	for i := range x.Handlers {
		for j := range x.Handlers[i].Steps {
			step := &x.Handlers[i].Steps[j]
			step.Answer = t.answers[step.called()]
		}
	}
	return x, t.err
}

// trial keeps the answers to a request: of each handler, and of the chain that these are steps of. It is safe for
// concurrent use.
type trial struct {
	codec *codec.Codec

	mu      sync.Mutex
	answers map[string]*ExplainedAnswer // by the names of handlers and chains, each of which is called once
	size    int64                       // of what is kept
	err     error                       // of the memory for calls, or its time
}

// keep keeps an answer, and what it would have been if its handler did not only audit.
func (t *trial) keep(
	ctx context.Context, name string, r Request, response proto.Message, would *extension.Audited, err error,
) {
	t.mu.Lock()
	defer t.mu.Unlock()
	a := &ExplainedAnswer{}
	if would != nil {
		a.Audited = text.Cut(would.String(), limits.PolicyMessageBytes)
	}
	t.answers[name] = a
	if err != nil {
		a.Error = explainedError(err)
		return
	}
	if err := t.fill(ctx, a, r, response); err != nil && t.err == nil {
		t.err = err
	}
}

// fill sets an answer, with the objects as its patches make them. A patch that does not apply has none: it fails the
// call of a chain.
func (t *trial) fill(ctx context.Context, a *ExplainedAnswer, r Request, response proto.Message) error {
	guard := bounds.Guard(ctx)
	body, err := t.codec.EncodeWithin(response, limits.BodyBytes, codec.Guard{Reserve: guard.Reserve})
	switch {
	case errors.Is(err, codec.ErrTooLarge):
		a.LeftOut = true
		return nil
	case err != nil:
		return err
	}
	if a.LeftOut, err = t.leavesOut(guard, body.Size()); a.LeftOut || err != nil {
		return err
	}
	a.Response = body.Bytes()
	if r.Hook.InParallel() {
		return nil
	}
	return bounds.Heavy(ctx, func() error {
		objects, err := handlerchain.After(r.Message, response, guard)
		if refused, ok := errors.AsType[*hook.Error](err); ok {
			return refused
		}
		for _, o := range objects {
			if !o.Changed {
				continue
			}
			if a.LeftOut, err = t.leavesOut(guard, int64(len(o.JSON))); a.LeftOut || err != nil {
				return err
			}
			a.Objects = append(a.Objects, ExplainedObject{UID: o.UID, Name: o.Name, Object: o.JSON})
		}
		return nil
	})
}

// leavesOut reports whether there is no room for so many bytes: an explanation is no larger than an answer. Otherwise
// it reserves them.
func (t *trial) leavesOut(g jsonpatch.Guard, bytes int64) (bool, error) {
	if t.size+bytes > limits.BodyBytes-limits.ExplainedHandlers*explainedBytes {
		return true, nil
	}
	t.size += bytes
	if g.Reserve == nil {
		return false, nil
	}
	return false, g.Reserve(2 * bytes) // here, and in the text of the explanation
}
