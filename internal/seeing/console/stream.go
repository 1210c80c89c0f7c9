// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"net/http"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
)

const (
	// maxStreams is the number of pages that follow what happens at the same time. Others can be loaded again.
	maxStreams = limits.FollowingPages
	// interval is how often a page looks for changes, and lifetime how long its stream lasts. Browsers open another one
	// then, with authentication.
	interval = time.Second
	lifetime = 10 * time.Minute
	// patience is how long a browser may take to read an event.
	patience = limits.PageTimeout
)

// stream sends the main part of a page whenever it has changed, and each time when that was looked at, as server-sent
// events.
func (h *Handler) stream(w http.ResponseWriter, r *http.Request, show func(r *http.Request) (*view, int)) {
	select {
	case h.streams <- struct{}{}:
		defer func() { <-h.streams }()
	default:
		w.Header().Set("Retry-After", "10")
		http.Error(w, fmt.Sprintf("%d pages are already following this gateway", maxStreams),
			http.StatusServiceUnavailable)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("Cache-Control", "no-store")
	control := http.NewResponseController(w)
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	end := time.NewTimer(lifetime)
	defer end.Stop()
	var last [sha256.Size]byte // of the main part that was sent
	for {
		v, _ := show(r)
		v.Act = actOf(r)
		body, err := h.render(v.Section, v)
		if err != nil {
			return
		}
		event := updated(v.Gateway.Now)
		if sum := sha256.Sum256(body); sum != last {
			event, last = append(eventOf(body), event...), sum
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

// updated returns the event with the time when the page was made, as page.html has it.
func updated(at time.Time) []byte {
	return fmt.Appendf(nil, "event: updated\ndata: %s\n\n", at.UTC().Format(time.RFC3339))
}

// eventOf returns an event with a text. A carriage return, which a text of an extension may have, would end a line of
// it as well; in a page, it is what a line feed is.
func eventOf(body []byte) []byte {
	var b bytes.Buffer
	body = bytes.ReplaceAll(body, []byte("\r"), []byte("\n"))
	for line := range bytes.Lines(body) {
		b.WriteString("data: ")
		b.Write(bytes.TrimRight(line, "\n"))
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	return b.Bytes()
}
