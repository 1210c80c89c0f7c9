// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command package is an extension with one handler, on the package.
package main

import (
	"context"
	"log"
	"os"

	hooks "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/sdk"
)

func main() {
	x := &sdk.Extension{}
	sdk.Handle(x, "hello", func(context.Context, *hooks.BeforeClusterUpgradeRequest) (sdk.Answer, error) {
		return sdk.Done(), nil
	})
	if err := x.Serve(context.Background(), sdk.Config{Address: os.Args[1]}); err != nil {
		log.Fatal(err)
	}
}
