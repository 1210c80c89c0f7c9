// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package webhook

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/contract/jsonscan"
)

// bounds limits the requests that reach a handler. Whatever a peer can do slowly, which is sending a body and reading
// an answer, takes none of the places in which requests are answered, and only a share of the memory for bodies:
// everyone who reaches the port can do it. It is safe for concurrent use.
type bounds struct {
	limit    int64               // of the bytes of a body or an answer
	values   int64               // of the JSON values of a body
	patience time.Duration       // for a body to come
	bytes    *shares             // of bodies that come or wait, and of answers that are read
	places   *shares             // in which requests are answered
	work     *semaphore.Weighted // JSON values in these places
}

func conversionBounds() *bounds {
	return &bounds{
		limit: limits.ConversionBytes, values: limits.ConversionValues, patience: limits.WebhookReceiveTimeout,
		bytes:  newShares(2*limits.ConversionBytes, limits.ConversionBytes),
		places: newShares(limits.Conversions, limits.HostConversions),
		work:   semaphore.NewWeighted(limits.ConversionValues),
	}
}

func admissionBounds() *bounds {
	return &bounds{
		limit: limits.AdmissionBytes, values: limits.AdmissionValues, patience: limits.WebhookReceiveTimeout,
		bytes:  newShares(limits.Admissions*limits.AdmissionBytes, 2*limits.AdmissionBytes),
		places: newShares(limits.Admissions, limits.HostAdmissions),
		work:   semaphore.NewWeighted(limits.AdmissionValues),
	}
}

// around returns a handler of the requests that next answers.
func (b *bounds) around(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.ContentLength > b.limit {
			b.refuseLarge(w)
			return
		}
		size := r.ContentLength
		if size < 0 {
			size = b.limit
		}
		host := hostOf(r)
		release, err := b.bytes.take(r.Context(), host, size)
		if err != nil {
			refuse(w, err)
			return
		}
		defer release()
		body, values, ok := b.read(w, r, size)
		if !ok {
			return
		}
		answer, err := b.answer(next, r, host, body, values)
		if err != nil {
			refuse(w, err)
			return
		}
		if more := int64(answer.body.Len()) - size; more > 0 {
			release, ok := b.bytes.try(host, more)
			if !ok {
				refuse(w, errCrowded)
				return
			}
			defer release()
		}
		answer.send(w)
	})
}

// read returns the body and the number of its JSON values, or refuses the request.
func (b *bounds) read(w http.ResponseWriter, r *http.Request, size int64) (body []byte, values int64, ok bool) {
	// A writer without deadlines, as in tests, has a body that does not stall.
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Now().Add(b.patience))
	read := bytes.NewBuffer(make([]byte, 0, min(size, firstBuffer)+bytes.MinRead))
	_, err := read.ReadFrom(http.MaxBytesReader(w, r.Body, b.limit))
	_, tooLarge := errors.AsType[*http.MaxBytesError](err)
	switch {
	case tooLarge:
		b.refuseLarge(w)
		return nil, 0, false
	case err != nil:
		http.Error(w, fmt.Sprintf("the request did not arrive completely within %s", b.patience), http.StatusRequestTimeout)
		return nil, 0, false
	}
	_ = control.SetReadDeadline(time.Time{})
	if values = int64(jsonscan.Count(read.Bytes()).Values); values > b.values {
		http.Error(w, fmt.Sprintf("the request has %d JSON values, more than the %d that are read", values, b.values),
			http.StatusRequestEntityTooLarge)
		return nil, 0, false
	}
	return read.Bytes(), values, true
}

// firstBuffer bounds the memory for a body before any of it has come.
const firstBuffer = 256 << 10

func (b *bounds) refuseLarge(w http.ResponseWriter) {
	http.Error(w, fmt.Sprintf("the request has more than %d MiB", b.limit>>20), http.StatusRequestEntityTooLarge)
}

