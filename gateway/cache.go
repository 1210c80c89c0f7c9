// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"context"
	"slices"
	"strconv"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/answercache"
	"github.com/hookgate/hookgate/internal/budget"
	"github.com/hookgate/hookgate/internal/extension"
	"github.com/hookgate/hookgate/internal/extensionstate"
	"github.com/hookgate/hookgate/internal/observe"
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
			if ttl == 0 || !isDeterministic(c.Request) || c.PolicyError != nil {
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
				return key.result(c, kept)
			case own:
				o.Cached(c, cacheMiss)
				return makeFlight(ctx, c, next, extensions.Answers, flight, &key, ttl)
			}
			if result, err := deadline(key.wait(flight))(ctx, c); result.Response != nil || err != nil {
				o.Cached(c, cacheShared)
				return result, err
			}
			o.Cached(c, cacheMiss)
			return next(ctx, c) // not in turns with others whose calls are of no use here
		}
	}
}

// keyOf is cacheKeyOf, with a turn of its own for a large request: a chain calls steps at the same time.
func keyOf(ctx context.Context, c extension.Call) (cacheKey, bool, error) {
	if in := callFrom(ctx); in != nil && in.Received > budget.Step {
		work := in.memory.Work(ctx)
		if err := work.Step(); err != nil {
			return cacheKey{}, false, beyond(err)
		}
		defer work.End()
	}
	key, ok := cacheKeyOf(c)
	return key, ok, nil
}

// cacheTTL returns for how long answers of a handler's extension are kept. Those of this process depend on more than
// the request, such as the time, and cost no call.
func cacheTTL(e *registry.Entry) time.Duration {
	if p := e.ExtensionPolicy; p != nil && e.Registration.Local == nil {
		return p.CacheTTL
	}
	return 0
}

// makeFlight calls the handler for all that wait for the flight.
func makeFlight(
	ctx context.Context, c extension.Call, next extension.Caller, answers *answercache.Cache, f *answercache.Flight,
	key *cacheKey, ttl time.Duration,
) (result extension.Result, err error) {
	var answer *answercache.Answer
	var shared error
	defer func() { answers.End(f, answer, shared, ttl, keepMemory(ctx)) }() // of a call that panics, too
	result, err = next(ctx, c)
	switch {
	case err != nil:
		if result.IsFailure(err) {
			shared = err
		}
	case result.Ignored != nil || result.Response == nil:
		// It is no answer of the handler.
	default:
		if text, ok := key.encode(result.Response); ok {
			answer = &answercache.Answer{Text: text, Lost: result.Lost}
		}
		if _, refused := catalog.FailureOf(result.Response); refused {
			ttl = 0
		}
	}
	return result, err
}

// keepMemory returns the function that reserves memory for what outlives the call of ctx.
func keepMemory(ctx context.Context) func(bytes int64) (release func(), ok bool) {
	var memory *budget.Reservation // which bounds nothing without a front
	if in := callFrom(ctx); in != nil {
		memory = in.memory
	}
	return memory.Keep
}

// wait waits for the end of an identical call. A result without a response means that its outcome is of no use here,
// because it depends on who has called.
func (k *cacheKey) wait(f *answercache.Flight) extension.Caller {
	return func(ctx context.Context, c extension.Call) (extension.Result, error) {
		select {
		case <-f.Done():
		case <-ctx.Done():
			return extension.Result{}, gaveUp(ctx.Err())
		}
		answer, err := f.Outcome()
		if answer == nil {
			return extension.Result{}, err
		}
		return k.result(c, answer)
	}
}

// result returns an answer that is kept.
func (k *cacheKey) result(c extension.Call, a *answercache.Answer) (extension.Result, error) {
	response := c.Hook.Response.New().Interface()
	if err := k.decode(a.Text, response); err != nil {
		return extension.Result{}, hook.Errorf(hook.Internal, "kept answer cannot be read").WithCause(err)
	}
	return extension.Result{Response: response, Lost: a.Lost}, nil
}

// cacheKey identifies the content of a request to a handler. Cluster API gives the items of GeneratePatches new UIDs
// and another order each time. The key depends on neither, and answers are kept with the numbers of items in place of
// their UIDs.
type cacheKey struct {
	answercache.Key
	// uids has the UIDs of the items, in the order of the items' contents. Items with equal contents keep their order.
	uids []string
}

