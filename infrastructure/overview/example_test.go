// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package overview_test

import (
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/hookgate/hookgate/infrastructure/overview"
	infrav1 "github.com/hookgate/hookgate/infrastructure/v1alpha1"
)

// A summary says what each object waits for.
func Example() {
	c := infrav1.HookgateCluster{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "c"}}
	c.Status.Conditions = []metav1.Condition{{
		Type: infrav1.ReadyCondition, Status: metav1.ConditionFalse, Reason: infrav1.ProvisioningReason, Message: "the network is made",
	}}
	all := overview.Objects{Clusters: []infrav1.HookgateCluster{c}}
	for _, row := range all.Summary(time.Now()).Clusters {
		fmt.Printf("%s/%s is %s: %s\n", row.Namespace, row.Name, row.State, row.Message)
	}
	// Output: default/c is Provisioning: the network is made
}
