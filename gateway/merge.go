// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"fmt"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/registry"
)

// merge makes one answer of those of all handlers that match. entries and results go together and are ordered by name, so
// that the same results give the same answer. A result is empty where a handler was not called because one before it
// failed, and then there is that failure:
//
//   - an error of any handler is the call's error, of the first one's kind; its text names every handler that failed;
//   - a Failure of any handler fails the answer and names the handler;
//   - otherwise messages are joined as Cluster API joins them, and retryAfterSeconds is the least that is not zero.
//
// Of members that the contract does not know, the first handler's win.
func merge(h *catalog.Hook, entries []*registry.Entry, results []result) (proto.Message, error) {
	var failures []string
	var causes []error
	var first *hook.Error
	refused := false
	for i, r := range results {
		if r.err != nil {
			e := asError(r.err)
			if first == nil {
				first = e
			}
			failures = append(failures, e.Error())
			causes = append(causes, fmt.Errorf("%w: %w", e, causeOf(e)))
		} else if answer, ok := failed(r.response); ok {
			refused = true
			failures = append(failures, fmt.Sprintf("handler %q: %s", entries[i].Name, answer.GetMessage()))
		}
	}
	switch {
	case first != nil && len(failures) == 1:
		return nil, first
	case first != nil:
		return nil, hook.Errorf(first.Kind, "%s", strings.Join(failures, "; ")).WithCause(errors.Join(causes...))
	case refused:
		return newFailure(h, strings.Join(failures, "; ")), nil
	case len(results) == 1:
		return results[0].response, nil
	}
	return mergeSuccesses(h, results), nil
}

func mergeSuccesses(h *catalog.Hook, results []result) proto.Message {
	var messages []string
	var retry int32
	merged := newSuccess(h).ProtoReflect()
	unknown := merged.Descriptor().Fields().ByName("unknown_members")
	for _, r := range results {
		if answer, ok := r.response.(response); ok && answer.GetMessage() != "" {
			messages = append(messages, answer.GetMessage())
		}
		if answer, ok := r.response.(blockingResponse); ok {
			retry = leastNonZero(retry, answer.GetRetryAfterSeconds())
		}
		r.response.ProtoReflect().Get(unknown).Map().Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
			if m := merged.Mutable(unknown).Map(); !m.Has(k) {
				m.Set(k, v)
			}
			return true
		})
	}
	if len(messages) > 0 {
		merged.Set(merged.Descriptor().Fields().ByName("message"), protoreflect.ValueOfString(strings.Join(messages, ", ")))
	}
	if h.Blocking {
		setRetryAfterSeconds(merged.Interface(), retry)
	}
	return merged.Interface()
}

func leastNonZero(a, b int32) int32 {
	if a == 0 || (b != 0 && b < a) {
		return b
	}
	return a
}