// isDeterministic reports whether the hook of a request is deterministic by its contract: equal requests have equal
// answers, whatever is the case elsewhere.
func isDeterministic(request proto.Message) bool {
	switch request.(type) {
	case *hooksv1alpha1.GeneratePatchesRequest, *hooksv1alpha1.ValidateTopologyRequest,
		*hooksv1alpha1.DiscoverVariablesRequest:
		return true
	}
	return false
}

// cacheKeyOf returns the key of a call of a deterministic hook. It reports whether there is one: UIDs that are not
// unique cannot be told apart in an answer.
func cacheKeyOf(c extension.Call) (cacheKey, bool) {
	h := answercache.NewDigest()
	r := c.Handler.Registration
	for _, part := range []string{
		c.Handler.Name, c.Handler.Handler.Hook.String(), c.Handler.Handler.ClusterAPIVersion, c.Hook.String(),
		string(r.ClientConfig.Protocol), r.ClientConfig.URL, string(r.ClientConfig.CABundle),
	} {
		h.Text(part)
	}
	var k cacheKey
	message := c.Request.ProtoReflect()
	if patches, ok := c.Request.(*hooksv1alpha1.GeneratePatchesRequest); ok {
		if k.uids, ok = digestItems(h, patches.GetItems()); !ok {
			return cacheKey{}, false
		}
		h.Message(message, "handler", "items")
	} else {
		h.Message(message, "handler")
	}
	k.Key = h.Key()
	return k, true
}

// digestItems writes the digests of items without their UIDs, in an order of their own, and returns the UIDs in that
// order.
func digestItems(
	d answercache.Digest, items []*hooksv1alpha1.GeneratePatchesRequestItem,
) (uids []string, unique bool) {
	type item struct {
		uid string
		sum answercache.Key
	}
	seen, sorted := make(map[string]bool, len(items)), make([]item, len(items))
	for i, it := range items {
		if seen[it.GetUid()] {
			return nil, false
		}
		seen[it.GetUid()] = true
		one := answercache.NewDigest()
		one.Message(it.ProtoReflect(), "uid")
		sorted[i] = item{it.GetUid(), one.Key()}
	}
	slices.SortStableFunc(sorted, func(a, b item) int { return bytes.Compare(a.sum[:], b.sum[:]) })
	uids = make([]string, len(sorted))
	for i, it := range sorted {
		uids[i] = it.uid
		d.Bytes(it.sum[:])
	}
	return uids, true
}

// encode returns the form in which an answer is kept. It reports whether there is one: an answer about an item that the
// request does not have means nothing for another request.
func (k *cacheKey) encode(response proto.Message) ([]byte, bool) {
	if patches, ok := response.(*hooksv1alpha1.GeneratePatchesResponse); ok {
		numbers := make(map[string]string, len(k.uids))
		for i, uid := range k.uids {
			numbers[uid] = strconv.Itoa(i)
		}
		renamed := &hooksv1alpha1.GeneratePatchesResponse{
			Status: patches.GetStatus(), Message: patches.GetMessage(), UnknownMembers: patches.GetUnknownMembers(),
		}
		for _, it := range patches.GetItems() {
			number, ok := numbers[it.GetUid()]
			if !ok {
				return nil, false
			}
			renamed.Items = append(renamed.Items, &hooksv1alpha1.GeneratePatchesResponseItem{
				Uid: number, PatchType: it.GetPatchType(), Patch: it.GetPatch(), UnknownMembers: it.GetUnknownMembers(),
			})
		}
		response = renamed
	}
	text, err := proto.Marshal(response)
	return text, err == nil
}

// decode returns an answer that is kept as an answer to the request of the key.
func (k *cacheKey) decode(text []byte, into proto.Message) error {
	if err := proto.Unmarshal(text, into); err != nil {
		return err
	}
	if patches, ok := into.(*hooksv1alpha1.GeneratePatchesResponse); ok {
		for _, it := range patches.GetItems() {
			number, err := strconv.Atoi(it.GetUid())
			if err != nil {
				return err
			}
			it.Uid = k.uids[number]
		}
	}
	return nil
}
