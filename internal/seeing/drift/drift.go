// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package drift finds extensions that answer an equal request otherwise than before: an upgrade behind the same URL, or
// replicas of several versions. It looks at calls of hooks whose answers depend on nothing but the request, and
// compares patches by what they make of the objects.
//
// Calls do not wait for it. It looks at as many bytes per second as a small part of a processor can read, and leaves
// out the other calls; what it keeps of the answers is bounded, too, and the requests used least recently go first.
package drift

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/protobuf/proto"
	"k8s.io/utils/lru"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/calls/answercache"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/recording"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/subject"
	"github.com/hookgate/hookgate/internal/seeing/answerdiff"
	"github.com/hookgate/hookgate/registry"
)

// Change is an answer to an equal request that is not as it was.
type Change struct {
	Handler *registry.Entry
	Hook    string
	CallID  string
	// Namespace and Cluster name the Cluster that the request is about; they are empty for none.
	Namespace, Cluster string
	// Message says what has changed, by the names of objects and the JSON pointers of values in them, without the values.
	Message string
}

// Watch looks for answers that have changed. It is safe for concurrent use; call Run once.
type Watch struct {
	codec   *codec.Codec
	changed func(Change)
	skipped func()
	logger  *slog.Logger

	pace    *rate.Limiter // of KiB
	pending chan *answered
	queued  atomic.Int64 // bytes of pending

	// What follows belongs to Run.
	compare answerdiff.Comparer
	known   *lru.Cache // of *known, by answercache.Key
	used    int64      // bytes of known
}

// answered is a call that is to be looked at.
type answered struct {
	call            extension.Call // without its request
	at              time.Time
	request, answer []byte
	release         func()
}

// known is what a request was answered with last.
type known struct {
	answer []byte // as answercache.Request keeps it
	at     time.Time
	url    string
}

// New returns a Watch, which looks at nothing until Run. It calls changed with each answer that has changed, and
// skipped for each call that it had no time or memory for.
func New(c *codec.Codec, changed func(Change), skipped func(), logger *slog.Logger) *Watch {
	w := &Watch{
		codec: c, changed: changed, skipped: skipped, logger: logger,
		pace:    rate.NewLimiter(limits.DriftBytesPerSecond>>10, limits.DriftQueueBytes>>10),
		pending: make(chan *answered, limits.DriftQueueCalls), compare: answerdiff.Comparer{Codec: c, Ignore: isMessage},
	}
	w.known = lru.NewWithEvictionFunc(limits.DriftAnswers, func(_ lru.Key, v any) { w.used -= v.(*known).bytes() })
	return w
}

// isMessage reports whether a pointer is that of a message, which some extensions write in another way each time.
func isMessage(pointer string) bool { return pointer == "/message" }

func (k *known) bytes() int64 { return int64(len(k.answer)) + entryBytes }

// entryBytes is what an answer that is kept takes besides its text.
const entryBytes = 256

// Link returns the link of the chain that looks at calls as the next Caller sees them. A nil Watch looks at none.
func (w *Watch) Link(keep recording.Keep) extension.Link {
	return func(next extension.Caller) extension.Caller {
		if w == nil {
			return next
		}
		return func(ctx context.Context, c extension.Call) (extension.Result, error) {
			result, err := next(ctx, c)
			if err == nil && c.Hook.ReadOnly() && c.Handler.Registration.InProcess == nil &&
				!w.add(c, keep(ctx), result.Response) {
				w.skipped()
			}
			return result, err
		}
	}
}

