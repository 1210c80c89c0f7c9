// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/api/v1alpha1"
)

// A program can make policies for the extensions that it installs. Calls to the handlers of acme may take five seconds,
// and Clusters go on without them.
func Example() {
	timeout := int32(5)
	manifest, err := yaml.Marshal(&v1alpha1.ExtensionPolicy{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "ExtensionPolicy"},
		ObjectMeta: metav1.ObjectMeta{Name: "acme"},
		Spec: v1alpha1.ExtensionPolicySpec{
			TargetRef: v1alpha1.TargetReference{Name: "acme"}, TimeoutSeconds: &timeout, FailurePolicy: v1alpha1.FailurePolicyIgnore,
		},
	})
	if err != nil {
		fmt.Println(err)
	}
	fmt.Print(string(manifest))
	// Output:
	// apiVersion: hookgate.dev/v1alpha1
	// kind: ExtensionPolicy
	// metadata:
	//   name: acme
	// spec:
	//   failurePolicy: Ignore
	//   targetRef:
	//     name: acme
	//   timeoutSeconds: 5
}
