// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookversion_test

import (
	"fmt"

	"github.com/hookgate/hookgate/hookversion"
	hookversionsv1 "github.com/hookgate/hookgate/test/hookversions/gen/hookversions/v1"
	hookversionsv1beta1 "github.com/hookgate/hookgate/test/hookversions/gen/hookversions/v1beta1"
)

// A conversion between two versions of a message is what differs between them. Whatever an older version has no place
// for is lost on the way down, and named.
func ExampleDerive() {
	request := hookversion.Derive(&hookversionsv1beta1.PlanDrainsRequest{}, &hookversionsv1.PlanDrainsRequest{},
		hookversion.Differences{
			Renamed: map[string]string{"nodes[*].name": "nodeName"},
			Added:   map[string]any{"maxParallel": int32(1)}, // the default, for callers of the older version
		})
	older, lost, err := request.Down(&hookversionsv1.PlanDrainsRequest{MaxParallel: new(int32(3))})
	fmt.Println(lost, err)
	newer, lost, err := request.Up(older)
	fmt.Println(newer.(*hookversionsv1.PlanDrainsRequest).GetMaxParallel(), lost, err)
	// Output:
	// [maxParallel] <nil>
	// 1 [] <nil>
}
