// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway_test

import (
	"fmt"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
	dnsv1alpha1 "github.com/hookgate/hookgate/examples/own-hooks/gen/acme/dns/v1alpha1"
	"github.com/hookgate/hookgate/gateway"
)

// A group of hooks besides Cluster API's. A program passes it to command.Main, which serves it.
func ExampleHooks() {
	hooks, _, err := gateway.Hooks(gateway.Group{
		Versions: []catalog.Source{{
			Group: "dns.acme.example", Version: "v1alpha1",
			Files: []protoreflect.FileDescriptor{dnsv1alpha1.File_acme_dns_v1alpha1_dns_proto},
		}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, h := range hooks.Hooks() {
		if h.Group == "dns.acme.example" {
			fmt.Println(h.GroupVersionHook)
		}
	}
	// Output:
	// dns.acme.example/v1alpha1/DiscoverDNS
	// dns.acme.example/v1alpha1/EnsureRecord
	// dns.acme.example/v1alpha1/RemoveRecord
}
