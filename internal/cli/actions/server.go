// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package actions

import (
	"bytes"
	"context"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/contract/redact"
)

// tokenField is the field of forms that this process has made.
const tokenField = "token"

// policy lets a page have its style and send its form, and nothing else.
const policy = "default-src 'none'; style-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

//go:embed page
var files embed.FS

var templates = template.Must(template.ParseFS(files, "page/*.html"))

// Config configures a Server.
type Config struct {
	// Address is where the server listens, 127.0.0.1:PORT.
	Address string
	// Page is the URL of the page of the gateway.
	Page string
	// Target says what is acted on, and with whose rights.
	Target  string
	Actions []Action
	// Log gets a line for each action.
	Log io.Writer
}

// Server serves the pages. It is safe for concurrent use.
type Server struct {
	config     Config
	keys       keys
	protection *http.CrossOriginProtection
	running    chan struct{} // has a place for each action
	mux        *http.ServeMux
	log        *slog.Logger
}

// New returns a Server.
func New(config Config) *Server {
	s := &Server{
		config: config, keys: newKeys(), protection: http.NewCrossOriginProtection(),
		running: make(chan struct{}, limits.DashboardActions), mux: http.NewServeMux(),
		log: slog.New(slog.NewTextHandler(config.Log, nil)),
	}
	s.mux.HandleFunc("GET /{$}", s.enter)
	s.mux.HandleFunc("POST /{$}", s.enter)
	s.mux.HandleFunc("GET /style.css", func(w http.ResponseWriter, _ *http.Request) {
		content, _ := files.ReadFile("page/style.css") // it is embedded
		w.Header().Set("Content-Type", "text/css; charset=utf-8")
		_, _ = w.Write(content)
	})
	for i := range config.Actions {
		a := &config.Actions[i]
		s.mux.HandleFunc("GET /"+a.Name, s.locked(a, s.show))
		s.mux.HandleFunc("POST /"+a.Name, s.locked(a, s.act))
	}
	return s
}

// Code is what a browser must show once, and Link the address that shows it.
func (s *Server) Code() string { return s.keys.code }

// Link is the address at which a browser may act from then on. It leads to the page of the gateway.
func (s *Server) Link() string { return "http://" + s.config.Address + "/?code=" + s.keys.code }

// Header returns the value of status.ActionsHeader.
func (s *Server) Header() string {
	_, port, _ := net.SplitHostPort(s.config.Address)
	header := []string{port}
	for i := range s.config.Actions {
		header = append(header, s.config.Actions[i].Name)
	}
	return strings.Join(header, " ")
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // without a referrer, the origin of a form would be null
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
	if code, why := s.refusal(r); code != 0 {
		http.Error(w, why, code)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, 3*limits.DashboardFormBytes) // as it is encoded
	s.mux.ServeHTTP(w, r)
}

// page is what a template shows.
type page struct {
	Title, Back, Target string
	Does, Notice, Error string
	Text, Question      string
	Action, Token, Next string
	Hidden              []shownField
	Edited              []shownField
}

// shownField is a field of a form.
type shownField struct {
	Field
	Value string
}

func (s *Server) render(w http.ResponseWriter, code int, name string, p *page) {
	p.Back, p.Target = s.config.Page, s.config.Target
	var b bytes.Buffer
	if err := templates.ExecuteTemplate(&b, name, p); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(b.Bytes()) // the browser has left
}

// enter takes the code, from the link or the form, and redirects to the page that the browser wanted.
func (s *Server) enter(w http.ResponseWriter, r *http.Request) {
	code, next := r.URL.Query().Get("code"), s.config.Page
	if r.Method == http.MethodPost {
		code, next = r.PostFormValue("code"), local(r.PostFormValue("next"))
		if next == "/" {
			next = s.config.Page
		}
	}
	switch {
	case s.keys.isCode(code):
		s.unlock(w)
		http.Redirect(w, r, next, http.StatusSeeOther) //nolint:gosec // see local
	case code == "" && s.isUnlocked(r):
		http.Redirect(w, r, s.config.Page, http.StatusSeeOther)
	default:
		p := &page{Title: "Enter the code", Next: local(r.PostFormValue("next"))}
		if code != "" {
			p.Error = "This is not the code of this process."
		}
		s.render(w, http.StatusUnauthorized, "enter.html", p)
	}
}

// locked returns a handler of an action that asks for the code first, and bounds how many run.
func (s *Server) locked(a *Action, f func(http.ResponseWriter, *http.Request, *Action)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if !s.isUnlocked(r) {
			next := "/"
			if r.Method == http.MethodGet {
				next = r.URL.RequestURI()
			}
			s.render(w, http.StatusUnauthorized, "enter.html", &page{Title: "Enter the code", Next: next})
			return
		}
		select {
		case s.running <- struct{}{}:
			defer func() { <-s.running }()
			f(w, r, a)
		default:
			w.Header().Set("Retry-After", "5")
			s.render(w, http.StatusServiceUnavailable, "result.html", &page{
				Title: a.Title,
				Error: fmt.Sprintf("%d actions are already running: try again in a few seconds", limits.DashboardActions),
			})
		}
	}
}

