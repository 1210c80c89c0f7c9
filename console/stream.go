// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"fmt"
	"net/http"
	"time"
)

const (
	// maxStreams is the number of pages that follow what happens at the same time. Others can be loaded again.
	maxStreams = 20
	// interval is how often a page looks for changes, and lifetime how long its stream lasts. Browsers open another one
	// then, with authentication.
	interval = time.Second
	lifetime = 10 * time.Minute
	// patience is how long a browser may take to read an event.
	patience = 10 * time.Second
)

// stream sends the main part of a page whenever it has changed, as server-sent events.
func (h *Handler) stream(w http.ResponseWriter, r *http.Request, show func(r *http.Request) (*view, int)) {
	select {
	case h.streams <- struct{}{}:
		defer func() { <-h.streams }()
	default:
		w.Header().Set("Retry-After", "10")
		http.Error(w, fmt.Sprintf("%d pages follow this gateway already", maxStreams), http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	control := http.NewResponseController(w)
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	end := time.NewTimer(lifetime)
	defer end.Stop()
	var last []byte
	for {
		v, _ := show(r)
		body, err := h.render(v.Section, v)
		if err != nil {
			return
		}
		event := []byte(": nothing has changed\n\n")
		if !bytes.Equal(body, last) {
			event, last = eventOf(body), body
		}
		_ = control.SetWriteDeadline(time.Now().Add(patience)) // otherwise the server's own ends the stream
		if _, err := w.Write(event); err != nil || control.Flush() != nil {
			return
		}
		select {
		case <-ticker.C:
		case <-end.C:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// eventOf returns an event with a text.
func eventOf(body []byte) []byte {
	var b bytes.Buffer
	for line := range bytes.Lines(body) {
		b.WriteString("data: ")
		b.Write(bytes.TrimRight(line, "\r\n"))
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	return b.Bytes()
}
