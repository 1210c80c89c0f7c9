// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/redact"
)

// The reasons why calls are not recorded.
const (
	// Queue means that what is to be written had no room: the writer is slower than the calls.
	Queue = "queue"
	// Memory means that the budget of the process had none to spare.
	Memory = "memory"
	// TooLarge means that a line would be larger than limits.RecordLineBytes.
	TooLarge = "too_large"
	// Write means that the file could not be written.
	Write = "write"
	// Form means that a request or an answer could not be written as JSON, or its secrets not be removed.
	Form = "form"
	// SlowReader means that the reader of a stream is slower than the calls.
	SlowReader = "reader"
)

// Observer counts what is recorded. It is safe for concurrent use.
type Observer interface {
	// Recorded counts a call that was written to a file.
	Recorded()
	// RecordingDropped counts a call that was not, for one of the reasons above.
	RecordingDropped(reason string)
}

// Config describes a Recorder. All fields but Files are required.
type Config struct {
	Codec    *codec.Codec
	Redactor *redact.Redactor
	Observer Observer
	Logger   *slog.Logger
	// Registered returns the registered name of a handler, or an error if there is none of that name.
	Registered func(handler string) (string, error)
	// Files is where the lines of all handlers go. Nil records the calls of streams alone.
	Files *Files
}

// Recorder records calls to handlers, into files and for those who read its streams.
type Recorder struct {
	config  Config
	queue   chan *entry
	queued  atomic.Int64              // bytes
	streams atomic.Pointer[[]*stream] // nil for none

	dropped    atomic.Int64 // calls since the last line of the log
	lastLogged atomic.Int64 // nanoseconds of the Unix time
}

// New returns a Recorder, which writes nothing until Run.
func New(c Config) *Recorder {
	return &Recorder{config: c, queue: make(chan *entry, limits.RecordQueueCalls)}
}

// entry is a call that is to be written.
type entry struct {
	call    extension.Call // without its request
	began   time.Time
	took    time.Duration
	text    []byte // the request, and the answer if there is one
	request int    // the size of the request
	err     *Error
	release func()
}

// Keep reserves memory that outlives the call of ctx, as budget.Reservation.Keep does.
type Keep func(ctx context.Context) func(bytes int64) (release func(), ok bool)

// Link returns the link of the chain that records calls as the next Caller sees them. A nil Recorder records none.
func (r *Recorder) Link(keep Keep) extension.Link {
	return func(next extension.Caller) extension.Caller {
		if r == nil {
			return next
		}
		return func(ctx context.Context, c extension.Call) (extension.Result, error) {
			if r.config.Files == nil && r.streamsOf(&c) == nil {
				return next(ctx, c)
			}
			began := time.Now()
			result, err := next(ctx, c)
			e := &entry{call: c, began: began, took: time.Since(began)}
			if reason := r.add(e, keep(ctx), result.Response, err); reason != "" {
				r.lost(&c, reason, nil)
			}
			return result, err
		}
	}
}

// add adds a call to the queue, or returns why not. It copies the texts, whose memory the call gives back.
func (r *Recorder) add(
	e *entry, keep func(int64) (func(), bool), answer proto.Message, failed error,
) (reason string) {
	room := limits.RecordQueueBytes - r.queued.Load()
	if len(r.queue) == cap(r.queue) || int64(len(e.call.Body)) > room {
		return Queue
	}
	request, answered := codec.BodyOf(e.call.Body), codec.Body{}
	var err error
	if e.call.Body == nil {
		if request, err = r.config.Codec.EncodeWithin(e.call.Request, room, codec.Guard{}); err != nil {
			return encodingReason(err)
		}
	}
	size := request.Size()
	e.request = int(size)
	if failed != nil {
		e.err = &Error{Kind: hook.KindOf(failed).String(), Message: redact.Bounded(failed.Error(), limits.MergedMessageBytes)}
	} else {
		if answered, err = r.config.Codec.EncodeWithin(answer, room-size, codec.Guard{}); err != nil {
			return encodingReason(err)
		}
		size += answered.Size()
	}
	if size > limits.RecordLineBytes {
		return TooLarge
	}
	// The line, which is made later, is about as long as the texts.
	charged := 2*size + entryBytes
	if r.queued.Add(charged) > limits.RecordQueueBytes {
		r.queued.Add(-charged)
		return Queue
	}
	release, ok := keep(charged)
	if !ok {
		r.queued.Add(-charged)
		return Memory
	}
	e.release = func() {
		release()
		r.queued.Add(-charged)
	}
	e.text = answered.AppendTo(request.AppendTo(make([]byte, 0, size)))
	e.call.Request, e.call.Partial, e.call.Elements, e.call.Body, e.call.Memory = nil, nil, nil, nil, nil
	select {
	case r.queue <- e:
		return ""
	default:
		e.release()
		return Queue
	}
}

