// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookrule_test

import (
	"fmt"
	"strings"
	"testing"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
)

// validated returns the message of the answer of a rule, which is empty if the topology is valid.
func validated(t *testing.T, spec string) (string, error) {
	t.Helper()
	from := topology()
	request := &hooksv1alpha1.ValidateTopologyRequest{Variables: from.GetVariables(), Settings: from.GetSettings()}
	for _, item := range from.GetItems() {
		request.Items = append(request.Items, &hooksv1alpha1.ValidateTopologyRequestItem{
			HolderReference: item.GetHolderReference(), Object: item.GetObject(), Variables: item.GetVariables(),
		})
	}
	m, err := answer(t, "hook: ValidateTopology\nvalidations:\n"+spec, request)
	if err != nil {
		return "", err
	}
	response, _ := m.(*hooksv1alpha1.ValidateTopologyResponse)
	failed := response.GetStatus() == hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_FAILURE
	if failed != (response.GetMessage() != "") {
		t.Errorf("the answer is %v", response)
	}
	return response.GetMessage(), nil
}

func TestValidations(t *testing.T) {
	for name, tc := range map[string]struct{ reason, spec, want string }{
		"Valid": {"what applies to nothing is not said",
			`- {if: size(request.items) > 9 || "x" in variables, message: '"too many"'}`, ""},
		"Request": {"a request as a whole has the variables of all templates",
			`- {unless: variables.size == "tiny" && settings.zone == "z1", message: '"size is " + variables.size'}`, "size is small"},
		"Items": {"a template has its own, and what is wrong with several is said once",
			`- {selector: {kind: CloudMachineTemplate}, if: variables.size == "large", message: '"no " + variables.size'}`, "no large"},
		"InOrder": {"the messages are in the order of the rule, and then of the items",
			`- {selector: {kind: CloudMachineTemplate}, if: "true", message: 'variables.builtin.?machineDeployment.?class.orValue("control plane")'}
- {if: "true", message: '"first"'}
- {selector: {kind: CloudClusterTemplate}, unless: object.spec.template.spec.region == "b", message: 'item.holderReference.name + ": region " + object.spec.template.spec.region'}`,
			"control plane; default-worker; gpu; first; c: region a"},
		"Long": {"a message has an end",
			fmt.Sprintf(`- {if: "true", message: '"%s"'}`, strings.Repeat("m", 4000)) + "\n" +
				fmt.Sprintf(`- {if: "true", message: '"%s"'}`, strings.Repeat("n", 4000)) + "\n" +
				fmt.Sprintf(`- {if: "true", message: '"%s"'}`, strings.Repeat("o", 4000)),
			strings.Repeat("m", 4000) + "; " + strings.Repeat("n", 4000) + "; " +
				strings.Repeat("o", limits.MessageBytes-8004-len(" … (cut)")) + " … (cut)"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := validated(t, tc.spec)
			if err != nil || got != tc.want {
				t.Errorf("%s: got %v\n%s\nwant\n%s", tc.reason, err, got, tc.want)
			}
		})
	}
}

func TestValidationsFail(t *testing.T) {
	for name, tc := range map[string]struct{ reason, spec, want string }{
		"Request": {"an expression about the request is named", `- {if: variables.none, message: '"m"'}`,
			`HookRule "r": spec.validations[0].if: the expression fails for this request: no such key: none`},
		"Item": {"and so is the item", "- {if: 'false', message: '\"m\"'}\n" +
			`- {selector: {kind: CloudClusterTemplate}, if: "true", message: variables.quota}`,
			`HookRule "r": spec.validations[1].message: for this request, the value of the expression is not text, for item Cluster n/c spec.infrastructureRef`},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := validated(t, tc.spec)
			if hook.KindOf(err) != hook.Policy || err.Error() != tc.want {
				t.Errorf("%s: got %v\nwant %s", tc.reason, err, tc.want)
			}
		})
	}
}

func TestValidationsRefused(t *testing.T) {
	for name, tc := range map[string]struct{ reason, spec, want string }{
		"None":    {"a rule says something", `validations: []`, `spec.validations: Required value: must have a validation`},
		"Both":    {"in one way", `validations: [{if: "true", unless: "true", message: '"m"'}]`, `spec.validations[0]: Required value: must have one of if and unless`},
		"Message": {"a message is a text", `validations: [{if: "true", message: "1"}]`, `spec.validations[0].message: Invalid value: must be a text, but is of type int`},
		"Item":    {"there is an item where one is selected", `validations: [{if: item.uid == "", message: '"m"'}]`, `spec.validations[0].if: Invalid value: line 1, column 1: undeclared reference to 'item'`},
		"Clock":   {"a topology is valid at any time", `validations: [{if: now == now, message: '"m"'}]`, `spec.validations[0].if: Invalid value: line 1, column 1: undeclared reference to 'now'`},
		"Selects": {"a selector selects something", `validations: [{selector: {}, if: "true", message: '"m"'}]`, `spec.validations[0].selector.kind: Required value: must be the kind of the templates`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, got := compile(t, "hook: ValidateTopology\n"+tc.spec); !strings.HasPrefix(got, tc.want) {
				t.Errorf("%s: got\n%s\nwant\n%s", tc.reason, got, tc.want)
			}
		})
	}
}
