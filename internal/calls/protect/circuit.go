// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package protect

import (
	"context"
	"fmt"
	"time"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/circuit"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/calls/extensionstate"
)

// Observer is told when circuits open and close.
type Observer interface {
	// CircuitChanged is called with the circuit of an extension, of its handler if that is not empty, or of the handler's
	// calls for one Cluster. err is the last failure. It does not block.
	CircuitChanged(extensionConfig, handler, cluster string, status circuit.Status, err error)
}

// Circuits fails calls at once, as Unreachable, while the circuit of their handler or of its extension is open,
// so that neither callers wait for what does not answer, nor does it have more to do when it comes back. A handler that
// does not answer, or not well, opens its own circuit, and no other handler suffers from it; only a server that is gone
// opens that of the extension. If it is so for one Cluster only, the calls of this Cluster fail at once, and no others.
// The link is inside the failure policy, which treats such a call as any other to an extension that is down, and
// outside of everything that costs time.
func Circuits(extensions *extensionstate.States, o Observer) extension.Link {
	return func(next extension.Caller) extension.Caller {
		return func(ctx context.Context, c extension.Call) (extension.Result, error) {
			state, settings := extensions.Of(c.Handler), extensionstate.CircuitOf(c.Handler)
			b := breaker{extensions: extensions, o: o, call: &c, state: state, settings: settings}
			if err := b.enter(); err != nil {
				return extension.Result{Refused: true, Inconclusive: true}, err
			}
			var result extension.Result
			err := error(nil)
			outcome := outcomes{} // of a call that panics
			defer func() { b.leave(outcome, err) }()
			result, err = next(ctx, c)
			outcome = b.outcomesOf(result, err)
			return result, b.explained(outcome, err)
		}
	}
}

// outcomes are what a call says about its handler, and about the server of its extension.
type outcomes struct{ handler, extension circuit.Outcome }

// outcomesOf returns the outcomes of a call. Failure, the status, is an answer. A connection that breaks before the
// answer may be due to the handler, as if it panics, and is held against the server only if that happens to two
// handlers in turn, and not for the same Cluster.
func (b *breaker) outcomesOf(result extension.Result, err error) outcomes {
	kind := hook.KindOf(err)
	switch {
	case err == nil:
		return outcomes{circuit.Success, circuit.Success}
	case !result.IsFailure(err), result.Waited && !result.Connected:
		return outcomes{} // calls that no longer wait find out whether the extension stays away
	case kind == hook.BadResponse, kind == hook.Timeout && result.Connected:
		return outcomes{circuit.Failure, circuit.Success}
	case result.Connected:
		if b.state.Broke(b.call.Handler.Name, b.ofCluster()) {
			return outcomes{circuit.Failure, circuit.Failure}
		}
		return outcomes{circuit.Failure, circuit.Unknown}
	}
	return outcomes{circuit.Unknown, circuit.Failure}
}

// breaker is the passage of one call through the circuits of its Cluster, its handler and its extension.
type breaker struct {
	extensions *extensionstate.States
	o          Observer
	call       *extension.Call
	state      *extensionstate.State
	settings   *circuit.Settings
	own        *extensionstate.Handler
	cluster    *string          // see ofCluster
	its        *circuit.Circuit // of the Cluster; nil if its last call did not fail

	pass, ownsPass, itsPass circuit.Pass
}

// ofCluster returns the Cluster that the call is about, as namespace/name; empty for none.
func (b *breaker) ofCluster() string {
	if b.cluster == nil {
		of := ""
		if namespace, name := b.call.Cluster(); name != "" {
			of = namespace + "/" + name
		}
		b.cluster = &of
	}
	return *b.cluster
}

// enter returns an error if a circuit refuses the call.
func (b *breaker) enter() error {
	b.own = b.state.Handler(b.call.Handler)
	var after time.Duration
	var ok bool
	if b.own.Remembers() { // or else the request need not be read
		b.its = b.own.Cluster(b.ofCluster())
	}
	if b.its != nil {
		if b.itsPass, after, ok = b.its.Enter(b.settings); !ok {
			return refusedBy(b.its, b.itself(), nil).WithRetryAfter(after)
		}
	}
	if b.ownsPass, after, ok = b.own.Enter(b.settings); !ok {
		b.leaveCluster(circuit.Unknown, nil)
		return refusedBy(&b.own.Circuit, "handler", nil).WithRetryAfter(after)
	}
	if b.pass, after, ok = b.state.Circuit.Enter(b.settings); !ok {
		b.leaveCluster(circuit.Unknown, nil)
		b.own.Leave(b.ownsPass, b.settings, circuit.Unknown, nil)
		return refusedBy(&b.state.Circuit, "extension", nil).WithRetryAfter(after)
	}
	return nil
}

