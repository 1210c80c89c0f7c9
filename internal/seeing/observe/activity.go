// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"cmp"
	"errors"
	"strings"
	"time"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/activity"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/contract/redact"
)

// Asked keeps that there was a call about a Cluster, whatever becomes of it. A nil Observer keeps nothing.
func (o *Observer) Asked(namespace, name string, now time.Time) {
	if o != nil && o.clusters.Due(now) {
		o.clusters.Record(namespace, name, now)
	}
}

// remember keeps a call for those who look at the gateway now, while metrics are for those who look back. A call that
// its caller has given up says nothing. Nothing costs more than counting but failures, holds, and finding out which
// Cluster goes on, for a bounded number of calls per second.
func (o *Observer) remember(
	c extension.Call, result extension.Result, err error, began time.Time, took time.Duration,
) {
	call := activity.Call{Ended: began.Add(took), Took: took, Timeout: c.Handler.Handler.Timeout}
	kind, message := "", ""
	switch {
	case err != nil:
		call.Outcome = activity.Failed
	case result.Ignored != nil:
		call.Outcome, err = activity.Ignored, result.Ignored
	default:
		if text, refused := catalog.FailureOf(result.Response); refused {
			call.Outcome, kind, message = activity.Refused, activity.KindFailure, text
		}
	}
	if err != nil {
		if hook.KindOf(err) == hook.Canceled {
			return
		}
		kind, message = hook.KindOf(err).String(), explained(c.Handler.Name, err)
	}
	call.Gone = o.rememberServer(c, result, err, call.Ended, message)
	if !result.Refused {
		call.Message = message
	}
	o.handlers.Record(c.Handler.Name, call)
	if call.Outcome != activity.Success {
		failed := activity.Failure{
			At: call.Ended, Hook: c.Hook.Hook, Handler: c.Handler.Name, Outcome: call.Outcome, Kind: kind, Message: message,
			Took: took, CallID: c.ID,
		}
		o.extensions.Of(c.Handler).Failures.Add(failed)
	}
	if !c.Comparison { // of which no caller gets the answer
		o.rememberHold(c, result, call, kind, message)
	}
}

// rememberServer keeps what a call shows about the server of its extension, and reports whether that is gone.
func (o *Observer) rememberServer(
	c extension.Call, result extension.Result, err error, at time.Time, message string,
) (gone bool) {
	kind := hook.KindOf(err)
	gone = result.IsFailure(err) && kind != hook.BadResponse && !result.Connected
	if !gone {
		if err != nil && kind != hook.BadResponse && (!result.Connected || kind == hook.Unreachable && !result.Decided) {
			return false // it was not sent, or the connection broke
		}
		message = ""
	}
	// An extension that was removed while it was called is not added again.
	if name := c.Handler.Registration.Name; o.servers.Has(name) || o.extensions.Registers(name) {
		o.servers.Record(name, "", at, message)
	}
	return gone
}

// explained returns the text of an error with its cause, which varies, each fact once: what is shown with the handler
// does not name it.
func explained(handler string, err error) string { return redact.Text(explain(handler, err)) }

func explain(handler string, err error) string {
	message := err.Error()
	if e, ok := err.(*hook.Error); ok { //nolint:errorlint // what wraps one is explained below
		if e.Handler == handler {
			message = e.Message
		}
		message = strings.TrimPrefix(message, extension.CallOperation+": ")
	}
	cause := errors.Unwrap(err)
	if cause == nil {
		return message
	}
	var answered *extension.StatusError
	if start, wraps := strings.CutSuffix(message, cause.Error()); wraps {
		return start + explain(handler, cause)
	} else if errors.As(cause, &answered) && errors.Unwrap(cause) == nil {
		return answered.Explain(message)
	}
	said := explain(handler, cause)
	if strings.HasSuffix(said, message) { // the error of a connection ends with what the message says
		return said
	}
	return message + ": " + said
}

// Discovered keeps what came of the discovery of an extension, until Forget is called. err is nil if it succeeded.
// healthUnchecked reports that its server has no health service.
func (o *Observer) Discovered(extensionConfig, url, outcome string, healthUnchecked bool, err error) {
	d := activity.Discovery{At: time.Now(), URL: redact.URL(url), Outcome: outcome, HealthUnchecked: healthUnchecked}
	server := ""
	if err != nil {
		d.Message = explained("", err)
		if kind := hook.KindOf(err); kind == hook.Unreachable || kind == hook.Timeout {
			server = d.Message // any other error is that of a server that is there
		}
	}
	o.discoveries.Record(extensionConfig, d)
	o.servers.Record(extensionConfig, url, d.At, server)
}

// Misspelt keeps the misspelt members of an extension's answer to discovery, and logs each once.
func (o *Observer) Misspelt(extensionConfig string, misspelt []string) {
	for _, text := range o.misspelt.Record(extensionConfig, "", misspelt) {
		o.logger.Warn("answer to discovery has an unknown member, which has no effect (logged once)",
			"extensionConfig", extensionConfig, "problem", text)
	}
}

// Server keeps that the server of an extension is there, or with an error that it is not, until Forget is called. If
// it is back, calls to it pass at once.
func (o *Observer) Server(extensionConfig, url string, err error) {
	message := ""
	if err != nil {
		message = explained("", err)
	}
	if o.servers.Record(extensionConfig, url, time.Now(), message) {
		if status, closed := o.extensions.Back(extensionConfig); closed {
			o.CircuitChanged(extensionConfig, "", "", status, nil)
		}
	}
}

// Gone reports whether the server of an extension was not there when it was seen last.
func (o *Observer) Gone(extensionConfig string) bool {
	s := o.servers.Of(extensionConfig)
	return s.Gone()
}

// Forget forgets the discoveries and the server of an ExtensionConfig that is gone, and the members that its answers
// have misspelt.
func (o *Observer) Forget(extensionConfig string) {
	o.discoveries.Forget(extensionConfig)
	o.servers.Forget(extensionConfig)
	o.misspelt.Forget(extensionConfig)
}

// rememberHold keeps that a Cluster waits for the handler, or forgets it.
func (o *Observer) rememberHold(
	c extension.Call, result extension.Result, call activity.Call, kind, message string,
) {
	var retryAfter time.Duration
	if call.Outcome == activity.Success {
		if r, ok := result.Response.(interface {
			GetMessage() string
			GetRetryAfterSeconds() int32
		}); ok {
			retryAfter, message = time.Duration(r.GetRetryAfterSeconds())*time.Second, r.GetMessage()
		}
	}
	held := retryAfter > 0 || call.Outcome == activity.Refused || call.Outcome == activity.Failed
	if !held && !o.holds.Of(c.Handler.Name) && !o.clusters.Due(call.Ended) {
		return
	}
	wait := waitFor(c.Hook, c.Handler.Name, cmp.Or(c.Request, c.Partial))
	if wait.Cluster == "" {
		return
	}
	if !held {
		o.holds.Release(wait, call.Ended)
		return
	}
	hold := activity.Hold{Wait: wait, Kind: kind, Message: message, RetryAfter: retryAfter, Last: call.Ended}
	if o.holds.Hold(hold) {
		o.metrics.changedMessages.WithLabelValues(c.Hook.Hook, c.Handler.Name).Inc()
	}
}
