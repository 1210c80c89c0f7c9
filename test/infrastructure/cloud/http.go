// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cloud

import (
	"bytes"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"strings"

	"github.com/hookgate/hookgate/test/infrastructure/cloud/api"
)

var (
	keyPattern     = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._:-]{0,252}$`)
	namePattern    = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,61}[a-z0-9])?$`)
	versionPattern = regexp.MustCompile(`^v[0-9]+\.[0-9]+\.[0-9]+[-+.0-9A-Za-z]{0,100}$`)
)

func validName(name string) bool       { return namePattern.MatchString(name) }
func validVersion(version string) bool { return versionPattern.MatchString(version) }

// statuses are of HTTP, by the reason of an error.
var statuses = map[string]int{
	api.InvalidParameters:    http.StatusBadRequest,
	api.CredentialsInvalid:   http.StatusUnauthorized,
	api.QuotaExceeded:        http.StatusForbidden,
	api.NotFound:             http.StatusNotFound,
	api.Conflict:             http.StatusConflict,
	api.TooLarge:             http.StatusRequestEntityTooLarge,
	api.InsufficientCapacity: http.StatusServiceUnavailable,
	api.Unavailable:          http.StatusServiceUnavailable,
}

// fail returns an error of the API.
func fail(reason, format string, values ...any) *api.Error {
	status, ok := statuses[reason]
	if !ok {
		status = http.StatusInternalServerError
	}
	return &api.Error{Status: status, Reason: reason, Message: shorten(fmt.Sprintf(format, values...))}
}

// shorten bounds a text.
func shorten(text string) string {
	return strings.ToValidUTF8(text[:min(len(text), maxText)], "")
}

// checkTags returns an error unless there are few and short tags.
func checkTags(tags map[string]string) error {
	if len(tags) > maxTags {
		return fail(api.InvalidParameters, "tags: more than %d", maxTags)
	}
	for name, value := range tags {
		if name == "" || strings.Contains(name, "=") || len(name)+len(value) > maxText {
			return fail(api.InvalidParameters, "tags: a name is not empty, has no =, and has at most %d bytes with its value",
				maxText)
		}
	}
	return nil
}

// action answers a request while the cloud is locked: with a status and the value of the body.
type action func(*http.Request) (int, any, error)

// newRoutes returns what the cloud does, by method and path.
func (c *Cloud) newRoutes() *http.ServeMux {
	routes := http.NewServeMux()
	for pattern, do := range map[string]action{
		"PUT /networks/{id}":            c.servePutNetwork,
		"GET /networks/{id}":            c.serveGetNetwork,
		"DELETE /networks/{id}":         c.serveDeleteNetwork,
		"GET /networks/{id}/kubeconfig": c.serveKubeconfig,
		"PUT /machines/{id}":            c.servePutMachine,
		"POST /machines":                c.servePostMachine,
		"GET /machines":                 c.serveListMachines,
		"GET /machines/{id}":            c.serveGetMachine,
		"PATCH /machines/{id}":          c.servePatchMachine,
		"DELETE /machines/{id}":         c.serveDeleteMachine,
		"POST /machines/{id}/vanish":    c.serveVanish,
		"PUT /groups/{id}":              c.servePutGroup,
		"GET /groups/{id}":              c.serveGetGroup,
		"DELETE /groups/{id}":           c.serveDeleteGroup,
		"GET /counts":                   c.serveCounts,
		"GET /events":                   c.serveEvents,
		"GET /faults":                   c.serveGetFaults,
		"PUT /faults":                   c.servePutFaults,
		"DELETE /faults":                c.serveDeleteFaults,
	} {
		routes.Handle(pattern, c.serve(pattern, do))
	}
	return routes
}

// serve returns the handler of an action.
func (c *Cloud) serve(pattern string, do action) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		r.Body = http.MaxBytesReader(w, r.Body, maxBody)
		body, err := io.ReadAll(r.Body)
		if err != nil {
			reply(w, 0, nil, fail(api.TooLarge, "a body has at most %d bytes", maxBody))
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body)) // read before the cloud is locked
		status, value, err := func() (int, any, error) {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.requests[pattern]++
			return do(r)
		}()
		if r.Method != http.MethodGet {
			c.wake()
		}
		reply(w, status, value, err)
	})
}

