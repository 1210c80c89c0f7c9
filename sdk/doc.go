// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package sdk serves the handlers of an extension over gRPC. A handler is a function from the request message of a
// hook, as it is in the generated stubs, to an answer:
//
//	x := &sdk.Extension{}
//	sdk.Handle(x, "approve", func(ctx context.Context, in *hooks.BeforeClusterUpgradeRequest) (sdk.Answer, error) {
//		return sdk.Wait(30*time.Second, "waits for an approval"), nil
//	})
//	err := x.Serve(ctx, sdk.Config{})
//
// The type of the request is the hook: the package finds the method that takes it in the descriptors of the stubs, and
// answers Discovery from what is registered. So it has no list of hooks, serves those of every group, and several
// versions of the contract in one program.
//
// Package sdktest tests extensions.
//
// The package leaves authentication other than by client certificates, and tracing, to the options of gRPC that
// Config.Options passes on. It does not convert objects: a gateway does.
//
// An Extension may be registered with by one goroutine at a time, and not any more once it serves. It then calls
// handlers from several goroutines at the same time.
package sdk
