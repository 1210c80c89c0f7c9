// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"

	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/machines/v1alpha1"
)

// A template that lets RemediateMachine try twice.
func ExampleHookgateRemediationTemplate() {
	t := v1alpha1.HookgateRemediationTemplate{}
	t.APIVersion, t.Kind = v1alpha1.GroupVersion.String(), v1alpha1.HookgateRemediationTemplateKind
	t.Name = "reboot"
	t.Spec.Template.Spec = v1alpha1.HookgateRemediationSpec{Handler: "job.reboot", RetryLimit: new(int32(1))}
	text, err := yaml.Marshal(t)
	fmt.Print(string(text), err)
	// Output:
	// apiVersion: machines.hookgate.dev/v1alpha1
	// kind: HookgateRemediationTemplate
	// metadata:
	//   name: reboot
	// spec:
	//   template:
	//     spec:
	//       handler: job.reboot
	//       retryLimit: 1
	// <nil>
}