// ServeHTTP answers a request, unless a fault is in its way.
func (c *Cloud) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	select {
	case c.slots <- struct{}{}:
		defer func() { <-c.slots }()
	default:
		reply(w, 0, nil, fail(api.Unavailable, "%d requests are being answered", maxRequests))
		return
	}
	if c.config.Token != "" {
		token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
		if subtle.ConstantTimeCompare([]byte(token), []byte(c.config.Token)) != 1 {
			reply(w, 0, nil, fail(api.CredentialsInvalid, "the bearer token is missing or is another"))
			return
		}
	}
	c.mu.Lock()
	rule, changed := c.faults.match(r), c.faults.changed
	c.mu.Unlock()
	if rule == nil {
		c.routes.ServeHTTP(w, r)
		return
	}
	if rule.After {
		c.routes.ServeHTTP(&discard{header: http.Header{}}, r)
	}
	switch rule.Action {
	case api.ActionHang:
		select {
		case <-changed:
		case <-r.Context().Done():
		}
		panic(http.ErrAbortHandler)
	case api.ActionClose:
		panic(http.ErrAbortHandler)
	case api.ActionGarbage:
		_, _ = io.WriteString(w, `{"items": [{"id": "i-`)
	case api.ActionError:
		failure := fail(rule.Reason, "a fault that the test set")
		if rule.Status != 0 {
			failure.Status = rule.Status
		}
		reply(w, 0, nil, failure)
	}
}

// discard is an answer that nothing sees.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header             { return d.header }
func (*discard) WriteHeader(int)                   {}
func (*discard) Write(content []byte) (int, error) { return len(content), nil }

// reply writes an answer: err, if there is one, or value as JSON, or value as it is if it is bytes.
func reply(w http.ResponseWriter, status int, value any, err error) {
	if err != nil {
		var failure *api.Error
		if !errors.As(err, &failure) {
			failure = fail("Internal", "%v", err)
		}
		status, value = failure.Status, failure
	}
	if content, ok := value.([]byte); ok {
		w.Header().Set("Content-Type", "application/yaml")
		w.WriteHeader(status)
		_, _ = w.Write(content)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if value != nil {
		_ = json.NewEncoder(w).Encode(value) // the caller may have left
	}
}

// decode reads the body of a request: one JSON document without members that are not known.
func decode(r *http.Request, into any) error {
	decoder := json.NewDecoder(r.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(into); err != nil {
		return fail(api.InvalidParameters, "the body: %v", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return fail(api.InvalidParameters, "the body has more than one document")
	}
	return nil
}

// decodeKeyed reads the body of a PUT, whose path has the caller's key.
func decodeKeyed(r *http.Request, into any) (string, error) {
	key := r.PathValue("id")
	if !keyPattern.MatchString(key) {
		return "", fail(api.InvalidParameters, "a key has from 1 to 253 letters, digits and ._:-")
	}
	return key, decode(r, into)
}

// made returns the status of something that was put.
func made(created bool) int {
	if created {
		return http.StatusCreated
	}
	return http.StatusOK
}

func (c *Cloud) serveCounts(*http.Request) (int, any, error) {
	return http.StatusOK, c.counts(), nil
}

func (c *Cloud) serveEvents(r *http.Request) (int, any, error) {
	after := 0
	if text := r.URL.Query().Get("after"); text != "" {
		var err error
		if after, err = strconv.Atoi(text); err != nil {
			return 0, nil, fail(api.InvalidParameters, "after: %q is not a number", text)
		}
	}
	return http.StatusOK, c.eventsAfter(after), nil
}

func (c *Cloud) serveGetFaults(*http.Request) (int, any, error) {
	return http.StatusOK, c.faults.describe(), nil
}

func (c *Cloud) servePutFaults(r *http.Request) (int, any, error) {
	var wanted api.Faults
	if err := decode(r, &wanted); err != nil {
		return 0, nil, err
	}
	if err := c.faults.set(wanted); err != nil {
		return 0, nil, err
	}
	return http.StatusOK, c.faults.describe(), nil
}

func (c *Cloud) serveDeleteFaults(*http.Request) (int, any, error) {
	c.faults.clear()
	return http.StatusNoContent, nil, nil
}
