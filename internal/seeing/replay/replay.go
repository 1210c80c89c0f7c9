// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package replay sends the requests of a recording to a server and compares its answers with those that were recorded.
// Patches are compared by what they make of the objects. How the server is called, and under which name it has a
// handler, is up to others.
//
// A Replay belongs to one goroutine.
package replay

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/recording"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/redact"
	"github.com/hookgate/hookgate/internal/contract/subject"
	"github.com/hookgate/hookgate/internal/kinds/hookjob"
	"github.com/hookgate/hookgate/internal/seeing/answerdiff"
)

// Config describes a Replay. Hooks, Codec, Call and Target are required.
type Config struct {
	Hooks *catalog.Catalog
	Codec *codec.Codec
	// Target returns the name by which the server has the handler of a record, or an error if it has none.
	Target func(ctx context.Context, h *catalog.Hook, r *recording.Record) (handler string, err error)
	// Call calls a handler of the server. An error that is an *AnswerError is an answer that differs.
	Call func(ctx context.Context, h *catalog.Hook, handler string, request proto.Message) (proto.Message, error)
	// Ignore are the JSON pointers of what may differ, in answers and in the objects that patches change.
	Ignore redact.Patterns
	// Handler and Hook are the only ones to replay; empty means all.
	Handler, Hook string
	// All replays hooks that act, too.
	All bool
	// Interval is the time between two calls; 0 means none.
	Interval time.Duration
}

// AnswerError is an error that the server answered with.
type AnswerError struct{ Err error }

// Error returns the text of the error.
func (e *AnswerError) Error() string { return e.Err.Error() }

// Unwrap returns the error.
func (e *AnswerError) Unwrap() error { return e.Err }

// Result is what came of a replay.
type Result struct {
	Equal     int `json:"equal"`
	Different int `json:"different"`
	// Failed is the number of records that could not be replayed or compared, each with a Note.
	Failed int `json:"failed"`
	// Comparisons is the number of calls that were left out because a gateway has made them to compare two versions of an
	// extension, and no caller got their answers.
	Comparisons int `json:"comparisons,omitempty"`
	// Acting is the number of calls that were left out because their hooks or handlers act, Unanswered that of those that
	// have no recorded answer, and Filtered that of others that were not asked for. Cut is the number of lines that are
	// cut off.
	Acting     int `json:"acting,omitempty"`
	Unanswered int `json:"unanswered,omitempty"`
	Filtered   int `json:"filtered,omitempty"`
	Cut        int `json:"cut,omitempty"`
	// Redacted is the number of calls that were replayed without values that the recording does not have.
	Redacted int `json:"redacted,omitempty"`
	// Calls are those that differ, with the first differences; Omitted is the number of the others.
	Calls   []Call `json:"calls,omitempty"`
	Omitted int    `json:"omittedDifferences,omitempty"`
	// Notes are the first of what else a reader should know, and OmittedNotes is the number of the others.
	Notes        []string `json:"notes,omitempty"`
	OmittedNotes int      `json:"omittedNotes,omitempty"`

	listed int
}

// Difference is a value of an answer, or of an object that its patches have changed, that is not as it was recorded.
type Difference struct {
	// Object names the object of the request that patches change; empty for a value of the answer itself.
	Object string `json:"object,omitempty"`
	// Path is the JSON pointer of the value in the object, or in the answer.
	Path string `json:"path"`
	// Recorded and Now are the values, as JSON, cut if they are long. They are empty where the value does not exist.
	Recorded string `json:"recorded,omitempty"`
	Now      string `json:"now,omitempty"`
}

// Call is a call whose answers differ.
type Call struct {
	File    string `json:"file"`
	Line    int    `json:"line"`
	CallID  string `json:"callID,omitempty"`
	Hook    string `json:"hook"`
	Handler string `json:"handler"`
	// Cluster is the namespace and the name of the Cluster that the request is about, as far as it says so.
	Cluster     string       `json:"cluster,omitempty"`
	Differences []Difference `json:"differences"`
}

// Replay replays recordings one after the other.
type Replay struct {
	Result

	config  Config
	compare answerdiff.Comparer
	next    time.Time // of the next call
}

// New returns a Replay that has called nothing yet.
func New(c Config) *Replay {
	return &Replay{config: c, compare: answerdiff.Comparer{Codec: c.Codec, Ignore: c.Ignore.Matches}}
}

