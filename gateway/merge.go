// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/extension"
	"github.com/hookgate/hookgate/internal/contract/jsonscan"
	"github.com/hookgate/hookgate/internal/contract/redact"
)

// merge merges the answers of all targets into one. Both are ordered by name, so that the same answers give the same
// result:
//
//   - an error of any handler is the call's error, of the first one's kind, and names every handler that failed;
//   - a Failure of any handler fails the answer and names the handler;
//   - otherwise messages are joined as Cluster API joins them, and retryAfterSeconds is the least that is not zero.
//
// If several answers have the same unknown member, in any case, the first one wins, so that the merged answer has one
// meaning. Handlers that were not called, because one before them failed, have empty answers.
func merge(h *catalog.Hook, targets []target, answers []answer) (proto.Message, error) {
	var failures []string
	var causes []error
	var first *hook.Error
	refused := false
	for i, a := range answers {
		if a.err != nil {
			e := asError(a.err)
			if first == nil {
				first = e
			}
			failures = append(failures, e.Error())
			causes = append(causes, fmt.Errorf("%w: %w", e, causeOf(e)))
		} else if message, ok := catalog.FailureOf(a.response); ok {
			refused = true
			failures = append(failures, fmt.Sprintf("handler %q: %s", targets[i].name(), message))
		}
	}
	switch {
	case first != nil && len(failures) == 1:
		return nil, first
	case first != nil:
		return nil, hook.Errorf(first.Kind, "%s", joined(failures, "; ")).
			WithCause(errors.Join(causes...)).WithRetryAfter(first.RetryAfter)
	case refused:
		return newFailure(h, joined(failures, "; ")), nil
	case len(answers) == 1:
		return answers[0].response, nil
	}
	return mergeSuccesses(h, answers), nil
}

func mergeSuccesses(h *catalog.Hook, answers []answer) proto.Message {
	var messages []string
	var retry int32
	merged := newSuccess(h).ProtoReflect()
	unknown := merged.Descriptor().Fields().ByName("unknown_members")
	taken := map[string]bool{} // names of unknown members
	for _, a := range answers {
		if r, ok := a.response.(response); ok && r.GetMessage() != "" {
			messages = append(messages, r.GetMessage())
		}
		if r, ok := a.response.(blockingResponse); ok {
			retry = leastNonZero(retry, r.GetRetryAfterSeconds())
		}
		a.response.ProtoReflect().Get(unknown).Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
			if name := jsonscan.Fold(k.String()); !taken[name] {
				taken[name] = true
				merged.Mutable(unknown).Map().Set(k, v)
			}
			return true
		})
	}
	if len(messages) > 0 {
		message := merged.Descriptor().Fields().ByName("message")
		merged.Set(message, protoreflect.ValueOfString(joined(messages, ", ")))
	}
	if h.Blocking {
		setRetryAfterSeconds(merged.Interface(), retry)
	}
	return merged.Interface()
}

// joined joins texts, bounded together. If they have more than that, each keeps an equal share, so that the first one
// cannot displace the names in the others.
func joined(texts []string, separator string) string {
	total := 0
	for _, t := range texts {
		total += len(t) + len(separator)
	}
	if total <= limits.MergedMessageBytes {
		return strings.Join(texts, separator)
	}
	share := max(limits.MergedMessageBytes/len(texts)-len(separator), limits.LeastMessageShare)
	cut := make([]string, len(texts))
	for i, t := range texts {
		cut[i] = redact.Bounded(t, share)
	}
	return redact.Bounded(strings.Join(cut, separator), limits.MergedMessageBytes)
}

func leastNonZero(a, b int32) int32 {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}

// answer is the answer of one of several handlers. It is empty if the handler was not called because an earlier one
// failed.
type answer struct {
	response proto.Message
	err      error
}

// failed reports whether the answer is an error or a Failure. One that holds its caller with retryAfterSeconds is
// neither: the handlers after it may have to be asked about the same state, and the least time counts.
func (a answer) failed() bool {
	if a.err != nil {
		return true
	}
	_, refused := catalog.FailureOf(a.response)
	return refused
}

