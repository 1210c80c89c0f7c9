// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command own-hooks is hookgate with a group of hooks of its own, which manage DNS. It has every command of hookgate,
// and acme-dns is an extension that implements the hooks.
package main

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/command"
	dnsv1alpha1 "github.com/hookgate/hookgate/examples/own-hooks/gen/acme/dns/v1alpha1"
	"github.com/hookgate/hookgate/gateway"
)

func main() { command.Main(dns()) }

// dns returns the hooks that manage DNS records.
func dns() gateway.Group {
	return gateway.Group{
		Versions: []catalog.Source{{
			Group: "dns.acme.example", Version: "v1alpha1",
			Lifetime: catalog.Lifetime{Introduced: "v0.1.0"},
			Releases: []catalog.Release{{Version: "v0.1.0", Date: "2026-11-22"}}, // of this program
			Files:    []protoreflect.FileDescriptor{dnsv1alpha1.File_acme_dns_v1alpha1_dns_proto},
			FailOnly: true, // a record that may not exist must not count as published
		}},
	}
}
