// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"time"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/answercache"
	"github.com/hookgate/hookgate/internal/calls/bounds"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/extensionstate"
	"github.com/hookgate/hookgate/internal/network/budget"
	"github.com/hookgate/hookgate/internal/seeing/observe"
	"github.com/hookgate/hookgate/registry"
)

// How a call that may be answered from the cache was answered.
const (
	cacheHit    = "hit"    // by an answer that was kept
	cacheShared = "shared" // by the answer to an identical call that was in flight
	cacheMiss   = "miss"   // by the handler
)

// cache answers calls of hooks that are deterministic by their contract without calling the handler, if the operator's
// policy allows it: with an answer that was kept, or with that of an identical call in flight. Only Success is kept. It
// is outside of all other links, so that they see the calls that are made, and nothing else.
func cache(extensions *extensionstate.States, o *observe.Observer) extension.Link {
	return func(next extension.Caller) extension.Caller {
		return func(ctx context.Context, c extension.Call) (extension.Result, error) {
			ttl := cacheTTL(c.Handler)
			if ttl == 0 || !c.Hook.Deterministic() || c.PolicyError != nil || c.Comparison {
				return next(ctx, c)
			}
			key, ok, err := keyOf(ctx, c)
			if err != nil {
				return extension.Result{}, err
			}
			if !ok {
				return next(ctx, c)
			}
			kept, flight, own := extensions.Answers.Begin(key.Key)
			switch {
			case kept != nil:
				o.Cached(c, cacheHit)
				return keptResult(&key, c, kept)
			case own:
				o.Cached(c, cacheMiss)
				return makeFlight(ctx, c, next, extensions.Answers, flight, &key, ttl)
			}
			if result, err := deadline(wait(&key, flight))(ctx, c); result.Response != nil || err != nil {
				o.Cached(c, cacheShared)
				return result, err
			}
			o.Cached(c, cacheMiss)
			return next(ctx, c) // not in turns with others whose calls are of no use here
		}
	}
}

// keyOf is cacheKeyOf, with a turn of its own for a large request: a chain calls steps at the same time.
func keyOf(ctx context.Context, c extension.Call) (answercache.Request, bool, error) {
	if in := callFrom(ctx); in != nil && in.Received > budget.Step {
		work := in.memory.Work(ctx)
		if err := work.Step(); err != nil {
			return answercache.Request{}, false, bounds.Refused(err)
		}
		defer work.End()
	}
	key, ok := cacheKeyOf(c)
	return key, ok, nil
}

// cacheTTL returns for how long answers of a handler's extension are kept. Those of this process depend on more than
// the request, such as the time, and cost no call.
func cacheTTL(e *registry.Entry) time.Duration {
	if p := e.OfExtension; p != nil && e.Registration.InProcess == nil {
		return p.CacheTTL
	}
	return 0
}

// makeFlight calls the handler for all that wait for the flight.
func makeFlight(
	ctx context.Context, c extension.Call, next extension.Caller, answers *answercache.Cache, f *answercache.Flight,
	key *answercache.Request, ttl time.Duration,
) (result extension.Result, err error) {
	var answer *answercache.Answer
	var shared error
	defer func() { answers.End(f, answer, shared, ttl, bounds.Keep(ctx)) }() // of a call that panics, too
	result, err = next(ctx, c)
	switch {
	case err != nil:
		if result.IsFailure(err) {
			shared = err
		}
	case result.Ignored != nil || result.Response == nil:
		// It is no answer of the handler.
	default:
		if text, ok := key.Encode(result.Response); ok {
			answer = &answercache.Answer{Text: text, Lost: result.Lost}
		}
		if _, refused := catalog.FailureOf(result.Response); refused {
			ttl = 0
		}
	}
	return result, err
}

// wait waits for the end of an identical call. A result without a response means that its outcome is of no use here,
// because it depends on who has called.
func wait(k *answercache.Request, f *answercache.Flight) extension.Caller {
	return func(ctx context.Context, c extension.Call) (extension.Result, error) {
		select {
		case <-f.Done():
		case <-ctx.Done():
			return extension.Result{}, bounds.GaveUp(ctx.Err())
		}
		answer, err := f.Outcome()
		if answer == nil {
			return extension.Result{}, err
		}
		return keptResult(k, c, answer)
	}
}

// keptResult returns an answer that is kept.
func keptResult(k *answercache.Request, c extension.Call, a *answercache.Answer) (extension.Result, error) {
	response := c.Hook.Response.New().Interface()
	if err := k.Decode(a.Text, response); err != nil {
		return extension.Result{}, hook.Errorf(hook.Internal, "cached answer cannot be read").WithCause(err)
	}
	return extension.Result{Response: response, Lost: a.Lost}, nil
}

// cacheKeyOf returns the key of a call of a deterministic hook. It reports whether there is one: UIDs that are not
// unique cannot be told apart in an answer.
func cacheKeyOf(c extension.Call) (answercache.Request, bool) {
	r := c.Handler.Registration
	return answercache.RequestOf(c.Request, c.Handler.Name, c.Handler.Handler.Hook.String(),
		c.Handler.Handler.ClusterAPIVersion, c.Handler.Handler.ClusterAPIRelease, c.Hook.String(),
		string(r.ClientConfig.Protocol), r.ClientConfig.URL, string(r.ClientConfig.CABundle))
}
