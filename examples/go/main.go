// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command extension is a Runtime Extension over gRPC, built with package sdk. Cluster API calls the gateway in front of
// it. This file is the program; hooks.go has the handlers.
package main

import (
	"context"
	"log"
	"os"

	"github.com/hookgate/hookgate/sdk"
)

func main() {
	var config sdk.Config
	if len(os.Args) > 1 {
		config.Address = os.Args[1]
	}
	if err := extension().Serve(context.Background(), config); err != nil {
		log.Fatal(err)
	}
}

// extension returns the extension with its handlers, which Discovery lists in this order.
func extension() *sdk.Extension {
	x := &sdk.Extension{}
	sdk.Handle(x, "approve-upgrade", approveUpgrade)
	sdk.Handle(x, "image-repository", imageRepository)
	sdk.HandleResponse(x, "image-repository-variables", imageRepositoryVariables)
	sdk.HandleResponse(x, "patch-in-place", patchInPlace)
	return x
}
