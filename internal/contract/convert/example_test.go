// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert_test

import (
	"fmt"
	"log"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/contract/convert"
)

// A handler written for v1beta1 gets the v1beta1 form of a v1beta2 Machine and answers with a patch for it. The caller
// gets a patch for its own Machine.
func Example() {
	objects := convert.NewObjects(convert.NewReferences())

	req := &hooksv1alpha1.CanUpdateMachineRequest{Current: &hooksv1alpha1.CanUpdateMachineRequestObjects{
		Machine: &hooksv1alpha1.RawExtension{Raw: []byte(`{"apiVersion":"cluster.x-k8s.io/v1beta2","kind":"Machine",
			"spec":{"clusterName":"c","minReadySeconds":5,"deletion":{"nodeDrainTimeoutSeconds":60}}}`)},
	}}
	converted, err := objects.Request(req, convert.V1Beta1)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(converted.Losses)

	answer, losses, err := converted.Response(&hooksv1alpha1.CanUpdateMachineResponse{MachinePatch: &hooksv1alpha1.Patch{
		PatchType: hooksv1alpha1.PatchType_PATCH_TYPE_JSON_MERGE_PATCH,
		Patch:     []byte(`{"spec":{"nodeDrainTimeout":"2m"}}`),
	}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(answer.(*hooksv1alpha1.CanUpdateMachineResponse).MachinePatch.Patch), losses)
	// Output:
	// [machine.spec.minReadySeconds]
	// {"spec":{"deletion":{"nodeDrainTimeoutSeconds":120}}} []
}
