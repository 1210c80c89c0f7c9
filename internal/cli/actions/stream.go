// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"context"
	"html/template"
	"net/http"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
)

// stream does what was confirmed, and shows what it prints as it goes. It ends when the page is closed.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, a *Action, v Values) {
	ctx, cancel := deadline(r.Context(), a.Longest)
	defer cancel()
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	p := &page{Title: a.Title, Back: s.config.Page, Target: s.config.Target}
	_ = templates.ExecuteTemplate(w, "begun.html", p)
	out := &flowing{w: w, control: http.NewResponseController(w), cancel: cancel}
	_ = out.control.SetReadDeadline(time.Time{}) // otherwise the server's own, for the form, ends the action
	_ = out.control.Flush()
	err := a.Run(ctx, v, http.NoBody, out)
	s.record(a, v, err)
	if err != nil {
		p.Error = said(err)
	}
	_ = templates.ExecuteTemplate(w, "ended.html", p)
}

// flowing sends what is printed at once. It ends an action whose page is closed.
type flowing struct {
	w       http.ResponseWriter
	control *http.ResponseController
	cancel  context.CancelFunc
	sent    int
}

func (f *flowing) Write(b []byte) (int, error) {
	if f.sent += len(b); f.sent > limits.DashboardOutputBytes {
		return len(b), nil
	}
	template.HTMLEscape(f.w, b)
	if err := f.control.Flush(); err != nil {
		f.cancel()
	}
	return len(b), nil
}
