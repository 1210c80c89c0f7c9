// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package calls

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	machinesv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/machines/v1alpha1"
)

// BeforeMachineCreate asks every handler that matches whether a machine may be made, in the share of a class. It may if
// the answer has no retryAfterSeconds, also if no handler matches, and if the gateway does not know the hook, so that
// it has no handlers of it.
func (c *Client) BeforeMachineCreate(
	ctx context.Context, class string, req *machinesv1alpha1.BeforeMachineCreateRequest,
) (*machinesv1alpha1.BeforeMachineCreateResponse, error) {
	answer, err := call(ctx, c, machinesv1alpha1.LifecycleHooksService_BeforeMachineCreate_FullMethodName,
		Target{Class: class}, nil, req, func(*machinesv1alpha1.BeforeMachineCreateResponse) error { return nil })
	e, ok := errors.AsType[*Error](err)
	if ok && e.Outcome == "Other" && status.Code(errors.Unwrap(e.cause)) == codes.Unimplemented {
		return &machinesv1alpha1.BeforeMachineCreateResponse{}, nil
	}
	return answer, err
}
