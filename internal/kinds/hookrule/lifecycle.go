// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookrule

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/policy"
)

// defaultRetry is how soon the caller of a rule that holds asks again, in seconds, if the rule does not say.
const defaultRetry = 30

// lifecycle is what rules of lifecycle hooks may say.
func lifecycle() category {
	return category{
		hooks:   func(h *catalog.Hook) bool { return h.Category == catalog.Lifecycle },
		fields:  []string{"hold", "fail", "windows", "concurrency"},
		compile: compileLifecycle,
		audits:  true,
	}
}

// lifecycleRule answers lifecycle hooks.
type lifecycleRule struct {
	hook *catalog.Hook
	fail []decision
	hold []hold
	windows
}

// decision applies to some requests.
type decision struct {
	expression *policy.Expression
	applies    bool // the value of expression with which it applies
	message    *policy.Expression
}

type hold struct {
	decision
	retryAfterSeconds int32
}

func compileLifecycle(in *compilation, spec *v1alpha1.HookRuleSpec, path *field.Path) answerer {
	rule := &lifecycleRule{hook: in.hook, windows: in.windows(spec.Windows, path.Child("windows"))}
	in.forbidHold(len(spec.Hold), path.Child("hold"))
	in.forbidHold(len(spec.Windows), path.Child("windows"))
	if len(spec.Hold)+len(spec.Fail)+len(spec.Windows) == 0 && spec.Concurrency == nil {
		in.errs = append(in.errs, field.Required(path, "must have one of hold, fail, windows and concurrency"))
	}
	for i := range in.bounded(len(spec.Hold), path.Child("hold")) {
		from, at := &spec.Hold[i], path.Child("hold").Index(i)
		retry := int32(defaultRetry)
		if from.RetryAfterSeconds != nil {
			retry = *from.RetryAfterSeconds
		}
		if retry < 1 || retry > limits.RuleRetrySeconds {
			in.errs = append(in.errs, field.Invalid(at.Child("retryAfterSeconds"), retry,
				fmt.Sprintf("must be between 1 and %d", limits.RuleRetrySeconds)))
		}
		rule.hold = append(rule.hold, hold{in.decision(&from.HookRuleDecision, at, policy.NowVariable), retry})
	}
	for i := range in.bounded(len(spec.Fail), path.Child("fail")) {
		at := path.Child("fail").Index(i)
		rule.fail = append(rule.fail, in.decision(&spec.Fail[i].HookRuleDecision, at, policy.NowVariable))
	}
	return rule
}

// forbidHold notes that a rule of a hook for which callers do not wait has n things that hold.
func (in *compilation) forbidHold(n int, path *field.Path) {
	if n > 0 && !in.hook.Blocking {
		in.errs = append(in.errs, field.Forbidden(path, "Cluster API does not wait for "+in.hook.Hook))
	}
}

// bounded returns the length of a list of a rule, or 0 with a mistake if it is too long.
func (in *compilation) bounded(n int, path *field.Path) int {
	if n > limits.RuleList {
		in.errs = append(in.errs, field.TooMany(path, n, limits.RuleList))
		return 0
	}
	return n
}

// decision compiles a decision, whose expressions have variables besides request.
func (in *compilation) decision(
	from *v1alpha1.HookRuleDecision, path *field.Path, variables ...string,
) decision {
	d := decision{message: in.expression(from.Message, policy.String, path.Child("message"), variables...)}
	switch {
	case (from.If == "") == (from.Unless == ""):
		in.errs = append(in.errs, field.Required(path, "must have one of if and unless"))
	case from.If != "":
		d.applies = true
		d.expression = in.expression(from.If, policy.Bool, path.Child("if"), variables...)
		if d.expression != nil && d.expression.FalseIfMissing {
			in.doubtMissing(path.Child("if"))
		}
	default:
		d.expression = in.expression(from.Unless, policy.Bool, path.Child("unless"), variables...)
		if d.expression != nil && d.expression.TrueIfMissing {
			in.doubtMissing(path.Child("unless"))
		}
	}
	return d
}

// doubtMissing notes that a decision does not apply to requests in which a value is missing and the other is empty.
func (in *compilation) doubtMissing(path *field.Path) {
	in.doubts = append(in.doubts, field.Invalid(path, field.OmitValueType{}, `orValue("") lets a request through if `+
		`the other value is empty: use another default, such as orValue("none")`))
}

// answer implements answerer: the first failure that applies, or else a hold outside all windows, or else the first
// hold that applies, or else Success.
func (r *lifecycleRule) answer(v *policy.Evaluation, _ proto.Message) (proto.Message, error) {
	for i := range r.fail {
		if message, applies, err := r.fail[i].of(v); err != nil || applies {
			return r.hook.NewAnswer(catalog.Failure, message, 0), err
		}
	}
	if message, retryAfterSeconds := r.untilOpen(v.Time(policy.NowVariable)); retryAfterSeconds > 0 {
		return r.hook.NewAnswer(catalog.Success, message, retryAfterSeconds), nil
	}
	for i := range r.hold {
		if message, applies, err := r.hold[i].of(v); err != nil || applies {
			return r.hook.NewAnswer(catalog.Success, message,
				r.hold[i].retryAfterSeconds), err
		}
	}
	return r.hook.NewAnswer(catalog.Success, "", 0), nil
}

// of returns the message if d applies.
func (d *decision) of(v *policy.Evaluation) (message string, applies bool, err error) {
	value, err := v.Bool(d.expression)
	if err != nil || value != d.applies {
		return "", false, err
	}
	message, err = v.String(d.message)
	return message, true, err
}
