// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package recording

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/extension"
)

// Path is where the diagnostics address serves the calls of one handler, as they are made.
const Path = "/recording"

// The reasons why a stream ends although its reader is still there.
const (
	EndTime  = "time"
	EndBytes = "bytes"
)

// Order says which calls a stream has.
type Order struct {
	// Handler is the name of a handler as callers know it, or the registered one of a version in an ExtensionRollout.
	Handler string
	// For is how long its calls are recorded, and Bytes the size of their lines together.
	For   time.Duration
	Bytes int64
}

// Query returns the order as the query of a URL.
func (o Order) Query() url.Values {
	return url.Values{
		"handler": {o.Handler}, "for": {o.For.String()}, "bytes": {strconv.FormatInt(o.Bytes, 10)},
	}
}

// Check returns an error unless the order is within the limits.
func (o Order) Check() error {
	switch {
	case o.Handler == "":
		return errors.New("want the name of a handler")
	case o.For <= 0 || o.For > limits.RecordStreamTime:
		return fmt.Errorf("want a duration of at most %s", limits.RecordStreamTime)
	case o.Bytes <= 0 || o.Bytes > limits.DefaultRecordBytes:
		return fmt.Errorf("want at most %d MiB", limits.DefaultRecordBytes>>20)
	}
	return nil
}

func orderOf(q url.Values) (o Order, err error) {
	o.Handler = q.Get("handler")
	if o.For, err = time.ParseDuration(q.Get("for")); err != nil {
		return o, fmt.Errorf("for=%q: want a duration such as 10m", q.Get("for"))
	}
	if o.Bytes, err = strconv.ParseInt(q.Get("bytes"), 10, 64); err != nil {
		return o, fmt.Errorf("bytes=%q: want a number", q.Get("bytes"))
	}
	return o, o.Check()
}

// progressMark begins the lines of a stream that are a Progress, and no call.
const progressMark = '#'

// Progress is what a stream has had so far.
type Progress struct {
	Recorded int `json:"recorded"`
	Dropped  int `json:"dropped"`
	// Ended is one of the reasons above in the last line.
	Ended string `json:"ended,omitempty"`
}

// ProgressOf returns the Progress that a line of a stream is, if it is one.
func ProgressOf(line []byte) (p Progress, ok bool) {
	return p, len(line) > 0 && line[0] == progressMark && json.Unmarshal(line[1:], &p) == nil
}

// stream has the lines of the calls of one handler that its reader has not had yet. It is safe for concurrent use.
type stream struct {
	handler string
	more    chan struct{} // has a value when there are lines, or there will be none

	mu       sync.Mutex
	lines    []byte
	left     int64 // bytes that may still be added
	progress Progress
}

// add adds a line. It reports whether there was room for it.
func (s *stream) add(line []byte) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch size := len(line); {
	case s.progress.Ended != "":
		return true // the reader wants no more
	case int64(size) > s.left:
		s.progress.Ended = EndBytes
	case len(s.lines)+size > limits.RecordStreamBytes:
		s.progress.Dropped++
		return false
	default:
		s.left -= int64(size)
		s.lines = append(s.lines, line...)
		s.progress.Recorded++
	}
	select {
	case s.more <- struct{}{}:
	default:
	}
	return true
}

func (s *stream) dropped() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.progress.Dropped++
}

// take returns the lines that are there, and takes those that were returned before for others.
func (s *stream) take(read []byte) ([]byte, Progress) {
	s.mu.Lock()
	defer s.mu.Unlock()
	lines := s.lines
	s.lines = read[:0]
	return lines, s.progress
}

// streamsOf returns the streams that have a call. Those of a handler as callers know it have no comparisons, whose
// answers no caller gets.
func (r *Recorder) streamsOf(c *extension.Call) (of []*stream) {
	all := r.streams.Load()
	if all == nil {
		return nil
	}
	for _, s := range *all {
		if s.handler == c.CalledAs && !c.Comparison || s.handler == c.Handler.Name && s.handler != c.CalledAs {
			of = append(of, s)
		}
	}
	return of
}

// begin adds a stream, unless there are as many as there may be.
func (r *Recorder) begin(o Order) (*stream, bool) {
	s := &stream{handler: o.Handler, more: make(chan struct{}, 1), left: o.Bytes}
	for {
		old := r.streams.Load()
		var all []*stream
		if old != nil {
			all = *old
		}
		if len(all) >= limits.RecordStreams {
			return nil, false
		}
		all = append(slices.Clone(all), s)
		if r.streams.CompareAndSwap(old, &all) {
			return s, true
		}
	}
}

// end removes a stream.
func (r *Recorder) end(s *stream) {
	for {
		old := r.streams.Load()
		all := slices.DeleteFunc(slices.Clone(*old), func(other *stream) bool { return other == s })
		next := &all
		if len(all) == 0 {
			next = nil
		}
		if r.streams.CompareAndSwap(old, next) {
			return
		}
	}
}

// ServeHTTP answers a POST of Path with the calls of a handler until the time of the order is over, its bytes are used
// up, or the reader leaves: lines as in a file, and between them, each of which begins with #, a Progress.
func (r *Recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	order, err := orderOf(req.URL.Query())
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if order.Handler, err = r.config.Registered(order.Handler); err != nil {
		http.Error(w, err.Error(), http.StatusNotFound)
		return
	}
	s, ok := r.begin(order)
	if !ok {
		w.Header().Set("Retry-After", "60")
		http.Error(w, fmt.Sprintf("%d recordings of handlers are under way already", limits.RecordStreams),
			http.StatusServiceUnavailable)
		return
	}
	defer r.end(s)
	r.config.Logger.Warn("The recording for a reader has begun", "handler", order.Handler, "for", order.For,
		"bytes", order.Bytes, "remote", req.RemoteAddr)
	p := r.send(w, req, s, order.For)
	r.config.Logger.Info("The recording for a reader has ended", "handler", order.Handler, "recorded", p.Recorded,
		"dropped", p.Dropped)
}

// send sends the lines of a stream, and returns what there was.
func (r *Recorder) send(w http.ResponseWriter, req *http.Request, s *stream, most time.Duration) (p Progress) {
	w.Header().Set("Content-Type", "application/jsonl")
	w.Header().Set("Cache-Control", "no-store")
	control := http.NewResponseController(w)
	ticker := time.NewTicker(limits.RecordStreamBeat)
	defer ticker.Stop()
	end := time.NewTimer(most)
	defer end.Stop()
	var lines []byte
	for over := ""; ; {
		lines, p = s.take(lines)
		if p.Ended == "" {
			p.Ended = over
		}
		for piece := range slices.Chunk(lines, limits.RecordBatchBytes) {
			_ = control.SetWriteDeadline(time.Now().Add(limits.RecordStreamPatience))
			if _, err := w.Write(piece); err != nil {
				return p
			}
		}
		said, _ := json.Marshal(p) // which always can be
		_ = control.SetWriteDeadline(time.Now().Add(limits.RecordStreamPatience))
		if _, err := fmt.Fprintf(w, "%c %s\n", progressMark, said); err != nil || control.Flush() != nil || p.Ended != "" {
			return p
		}
		select {
		case <-s.more:
		case <-ticker.C:
		case <-end.C:
			over = EndTime
		case <-req.Context().Done():
			return p
		}
	}
}