// itself returns what the circuit of the Cluster is called in errors.
func (b *breaker) itself() string { return fmt.Sprintf("handler for Cluster %q", b.ofCluster()) }

// leave tells the circuits what came of the call.
func (b *breaker) leave(x outcomes, err error) {
	failures := 1
	switch x.handler {
	case circuit.Success:
		b.leaveCluster(x.handler, nil)
		b.own.Succeeded(b.ofKnownCluster())
	case circuit.Failure:
		if failures = b.failed(err); failures == 0 {
			x.handler = circuit.Unknown
		}
	case circuit.Unknown:
		b.leaveCluster(x.handler, nil)
	}
	for range max(failures, 1) {
		if b.own.Leave(b.ownsPass, b.settings, x.handler, err) {
			b.changed(&b.own.Circuit, b.call.Handler.Name, err)
		}
	}
	if b.state.Circuit.Leave(b.pass, b.settings, x.extension, err) {
		b.changed(&b.state.Circuit, "", err)
	}
}

// failed counts a failure for the Cluster of the call, and returns how many failures of the handler it is. What a
// Cluster's own probe finds is nothing new to the handler, and what a probe of the handler finds is nothing about the
// Cluster. While no more Clusters can be remembered, the failure counts as that of a call that is about none.
func (b *breaker) failed(err error) (failures int) {
	switch cluster := b.ofCluster(); {
	case b.itsPass.Probe():
		b.leaveCluster(circuit.Failure, err)
		return 0
	case b.ownsPass.Probe():
		b.leaveCluster(circuit.Unknown, nil)
		return 1
	case cluster == "" || b.settings.Disabled:
		return b.own.Weigh("")
	default:
		if b.its == nil {
			b.its = b.own.Failing(cluster)
		}
		if b.its == nil {
			return b.own.Weigh("")
		}
		b.leaveCluster(circuit.Failure, err)
		return b.own.Weigh(cluster)
	}
}

// leaveCluster tells the circuit of the Cluster, if there is one, what came of the call.
func (b *breaker) leaveCluster(o circuit.Outcome, err error) {
	if b.its != nil && b.its.Leave(b.itsPass, b.settings, o, err) {
		b.o.CircuitChanged(b.call.Handler.Registration.Name, b.call.Handler.Name, b.ofCluster(), b.its.Status(), err)
	}
}

// ofKnownCluster is ofCluster, and empty if no Cluster is remembered: the request need not be read then.
func (b *breaker) ofKnownCluster() string {
	if !b.own.Remembers() {
		return ""
	}
	return b.ofCluster()
}

// changed tells that the circuit of a handler, or of the extension if that is empty, has opened or closed.
func (b *breaker) changed(c *circuit.Circuit, handler string, err error) {
	extensionConfig, what, status := b.call.Handler.Registration.Name, "extension", c.Status()
	if handler != "" {
		what = "handler"
	}
	switch {
	case status.State != circuit.Closed:
		b.state.Gate.Dismiss(handler, refusedBy(c, what, err)) // there is nothing to wait for
	case handler == "":
		b.state.Answered() // a server that is back may have other handlers than the one that was gone
	}
	b.o.CircuitChanged(extensionConfig, handler, "", status, err)
	b.extensions.Changed(extensionConfig)
}

// explained returns the error of a call that was let through. That of a probe has the text of the circuit.
func (b *breaker) explained(x outcomes, err error) error {
	switch {
	case x.extension == circuit.Failure && b.pass.Probe():
		return refusedBy(&b.state.Circuit, "extension", err)
	case x.handler == circuit.Failure && b.itsPass.Probe():
		return refusedBy(b.its, b.itself(), err)
	case x.handler == circuit.Failure && b.ownsPass.Probe():
		return refusedBy(&b.own.Circuit, "handler", err)
	}
	return err
}

// refusedBy returns the error of a call while a circuit is open. Until the circuit closes, all calls get the same text,
// those too that were probes, so that conditions with it do not change with each probe. cause is the error of a probe,
// or nil.
func refusedBy(c *circuit.Circuit, what string, cause error) *hook.Error {
	kind, last := c.Cause()
	if cause == nil && last != nil {
		cause = fmt.Errorf("last failure: %w", last)
	}
	return hook.Errorf(hook.Unreachable,
		"circuit is open: calls to the %s fail with %s; they are sent again once a probe succeeds", what, kind).
		WithCause(cause)
}
