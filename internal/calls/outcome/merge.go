// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package outcome makes what callers get: one answer of those of several handlers, the gateway's own answers, and
// errors. It calls no handlers. All functions are safe for concurrent use.
package outcome

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/contract/jsonscan"
	"github.com/hookgate/hookgate/internal/contract/redact"
)

// Merge merges the answers of all handlers into one. Both are ordered by name, so that the same answers give the same
// result:
//
//   - an error of any handler is the call's error, of the first one's kind, and names every handler that failed;
//   - a Failure of any handler fails the answer and names the handler;
//   - otherwise messages are joined as Cluster API joins them, and retryAfterSeconds is the least that is not zero.
//
// If several answers have the same unknown member, in any case, the first one wins, so that the merged answer has one
// meaning. Handlers that were not called, because one before them failed, have empty answers.
func Merge(h *catalog.Hook, name func(i int) string, answers []Answer) (proto.Message, error) {
	var failures []string
	var causes []error
	var first *hook.Error
	refused := false
	for i, a := range answers {
		if a.Err != nil {
			e := ErrorOf(a.Err)
			if first == nil {
				first = e
			}
			failures = append(failures, e.Error())
			causes = append(causes, fmt.Errorf("%w: %w", e, CauseOf(e)))
		} else if message, ok := catalog.FailureOf(a.Response); ok {
			refused = true
			failures = append(failures, fmt.Sprintf("handler %q: %s", name(i), message))
		}
	}
	switch {
	case first != nil && len(failures) == 1:
		return nil, first
	case first != nil:
		return nil, hook.Errorf(first.Kind, "%s", Joined(failures, "; ")).
			WithCause(errors.Join(causes...)).WithRetryAfter(first.RetryAfter)
	case refused:
		return Failure(h, Joined(failures, "; ")), nil
	case len(answers) == 1:
		return answers[0].Response, nil
	}
	return Successes(h, answers), nil
}

// Successes is Merge of answers of which none has failed.
func Successes(h *catalog.Hook, answers []Answer) proto.Message {
	var messages []string
	var retry int32
	merged := Success(h).ProtoReflect()
	unknown := merged.Descriptor().Fields().ByName("unknown_members")
	taken := map[string]bool{} // names of unknown members
	for _, a := range answers {
		if r, ok := a.Response.(Response); ok && r.GetMessage() != "" {
			messages = append(messages, r.GetMessage())
		}
		if r, ok := a.Response.(Blocking); ok {
			retry = leastNonZero(retry, r.GetRetryAfterSeconds())
		}
		a.Response.ProtoReflect().Get(unknown).Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
			if name := jsonscan.Fold(k.String()); !taken[name] {
				taken[name] = true
				merged.Mutable(unknown).Map().Set(k, v)
			}
			return true
		})
	}
	if len(messages) > 0 {
		message := merged.Descriptor().Fields().ByName("message")
		merged.Set(message, protoreflect.ValueOfString(Joined(messages, ", ")))
	}
	if h.Blocking {
		setRetryAfterSeconds(merged.Interface(), retry)
	}
	return merged.Interface()
}

// Joined joins texts, bounded together. If they have more than that, each keeps an equal share, so that the first one
// cannot displace the names in the others.
func Joined(texts []string, separator string) string {
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

// Answer is the answer of one of several handlers. It is empty if the handler was not called because an earlier one
// failed.
type Answer struct {
	Response proto.Message
	Err      error
}

// Failed reports whether the answer is an error or a Failure. One that holds its caller with retryAfterSeconds is
// neither: the handlers after it may have to be asked about the same state, and the least time counts. See Holds.
func (a Answer) Failed() bool {
	if a.Err != nil {
		return true
	}
	_, refused := catalog.FailureOf(a.Response)
	return refused
}

// Response is a response of any hook, whatever its version.
type Response interface {
	proto.Message
	GetMessage() string
}

// Blocking is a response that may hold its caller.
type Blocking interface {
	Response
	GetRetryAfterSeconds() int32
}

// Holds reports whether an answer is a Success that holds its caller.
func Holds(m proto.Message) bool {
	held, ok := m.(Blocking)
	if !ok || held.GetRetryAfterSeconds() <= 0 {
		return false
	}
	status, _ := catalog.StatusOf(m)
	return status == catalog.Success
}

// New returns a response of the hook.
func New(h *catalog.Hook, status catalog.Status, message string) Response {
	m := h.Response.New().Interface()
	catalog.SetStatus(m, status, message)
	r, _ := m.(Response)
	return r
}

// Success returns a response that is a success without more.
func Success(h *catalog.Hook) Response {
	return New(h, catalog.Success, "")
}

// Failure returns a response that is a Failure.
func Failure(h *catalog.Hook, message string) Response {
	return New(h, catalog.Failure, message)
}

// setRetryAfterSeconds sets retryAfterSeconds of a response of a blocking hook.
func setRetryAfterSeconds(m proto.Message, seconds int32) {
	r := m.ProtoReflect()
	r.Set(r.Descriptor().Fields().ByName("retry_after_seconds"), protoreflect.ValueOfInt32(seconds))
}
