// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookrule

import (
	"context"
	"errors"
	"math"
	"time"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/registry"
)

// Rule answers one hook by expressions. It is immutable, and safe for concurrent use.
type Rule struct {
	name   string
	hook   *catalog.Hook
	codec  *codec.Codec
	now    func() time.Time
	answer answerer
	params []param
	source Params // of params
	places Places // may be nil
	// concurrency is nil if the rule has none. after is the hook that frees places, nil if there is none.
	concurrency *concurrency
	after       *catalog.Hook
	doubts      field.ErrorList
}

// Doubts returns what a rule says that its author may not mean.
func (r *Rule) Doubts() field.ErrorList { return r.doubts }

var _ registry.Answerer = (*Rule)(nil)

// answerer makes the answers of the rules of some hooks.
type answerer interface {
	// answer returns a fresh answer to a request. An error of v is returned as it is.
	answer(v *policy.Evaluation, request proto.Message) (proto.Message, error)
}

// Kind implements registry.Answerer.
func (*Rule) Kind() string { return Kind }

// Answer implements registry.Answerer. An expression that cannot be evaluated is an error of kind Policy.
func (r *Rule) Answer(ctx context.Context, request proto.Message, guard policy.Guard) (proto.Message, error) {
	if r.frees(request) {
		return r.free(ctx, request)
	}
	if of, ok := r.admitting(); ok {
		return r.admitted(ctx, of, request, guard)
	}
	return r.decide(ctx, request, guard, nil)
}

// decide answers a request. clusters are the admitted ones, if the rule reads them.
func (r *Rule) decide(
	ctx context.Context, request proto.Message, guard policy.Guard, clusters [][]byte,
) (proto.Message, error) {
	body, err := r.codec.EncodeWithin(request, math.MaxInt64, codec.Guard{Reserve: guard.Reserve})
	if err != nil {
		return nil, err
	}
	if guard.Reserve != nil {
		if err := guard.Reserve(body.Size()); err != nil {
			return nil, err
		}
	}
	v := policy.NewRequest(body.Bytes(), guard).Evaluate(ctx)
	v.SetTime(policy.NowVariable, r.now())
	if len(r.params) > 0 {
		params, err := r.readParams(request, guard, clusters)
		if err != nil {
			return nil, err
		}
		v.Set(policy.ParamsVariable, params)
	}
	answer, err := r.answer.answer(v, request)
	if err == nil {
		answer, err = r.admit(ctx, v, request, answer)
	}
	if evaluation, ok := errors.AsType[*policy.EvaluationError](err); ok {
		return nil, hook.Errorf(hook.Policy, "HookRule %q: %s", r.name, err).WithCause(evaluation.Cause)
	}
	return answer, err
}
