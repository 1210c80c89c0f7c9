// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers_test

import (
	"fmt"
	"log/slog"

	"k8s.io/client-go/rest"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/controllers"
	"github.com/hookgate/hookgate/registry"
)

// A Source is made without a connection. Its Run fills the registry, which is not ready before that.
func ExampleNew() {
	registered := registry.New()
	source, err := controllers.New(controllers.Config{
		REST: &rest.Config{Host: "https://api.acme.example"}, Group: controllers.HookgateGroup,
		Catalog: catalog.New(), Registry: registered, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("leads:", source.Leads())
	fmt.Println("ready:", registered.Snapshot().Ready())
	// Output:
	// leads: false
	// ready: false
}