// answer returns what next answers, when there is a place. The values of a body decide what a decoder allocates, not
// its bytes.
func (b *bounds) answer(
	next http.Handler, r *http.Request, host netip.Prefix, body []byte, values int64,
) (*answer, error) {
	leave, err := b.places.take(r.Context(), host, 1)
	if err != nil {
		return nil, err
	}
	defer leave()
	if err := b.work.Acquire(r.Context(), values); err != nil {
		return nil, err
	}
	defer b.work.Release(values)
	r.Body = io.NopCloser(bytes.NewReader(body))
	a := &answer{header: http.Header{}, code: http.StatusOK}
	next.ServeHTTP(a, r)
	if int64(a.body.Len()) > b.limit {
		return nil, fmt.Errorf("the answer has more than %d MiB", b.limit>>20)
	}
	return a, nil
}

// answer keeps an answer until it is sent.
type answer struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) Write(p []byte) (int, error) { return a.body.Write(p) }
func (a *answer) WriteHeader(code int)        { a.code = code }

func (a *answer) send(w http.ResponseWriter) {
	maps.Copy(w.Header(), a.header)
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(a.code)
	_, _ = w.Write(a.body.Bytes()) //nolint:gosec // it is JSON for the API server, which may have left
}

// errCrowded means that a host has as many requests as it may have.
var errCrowded = errors.New("too many requests from this host at the same time")

func refuse(w http.ResponseWriter, err error) {
	if errors.Is(err, context.Canceled) {
		return // the API server gave up
	}
	w.Header().Set("Retry-After", "1")
	http.Error(w, err.Error(), http.StatusServiceUnavailable)
}

// shares is something of which each host gets only a part, so that none keeps it from the others.
type shares struct {
	all  *semaphore.Weighted
	each int64

	mu    sync.Mutex
	hosts map[netip.Prefix]*share // those that have or want some
}

type share struct {
	left  *semaphore.Weighted
	users int
}

func newShares(all, each int64) *shares {
	return &shares{all: semaphore.NewWeighted(all), each: each, hosts: map[netip.Prefix]*share{}}
}

// take waits for n, which is at most the share of a host, and returns a function that gives it back.
func (s *shares) take(ctx context.Context, host netip.Prefix, n int64) (func(), error) {
	h := s.enter(host)
	if h == nil {
		return nil, errCrowded
	}
	if err := h.left.Acquire(ctx, n); err != nil {
		s.leave(host, h)
		return nil, err
	}
	if err := s.all.Acquire(ctx, n); err != nil {
		h.left.Release(n)
		s.leave(host, h)
		return nil, err
	}
	return func() { s.give(host, h, n) }, nil
}

// try is take, unless it would have to wait.
func (s *shares) try(host netip.Prefix, n int64) (func(), bool) {
	h := s.enter(host)
	switch {
	case h == nil:
		return nil, false
	case !h.left.TryAcquire(n):
	case !s.all.TryAcquire(n):
		h.left.Release(n)
	default:
		return func() { s.give(host, h, n) }, true
	}
	s.leave(host, h)
	return nil, false
}

func (s *shares) give(host netip.Prefix, h *share, n int64) {
	s.all.Release(n)
	h.left.Release(n)
	s.leave(host, h)
}

// enter returns the share of a host; nil if as many requests of it as may be are there.
func (s *shares) enter(host netip.Prefix) *share {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.hosts[host]
	if h == nil {
		h = &share{left: semaphore.NewWeighted(s.each)}
		s.hosts[host] = h
	}
	if h.users >= limits.WebhookRequests {
		return nil
	}
	h.users++
	return h
}

func (s *shares) leave(host netip.Prefix, h *share) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h.users--; h.users == 0 {
		delete(s.hosts, host)
	}
}

// hostOf returns the remote host of a request: its address, or its network where a host has many.
func hostOf(r *http.Request) netip.Prefix {
	at, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return netip.Prefix{}
	}
	addr, bits := at.Addr().Unmap().WithZone(""), 32
	if addr.Is6() {
		bits = 64
	}
	network, _ := addr.Prefix(bits) // the address has as many bits
	return network
}