// callAll calls the handlers that a policy gives an order one after the other, until one fails, and then all others at
// the same time. It waits for all of them, so that the merged answer does not depend on timing.
func (d *Dispatcher) callAll(ctx context.Context, r Request, targets []target) []answer {
	answers := make([]answer, len(targets))
	ordered := inOrder(targets)
	if len(ordered) > 0 {
		// A sequence of handlers may take no longer than a single handler.
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, limits.Timeout)
		defer cancel()
	}
	for _, i := range ordered {
		answers[i].response, answers[i].err = d.call(ctx, r, targets[i])
		if answers[i].failed() {
			return answers
		}
	}
	d.callUnordered(ctx, r, targets, answers)
	return answers
}

// callUnordered calls the handlers without an order at the same time, one of them in this goroutine.
func (d *Dispatcher) callUnordered(ctx context.Context, r Request, targets []target, answers []answer) {
	first := -1
	var wg sync.WaitGroup
	for i, t := range targets {
		switch {
		case t.hasOrder():
		case first < 0:
			first = i
		default:
			wg.Go(func() {
				answers[i].response, answers[i].err = d.call(ctx, r, t)
			})
		}
	}
	if first >= 0 {
		answers[first].response, answers[first].err = d.call(ctx, r, targets[first])
	}
	wg.Wait()
}

// hasOrder reports whether a policy wants the handler to be called before those without an order.
func (t target) hasOrder() bool {
	return t.chain == nil && t.entry.Policy != nil && t.entry.Policy.Order != nil
}

// inOrder returns the indexes of the targets that have an order: lowest order first, and by name where it is the same,
// as the targets are sorted by name. It returns nil if no target has an order.
func inOrder(targets []target) []int {
	var indexes []int
	for i, t := range targets {
		if t.hasOrder() {
			indexes = append(indexes, i)
		}
	}
	slices.SortStableFunc(indexes, func(a, b int) int {
		return cmp.Compare(*targets[a].entry.Policy.Order, *targets[b].entry.Policy.Order)
	})
	return indexes
}

// response is a response of any hook, whatever its version.
type response interface {
	proto.Message
	GetMessage() string
}

// blockingResponse is a response that may hold its caller.
type blockingResponse interface {
	response
	GetRetryAfterSeconds() int32
}

// newResponse returns a response of the hook.
func newResponse(h *catalog.Hook, status catalog.Status, message string) response {
	m := h.Response.New().Interface()
	catalog.SetStatus(m, status, message)
	r, _ := m.(response)
	return r
}

func newSuccess(h *catalog.Hook) response {
	return newResponse(h, catalog.Success, "")
}

func newFailure(h *catalog.Hook, message string) response {
	return newResponse(h, catalog.Failure, message)
}

// setRetryAfterSeconds sets retryAfterSeconds of a response of a blocking hook.
func setRetryAfterSeconds(m proto.Message, seconds int32) {
	r := m.ProtoReflect()
	r.Set(r.Descriptor().Fields().ByName("retry_after_seconds"), protoreflect.ValueOfInt32(seconds))
}

// boundMessage cuts the message of an answer to what a condition has room for, and masks secrets in it, because callers
// show it to all who may read their objects. The rest of the answer stays as it is.
func boundMessage(next extension.Caller) extension.Caller {
	return func(ctx context.Context, c extension.Call) (extension.Result, error) {
		result, err := next(ctx, c)
		r, ok := result.Response.(response)
		if err != nil || !ok || r.GetMessage() == "" {
			return result, err
		}
		if bounded := redact.Bounded(r.GetMessage(), limits.MessageBytes); bounded != r.GetMessage() {
			m := r.ProtoReflect()
			m.Set(m.Descriptor().Fields().ByName("message"), protoreflect.ValueOfString(bounded))
		}
		return result, nil
	}
}