// Acts reports whether a call of a hook may change something besides its answer.
func Acts(h *catalog.Hook) bool {
	return h.Group != hook.Group || strings.HasPrefix(h.Hook, "After") ||
		h.Category == catalog.InPlaceUpdate && !h.ReadOnly()
}

// File replays a recording. An error is one of reading it, or of ctx; the errors of calls are in the result.
func (r *Replay) File(ctx context.Context, name string, in io.Reader) error {
	lines := recording.NewReader(name, in)
	for {
		record, line, err := lines.Next()
		var wrong *recording.LineError
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.As(err, &wrong) && wrong.Cut:
			r.Cut++
			r.notef("%s, and was not replayed", err)
			continue
		case errors.As(err, &wrong):
			r.Failed++
			r.notef("%s", err)
			continue
		case err != nil:
			return err
		}
		if err := r.record(ctx, name, line, record); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			r.Failed++
			r.notef("%s:%d: %s of handler %q: %s", name, line, record.Hook, record.Handler, err)
		}
	}
}

// record replays a call. An error says why it could not be.
func (r *Replay) record(ctx context.Context, name string, line int, record *recording.Record) error {
	c := &r.config
	if c.Handler != "" && c.Handler != record.Handler && c.Handler != record.Name && c.Handler != record.CalledAs ||
		c.Hook != "" && !strings.EqualFold(c.Hook, record.Hook) {
		r.Filtered++
		return nil
	}
	if record.Comparison && (c.Handler != record.Handler || c.Handler == record.CalledAs) {
		r.Comparisons++
		return nil
	}
	gvh, err := hook.Parse(record.APIVersion, record.Hook)
	if err != nil {
		return err
	}
	h, ok := c.Hooks.Lookup(gvh)
	switch {
	case !ok:
		return fmt.Errorf("%s is not a hook that is known here", gvh)
	case (Acts(h) || record.Kind == hookjob.Kind) && !c.All:
		r.Acting++
		return nil
	case record.Error != nil:
		r.Unanswered++
		return nil
	}
	request, recorded := h.Request.New().Interface(), h.Response.New().Interface()
	if err := c.Codec.Decode(record.Request, request); err != nil {
		return fmt.Errorf("request: %w", err)
	}
	if err := c.Codec.Decode(record.Answer, recorded); err != nil {
		return fmt.Errorf("answer: %w", err)
	}
	handler, err := c.Target(ctx, h, record)
	if err != nil {
		return err
	}
	if err := r.wait(ctx); err != nil {
		return err
	}
	var found []Difference
	now, err := c.Call(ctx, h, handler, request)
	var answered *AnswerError
	switch {
	case errors.As(err, &answered):
		found = []Difference{{Now: redact.Cut("error: "+err.Error(), limits.CellBytes)}}
	case err != nil:
		return err
	default:
		differences, err := r.compare.Compare(request, recorded, now)
		if err != nil {
			return fmt.Errorf("recorded answer: %w", err)
		}
		for _, d := range differences {
			found = append(found, Difference{Object: d.Object, Path: d.Path, Recorded: d.Before, Now: d.After})
		}
	}
	if record.Redacted > 0 {
		r.Redacted++
	}
	if len(found) == 0 {
		r.Equal++
		return nil
	}
	r.Different++
	r.list(Call{
		File: name, Line: line, CallID: record.CallID, Hook: record.Hook, Handler: record.Handler,
		Cluster: clusterOf(request), Differences: found,
	})
	return nil
}

// list adds a call that differs, with as many of its differences as there is room for.
func (r *Replay) list(c Call) {
	room := limits.ReplayDifferences - r.listed
	if len(c.Differences) > room {
		r.Omitted += len(c.Differences) - room
		c.Differences = c.Differences[:room]
	}
	if r.listed += len(c.Differences); len(c.Differences) > 0 {
		r.Calls = append(r.Calls, c)
	}
}

func (r *Replay) notef(format string, args ...any) {
	if len(r.Notes) == limits.ReplayDifferences {
		r.OmittedNotes++
		return
	}
	r.Notes = append(r.Notes, fmt.Sprintf(format, args...))
}

// wait waits for the turn of the next call.
func (r *Replay) wait(ctx context.Context) error {
	if r.config.Interval == 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(time.Until(r.next))
	defer timer.Stop()
	select {
	case <-timer.C:
		r.next = time.Now().Add(r.config.Interval)
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// clusterOf returns the Cluster that a request is about, if it says so.
func clusterOf(request proto.Message) string {
	namespace, name := subject.Cluster(request)
	if name == "" {
		return ""
	}
	return namespace + "/" + name
}
