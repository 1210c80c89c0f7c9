// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registry_test

import (
	"fmt"
	"time"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/registry"
)

// A program that embeds the gateway registers its extensions itself.
func Example() {
	r := registry.New()
	create := hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: "BeforeClusterCreate"}
	err := r.Apply(registry.Registration{
		Name:         "acme",
		ClientConfig: registry.ClientConfig{URL: "https://extension.acme.example"},
		Handlers: []registry.Handler{
			{Name: "check", Hook: create, Timeout: 10 * time.Second, FailurePolicy: hook.Fail},
			{Name: "notify", Hook: create, Timeout: time.Second, FailurePolicy: hook.Ignore},
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	r.SetReady() // the gateway answers from now on

	for _, e := range r.Snapshot().Handlers(create.GroupHook()) {
		fmt.Println(e.Name, e.Label, e.Handler.Timeout, e.Handler.FailurePolicy)
	}

	err = r.Apply(registry.Registration{
		Name:         "acme",
		ClientConfig: registry.ClientConfig{URL: "http://extension.acme.example"},
	})
	fmt.Println(err)
	fmt.Println(len(r.Snapshot().All()), "handlers")
	// Output:
	// check.acme check--acme 10s Fail
	// notify.acme notify--acme 1s Ignore
	// ExtensionConfig "acme": clientConfig.url: must begin with https://, not with "http"
	// 2 handlers
}
