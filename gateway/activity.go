// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/hookgate/hookgate/extension"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/activity"
	"github.com/hookgate/hookgate/internal/text"
)

// remember keeps a call for those who look at the gateway now, while metrics are for those who look back. A call that
// its caller has given up says nothing. Nothing but failures and holds costs more than counting.
func (o *Observer) remember(
	ctx context.Context, extensions *Extensions, c extension.Call, result extension.Result, err error, began time.Time,
	took time.Duration,
) {
	call := activity.Call{Ended: began.Add(took), Took: took, Timeout: c.Handler.Handler.Timeout}
	kind, message := "", ""
	switch {
	case err != nil:
		call.Outcome, call.Down = activity.Failed, isFailure(result, err)
	case result.Ignored != nil:
		call.Outcome, call.Down = activity.Ignored, isFailure(result, result.Ignored)
		err = result.Ignored
	default:
		if failure, refused := failed(result.Response); refused {
			call.Outcome, kind, message = activity.Refused, "Failure", failure.GetMessage()
		}
	}
	if err != nil {
		if hook.KindOf(err) == hook.Canceled {
			return
		}
		kind, message = hook.KindOf(err).String(), explained(err)
	}
	o.handlers.Record(c.Handler.Name, call)
	if call.Outcome != activity.Success {
		failure := activity.Failure{
			At: call.Ended, Hook: c.Hook.Hook, Handler: c.Handler.Name, Outcome: call.Outcome, Kind: kind, Message: message,
			Took: took,
		}
		if in := inboundFrom(ctx); in != nil {
			failure.CallID = in.id
		}
		extensions.of(c.Handler).failures.Add(failure)
	}
	o.rememberHold(c, result, call, kind, message)
}

// explained returns the text of an error with its cause, which varies.
func explained(err error) string {
	explanation := err.Error()
	if cause := errors.Unwrap(err); cause != nil {
		explanation += ": " + cause.Error()
	}
	return text.Mask(explanation)
}

// Discovered keeps what came of the discovery of an extension, until Forget is called. err is nil if it succeeded.
// healthUnchecked reports that its server has no health service.
func (o *Observer) Discovered(extensionConfig, url, outcome string, healthUnchecked bool, err error) {
	d := activity.Discovery{At: time.Now(), URL: text.URL(url), Outcome: outcome, HealthUnchecked: healthUnchecked}
	if err != nil {
		d.Message = explained(err)
	}
	o.discoveries.Record(extensionConfig, d)
}

// Misspelt keeps the misspelt members of an extension's answer to discovery, and logs each once.
func (o *Observer) Misspelt(extensionConfig string, misspelt []string) {
	for _, text := range o.misspelt.Record(extensionConfig, "", misspelt) {
		o.logger.Warn("answer to discovery has a member that means nothing, which is logged once",
			"extensionConfig", extensionConfig, "problem", text)
	}
}

// Forget forgets the discoveries of an ExtensionConfig that is gone, and the members that its answers have misspelt.
func (o *Observer) Forget(extensionConfig string) {
	o.discoveries.Forget(extensionConfig)
	o.misspelt.Forget(extensionConfig)
}

// rememberHold keeps that a Cluster waits for the handler, or forgets it.
func (o *Observer) rememberHold(
	c extension.Call, result extension.Result, call activity.Call, kind, message string,
) {
	var retryAfter time.Duration
	if call.Outcome == activity.Success {
		if r, ok := result.Response.(blockingResponse); ok {
			retryAfter, message = time.Duration(r.GetRetryAfterSeconds())*time.Second, r.GetMessage()
		}
	}
	held := retryAfter > 0 || call.Outcome == activity.Refused || call.Outcome == activity.Failed
	if !held && !o.holds.Of(c.Handler.Name) {
		return
	}
	namespace, name := clusterOf(cmp.Or(c.Request, c.Outline))
	if name == "" {
		return
	}
	wait := activity.Wait{Namespace: namespace, Cluster: name, Hook: c.Hook.Hook, Handler: c.Handler.Name}
	if !held {
		o.holds.Release(wait)
		return
	}
	o.holds.Hold(activity.Hold{Wait: wait, Kind: kind, Message: message, RetryAfter: retryAfter, Last: call.Ended})
}
