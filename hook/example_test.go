// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hook_test

import (
	"errors"
	"fmt"

	"github.com/hookgate/hookgate/hook"
)

// The text of an error is the same for the same failure. What varies is its cause, for the log.
func Example() {
	err := hook.Errorf(hook.Unreachable, "connection refused").WithHandler("check.acme").
		WithCause(errors.New("dial tcp 10.96.0.7:41234: connect: connection refused"))
	kind := hook.KindOf(fmt.Errorf("upgrade: %w", err))
	fmt.Println(err)
	fmt.Println(kind, kind.HTTPStatus(), kind.GRPCCode(), "ignorable:", kind.Ignorable())
	// Output:
	// handler "check.acme": connection refused
	// Unreachable 503 Unavailable ignorable: true
}

func ExampleParse() {
	h, err := hook.Parse("hooks.runtime.cluster.x-k8s.io/v1alpha1", "BeforeClusterUpgrade")
	fmt.Println(h.APIVersion(), h.Hook, err)
	_, err = hook.Parse("v1alpha1", "BeforeClusterUpgrade")
	fmt.Println(err)
	// Output:
	// hooks.runtime.cluster.x-k8s.io/v1alpha1 BeforeClusterUpgrade <nil>
	// apiVersion "v1alpha1" is not of the form group/version
}