// show says what an action would change, and changes nothing.
func (s *Server) show(w http.ResponseWriter, r *http.Request, a *Action) {
	v, err := a.values(r.URL.Query(), false)
	if err != nil {
		s.end(w, a, "", err)
		return
	}
	ctx, cancel := deadline(r.Context(), limits.DashboardActionTime)
	defer cancel()
	if a.Prepare != nil {
		a.Prepare(ctx, v)
	}
	if !a.Asks {
		s.confirm(w, http.StatusOK, a, v, &page{Token: s.token(a, v, nil)})
		return
	}
	out, asked, err := run(ctx, a, v, func([]byte) bool { return false })
	s.ask(w, http.StatusOK, a, v, &page{}, out, asked, err)
}

// token returns the token of a form: for an action, its arguments, and the sum of what is confirmed.
func (s *Server) token(a *Action, v Values, sum []byte) string {
	return s.keys.sign(s.parts(a, v, sum)...)
}

func (s *Server) parts(a *Action, v Values, sum []byte) []string {
	parts := []string{"form", a.Name, string(sum)}
	for i := range a.Fields {
		if f := &a.Fields[i]; !f.Edited {
			parts = append(parts, f.Name, v[f.Name])
		}
	}
	return parts
}

// ask shows the question of an action that has changed nothing, or its end without one.
func (s *Server) ask(
	w http.ResponseWriter, code int, a *Action, v Values, p *page, out *printed, asked *answer, err error,
) {
	if !asked.asked {
		s.end(w, a, out.String(), err)
		return
	}
	p.Text, p.Question = asked.question()
	p.Token = s.token(a, v, asked.sum)
	s.confirm(w, code, a, v, p)
}

func (s *Server) confirm(w http.ResponseWriter, code int, a *Action, v Values, p *page) {
	p.Title, p.Does, p.Action = a.Title, a.Does, a.Name
	for _, f := range a.Fields {
		shown := shownField{f, v[f.Name]}
		if f.Edited {
			p.Edited = append(p.Edited, shown)
		} else if shown.Value != "" {
			p.Hidden = append(p.Hidden, shown)
		}
	}
	s.render(w, code, "confirm.html", p)
}

// act does what was confirmed.
func (s *Server) act(w http.ResponseWriter, r *http.Request, a *Action) {
	if err := r.ParseForm(); err != nil {
		s.end(w, a, "", cmdline.Usagef("read the form: %w", err))
		return
	}
	token := r.PostForm.Get(tokenField)
	v, err := a.values(r.PostForm, true)
	if err != nil {
		s.end(w, a, "", err)
		return
	}
	if !a.Asks && !s.keys.isSigned(token, s.parts(a, v, nil)...) {
		s.render(w, http.StatusForbidden, "result.html", &page{
			Title: a.Title, Error: "Another process made this form: go back to the page, and begin again.",
		})
		return
	}
	if a.Streams {
		s.stream(w, r, a, v)
		return
	}
	// Who closes the page does not break off what has begun.
	ctx, cancel := deadline(context.WithoutCancel(r.Context()), limits.DashboardActionTime)
	defer cancel()
	out, asked, err := run(ctx, a, v, func(sum []byte) bool { return s.keys.isSigned(token, s.parts(a, v, sum)...) })
	if asked.asked && !asked.yes {
		s.ask(w, http.StatusConflict, a, v, &page{
			Notice: "Nothing was done, because what would change is not what you have confirmed. Check it, and confirm again.",
		}, out, asked, err)
		return
	}
	s.record(a, v, err)
	s.end(w, a, afterQuestion(out, asked), err)
}

// afterQuestion returns what was printed, without the question that was answered.
func afterQuestion(out *printed, asked *answer) string {
	all := out.String()
	if !asked.asked {
		return all
	}
	return strings.TrimPrefix(all, asked.shown)
}

// record writes a line about what was done.
func (s *Server) record(a *Action, v Values, err error) {
	result := "done"
	if err != nil {
		result = said(err)
	}
	s.log.Info("action", "name", a.Name, "arguments", strings.Join(a.about(v), " "), "result", result)
}

// said returns the text of an error, as commands print it.
func said(err error) string {
	return text.PrintableLines(redact.Bounded(err.Error(), limits.MergedMessageBytes))
}

// end shows what has come of an action.
func (s *Server) end(w http.ResponseWriter, a *Action, shown string, err error) {
	p := &page{Title: a.Title, Text: shown}
	if err != nil {
		p.Error = said(err)
	}
	s.render(w, codeOf(err), "result.html", p)
}

// codeOf returns the status code for an error. An error of the API server keeps its own.
func codeOf(err error) int {
	var usage cmdline.UsageError
	var status apierrors.APIStatus
	switch {
	case err == nil:
		return http.StatusOK
	case errors.As(err, &usage):
		return http.StatusBadRequest
	case errors.As(err, &status) && status.Status().Code >= http.StatusBadRequest:
		return int(status.Status().Code)
	}
	return http.StatusUnprocessableEntity
}

func deadline(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, d, fmt.Errorf("not done within %s", d))
}

var _ http.Handler = (*Server)(nil)
