// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookrule

import (
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/contract/redact"
)

// validations is what rules of ValidateTopology may say.
func validations() category {
	return category{
		hooks:   func(h *catalog.Hook) bool { return h.Hook == "ValidateTopology" },
		fields:  []string{"validations"},
		compile: compileValidations,
		audits:  true,
	}
}

// validationsRule answers ValidateTopology.
type validationsRule []validation

// validation is about the items that selector selects, or about the request as a whole if it is nil.
type validation struct {
	where    string
	selector *selector
	decision
}

func compileValidations(in *compilation, spec *v1alpha1.HookRuleSpec, path *field.Path) answerer {
	at := path.Child("validations")
	if len(spec.Validations) == 0 {
		in.errs = append(in.errs, field.Required(at, "must have a validation"))
	}
	rule := make(validationsRule, in.bounded(len(spec.Validations), at))
	for i := range rule {
		from, at := &spec.Validations[i], at.Index(i)
		rule[i].where = at.String()
		variables := ofRequests
		if from.Selector != nil {
			s := in.selector(from.Selector, at.Child("selector"))
			rule[i].selector, variables = &s, ofItems
		}
		rule[i].decision = in.decision(&from.HookRuleDecision, at, variables...)
	}
	return rule
}

// answer implements answerer: Failure with the messages of all validations that apply, each of which is said once.
func (rule validationsRule) answer(v *policy.Evaluation, message proto.Message) (proto.Message, error) {
	request, _ := message.(*hooksv1alpha1.ValidateTopologyRequest)
	of, err := newTopology(v, request)
	if err != nil {
		return nil, err
	}
	messages := make([][]string, len(rule)) // in the order of the rule, and in it, of the items
	for i := range rule {
		if rule[i].selector == nil {
			if err := rule[i].validate(v, &messages[i]); err != nil {
				return nil, err
			}
		}
	}
	for n, item := range request.GetItems() {
		for i := range rule {
			if rule[i].selector == nil {
				continue
			}
			selected, err := of.selects(rule[i].selector, n, item)
			if err == nil && selected {
				err = rule[i].validate(v, &messages[i])
			}
			if err != nil {
				return nil, about(err, rule[i].where, item)
			}
		}
	}
	response := &hooksv1alpha1.ValidateTopologyResponse{Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS}
	said := map[string]bool{}
	all := slices.DeleteFunc(slices.Concat(messages...), func(m string) bool {
		again := said[m]
		said[m] = true
		return again
	})
	if len(all) > 0 {
		response.Status = hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_FAILURE
		response.Message = redact.Bounded(strings.Join(all, "; "), limits.MessageBytes)
	}
	return response, nil
}

// validate adds the message of a validation that applies.
func (r *validation) validate(v *policy.Evaluation, messages *[]string) error {
	message, applies, err := r.of(v)
	if err == nil && applies {
		*messages = append(*messages, message)
	}
	return err
}
