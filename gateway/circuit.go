// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"

	"github.com/hookgate/hookgate/extension"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/circuit"
	"github.com/hookgate/hookgate/registry"
)

// defaultCircuit has the settings of extensions without a policy.
var defaultCircuit = circuit.Default()

// circuitOf returns the settings of the circuit of a handler's extension.
func circuitOf(e *registry.Entry) *circuit.Settings {
	if p := e.ExtensionPolicy; p != nil && p.Circuit != nil {
		return p.Circuit
	}
	return &defaultCircuit
}

// circuitBreaker fails the calls to an extension whose circuit is open at once, as Unreachable, so that neither callers
// wait for an extension that does not answer, nor does it have more to do when it comes back. It is inside the failure
// policy, which treats such a call as any other to an extension that is down, and outside of everything that costs
// time.
func circuitBreaker(extensions *Extensions, o *Observer) extension.Link {
	return func(next extension.Caller) extension.Caller {
		return func(ctx context.Context, c extension.Call) (extension.Result, error) {
			state, settings := extensions.of(c.Handler), circuitOf(c.Handler)
			c.State = state // for admit
			breaker := &state.circuit
			pass, after, ok := breaker.Enter(settings)
			if !ok {
				kind, last := breaker.Cause()
				return extension.Result{}, circuitOpen(kind, fmt.Errorf("last failure: %w", last)).WithRetryAfter(after)
			}
			outcome, failure := circuit.Unknown, error(nil) // of a call that panics
			defer func() {
				if breaker.Leave(pass, settings, outcome, failure) {
					state.gate.Dismiss() // after the circuit has opened, there is nothing to wait for
					o.circuitChanged(c.Handler.Registration.Name, breaker.Status(), failure)
					extensions.changed(c.Handler.Registration.Name)
				}
			}()
			result, err := next(ctx, c)
			outcome, failure = outcomeOf(result, err), err
			if outcome == circuit.Failure && pass.Probe() {
				kind, _ := breaker.Cause()
				return result, circuitOpen(kind, err)
			}
			return result, err
		}
	}
}

// circuitOpen returns the error of a call to an extension whose circuit is open. Until the circuit closes, all calls
// get the same text, those too that were probes, so that conditions with it do not change with each probe.
func circuitOpen(kind hook.Kind, cause error) *hook.Error {
	return hook.Errorf(hook.Unreachable,
		"circuit is open: calls to the extension fail with %s; they are sent again once a probe succeeds", kind).
		WithCause(cause)
}

// outcomeOf returns what a call says about its extension. Failure, the status, is an answer.
func outcomeOf(result extension.Result, err error) circuit.Outcome {
	if err == nil {
		return circuit.Success
	}
	switch hook.KindOf(err) {
	case hook.Unreachable, hook.Timeout, hook.BadResponse:
		if !result.Inconclusive {
			return circuit.Failure
		}
	}
	return circuit.Unknown
}
