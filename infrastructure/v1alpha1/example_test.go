// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1_test

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/infrastructure/v1alpha1"
)

// Clusters in namespaces of team red may be made of racks, by the extension that the ExtensionConfig acme registers.
func Example() {
	manifest, err := yaml.Marshal(&v1alpha1.InfrastructureClass{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "InfrastructureClass"},
		ObjectMeta: metav1.ObjectMeta{Name: "racks"},
		Spec: v1alpha1.InfrastructureClassSpec{
			ExtensionRef: v1alpha1.ExtensionReference{Name: "acme"},
			AllowedNamespaces: &v1alpha1.AllowedNamespaces{
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"team": "red"}},
			},
		},
	})
	if err != nil {
		fmt.Println(err)
	}
	fmt.Print(string(manifest))
	// Output:
	// apiVersion: infrastructure.hookgate.dev/v1alpha1
	// kind: InfrastructureClass
	// metadata:
	//   name: racks
	// spec:
	//   allowedNamespaces:
	//     selector:
	//       matchLabels:
	//         team: red
	//   extensionRef:
	//     name: acme
}
