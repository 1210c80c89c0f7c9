// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package golden_test

import (
	"encoding/json"
	"fmt"

	"github.com/hookgate/hookgate/hook"
	golden "github.com/hookgate/hookgate/proto"
)

// A test of an extension can send a realistic request of every hook.
func ExampleRequest() {
	body := golden.Request(hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: "BeforeClusterUpgrade"})
	var request struct{ Kind, FromKubernetesVersion, ToKubernetesVersion string }
	err := json.Unmarshal(body, &request)
	fmt.Println(request.Kind, request.FromKubernetesVersion, request.ToKubernetesVersion, err)
	// Output: BeforeClusterUpgradeRequest v1.32.7 v1.33.4 <nil>
}