// add adds a call to those that are looked at, unless there is no time or memory for it. It copies the texts, whose
// memory the call gives back.
func (w *Watch) add(c extension.Call, keep func(int64) (func(), bool), answer proto.Message) bool {
	least := limits.DriftCallLeast + len(c.Body)
	if len(c.Body) > limits.DriftCallBytes || len(w.pending) == cap(w.pending) || w.pace.Tokens() < float64(least>>10) {
		return false // before any work
	}
	request := codec.BodyOf(c.Body)
	var err error
	if c.Body == nil {
		if request, err = w.codec.EncodeWithin(c.Request, limits.DriftCallBytes, codec.Guard{}); err != nil {
			return false
		}
	}
	size := request.Size()
	encoded, err := w.codec.EncodeWithin(answer, limits.DriftCallBytes-size, codec.Guard{})
	if err != nil {
		return false
	}
	size += encoded.Size()
	if !w.pace.AllowN(time.Now(), int(size+limits.DriftCallLeast)>>10) {
		return false
	}
	if w.queued.Add(size) > limits.DriftQueueBytes {
		w.queued.Add(-size)
		return false
	}
	release, ok := keep(2 * size)
	if !ok {
		w.queued.Add(-size)
		return false
	}
	a := &answered{
		call: c, at: time.Now(), request: request.AppendTo(make([]byte, 0, request.Size())),
		answer: encoded.AppendTo(make([]byte, 0, encoded.Size())),
		release: func() {
			release()
			w.queued.Add(-size)
		},
	}
	a.call.Request, a.call.Partial, a.call.Elements, a.call.Body, a.call.Memory = nil, nil, nil, nil, nil
	select {
	case w.pending <- a:
		return true
	default:
		a.release()
		return false
	}
}

// Run looks at calls until ctx is done.
func (w *Watch) Run(ctx context.Context) error {
	for {
		select {
		case a := <-w.pending:
			if err := w.look(a); err != nil {
				w.logger.Debug("an answer was not compared with the one before", "handler", a.call.Handler.Name,
					"call_id", a.call.ID, "error", err)
			}
			a.release()
		case <-ctx.Done():
			return nil
		}
	}
}

// look compares an answer with the last one to an equal request, and keeps it in the place of that.
func (w *Watch) look(a *answered) error {
	h := a.call.Hook
	request, answer := h.Request.New().Interface(), h.Response.New().Interface()
	if err := w.codec.Decode(a.request, request); err != nil {
		return fmt.Errorf("decode request: %w", err)
	}
	if err := w.codec.Decode(a.answer, answer); err != nil {
		return fmt.Errorf("decode answer: %w", err)
	}
	key, ok := answercache.RequestOf(request, a.call.Handler.Registration.Name, a.call.Handler.Handler.Name, h.String())
	if !ok {
		return nil
	}
	kept, ok := key.Encode(answer)
	if !ok {
		return nil
	}
	now := &known{kept, a.at, a.call.Handler.Registration.ClientConfig.URL}
	v, ok := w.known.Get(key.Key)
	if !ok {
		w.keep(key.Key, now)
		return nil
	}
	before := v.(*known)
	if bytes.Equal(before.answer, kept) {
		before.at = a.at
		return nil
	}
	was := h.Response.New().Interface()
	if err := key.Decode(before.answer, was); err != nil {
		return fmt.Errorf("decode the answer before: %w", err)
	}
	w.keep(key.Key, now)
	found, err := w.compare.Compare(request, was, answer)
	if err != nil || len(found) == 0 {
		return err
	}
	change := Change{
		Handler: a.call.Handler, Hook: h.Hook, CallID: a.call.ID, Message: message(found, before, now),
	}
	change.Namespace, change.Cluster = subject.Cluster(request)
	w.changed(change)
	return nil
}

// keep keeps an answer, and forgets those used least recently for which there is no room.
func (w *Watch) keep(key answercache.Key, k *known) {
	w.known.Remove(key)
	w.known.Add(key, k)
	for w.used += k.bytes(); w.used > limits.DriftBytes; {
		w.known.RemoveOldest()
	}
}

// message returns the text about the differences of an answer.
func message(found []answerdiff.Difference, before, now *known) string {
	var places []string
	for _, d := range found {
		place := d.Path
		switch {
		case d.Path == "":
			place = "its patches cannot be applied"
		case d.Object != "":
			place = d.Object + ": " + place
		}
		places = append(places, place)
	}
	what := text.Join(places, ", ", limits.DriftPlaces)
	if before.url != now.url {
		return "an equal request has another answer since the URL of the ExtensionConfig has changed: " + what
	}
	return "an equal request has another answer than before: " + what
}