// entryBytes is what an entry takes besides its texts.
const entryBytes = 1 << 10

func encodingReason(err error) string {
	if errors.Is(err, codec.ErrTooLarge) {
		return Queue
	}
	return Form
}

// lost counts a call that neither a file nor a stream has.
func (r *Recorder) lost(c *extension.Call, reason string, cause error) {
	for _, s := range r.streamsOf(c) {
		s.dropped()
	}
	r.drop(reason, cause)
}

// drop counts a call that is not recorded, and logs it at most once in limits.RecordLogInterval.
func (r *Recorder) drop(reason string, cause error) {
	r.config.Observer.RecordingDropped(reason)
	r.dropped.Add(1)
	last, now := r.lastLogged.Load(), time.Now().UnixNano()
	if last > 0 && now-last < int64(limits.RecordLogInterval) || !r.lastLogged.CompareAndSwap(last, now) {
		return
	}
	r.logDropped(reason, cause)
}

// logDropped logs how many calls were dropped since the last line.
func (r *Recorder) logDropped(reason string, cause error) {
	attrs := []any{"calls", r.dropped.Swap(0), "reason", reason}
	if cause != nil {
		attrs = append(attrs, "error", cause)
	}
	r.config.Logger.Warn("calls were not recorded: hookgate_recording_dropped_total counts them", attrs...)
}

// Run writes what is recorded until ctx is done, and then what has been queued, as far as that takes less than
// limits.RecordStop.
func (r *Recorder) Run(ctx context.Context) error {
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.write(ctx)
	}()
	<-ctx.Done()
	select {
	case <-ended:
	case <-time.After(limits.RecordStop):
		r.config.Logger.Warn("the last calls were not recorded: writing the file takes too long")
	}
	return nil
}

// write writes entries until ctx is done and the queue is empty.
func (r *Recorder) write(ctx context.Context) {
	var w writer
	defer func() {
		r.flush(&w)
		if r.config.Files != nil {
			r.config.Files.Close()
		}
		if r.dropped.Load() > 0 {
			r.logDropped("stop", nil)
		}
	}()
	for {
		r.drain(&w)
		r.flush(&w)
		select {
		case e := <-r.queue:
			r.line(&w, e)
			select { // others are written with it: waking up for each would cost more than writing it
			case <-time.After(limits.RecordDelay):
			case <-ctx.Done():
			}
		case <-ctx.Done():
			r.drain(&w)
			return
		}
	}
}

// drain makes the lines of all entries that are queued.
func (r *Recorder) drain(w *writer) {
	for {
		select {
		case e := <-r.queue:
			r.line(w, e)
		default:
			return
		}
	}
}

// writer has the lines that are written together.
type writer struct {
	lines []byte
	calls int
}

// line makes the line of an entry. Lines are written together while others wait.
func (r *Recorder) line(w *writer, e *entry) {
	defer e.release()
	before := len(w.lines)
	lines, err := e.appendLine(w.lines, r.config.Redactor)
	switch {
	case err != nil:
		w.lines = lines[:before]
		r.lost(&e.call, Form, fmt.Errorf("call of %s: %w", e.call.Handler.Name, err))
		return
	case len(lines)-before > limits.RecordLineBytes:
		w.lines = lines[:before]
		r.lost(&e.call, TooLarge, nil)
		return
	}
	for _, s := range r.streamsOf(&e.call) {
		if !s.add(lines[before:]) {
			r.drop(SlowReader, nil)
		}
	}
	w.lines = lines
	w.calls++
	if len(w.lines) >= limits.RecordBatchBytes {
		r.flush(w)
	}
}

// flush writes the lines that are there.
func (r *Recorder) flush(w *writer) {
	if w.calls == 0 {
		return
	}
	if r.config.Files != nil {
		err := r.config.Files.Write(w.lines)
		for range w.calls {
			if err != nil {
				r.drop(Write, err)
			} else {
				r.config.Observer.Recorded()
			}
		}
	}
	w.calls = 0
	if w.lines = w.lines[:0]; cap(w.lines) > 4*limits.RecordBatchBytes {
		w.lines = nil
	}
}
