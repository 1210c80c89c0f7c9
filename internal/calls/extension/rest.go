// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"context"
	"time"

	"github.com/hookgate/hookgate/internal/network/body"
	"github.com/hookgate/hookgate/registry"
)

// REST calls extensions that speak JSON over HTTPS. It is safe for concurrent use.
type REST struct {
	config Config
	routes routes
	bodies body.Reader
	now    func() time.Time

	absences absences
}

// NewREST returns a REST without connections.
func NewREST(config Config) *REST {
	config.setDefaults()
	r := &REST{config: config, bodies: body.Reader{Max: config.BodyBytes, Pool: &body.Pool{}, Keep: true}, now: time.Now}
	r.routes.config = &r.config
	return r
}

// Call sends the request to the handler and returns its answer, a fresh message whose status is Success or Failure. It
// waits until ctx ends, and no longer than the handler's timeout.
//
// An error is a *hook.Error that names the handler:
//   - InvalidRequest, TooLarge: the request cannot be sent
//   - Unreachable: no connection, or one that broke before an answer began
//   - BadResponse: an answer that is wrong, or that ended early
//   - Timeout, Canceled: ctx ended
//   - Internal: a request that is not a message of the catalog
//
// While the extension takes no connections, Call waits for it: for half of the time that is left, and at most until
// limits.RestartWait after the first call that had none. If a connection broke before the end of the request, or if the
// extension asks for it with status code 503 and a Retry-After, Call sends the request again: up to three times, within
// the deadline, and not for more than one call in ten.
func (r *REST) Call(ctx context.Context, c Call) (Result, error) {
	x := &restRequest{request: callRequest(c), handler: c.Handler.Handler.Name, encoded: c.Body}
	answer, err := r.do(ctx, c.Handler.Registration.ClientConfig, x, c.Request)
	result := Result{
		Response: answer, Sent: x.sent, Received: x.received,
		Inconclusive: x.isInconclusive(err), Connected: x.connected, Decided: x.decided, Misspelt: x.misspelt,
		Waited: x.waits.waited,
	}
	if err != nil {
		return result, err.WithHandler(c.Handler.Name)
	}
	return result, nil
}

// Retain keeps the connections to the given extensions and closes all others, those in use as soon as their calls have
// ended. Call it after registrations have changed.
func (r *REST) Retain(ccs []registry.ClientConfig) {
	r.routes.retain(ccs)
	r.absences.retain(ccs)
}

// Close closes all connections, as Retain does without extensions. It does not wait for calls that are under way.
func (r *REST) Close() { r.routes.retain(nil) }
