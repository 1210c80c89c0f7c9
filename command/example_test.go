// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command_test

import (
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/command"
	dnsv1alpha1 "github.com/hookgate/hookgate/examples/own-hooks/gen/acme/dns/v1alpha1"
	"github.com/hookgate/hookgate/gateway"
)

// The program has every command of hookgate, and serves a group of hooks besides Cluster API's.
func ExampleMain() { //nolint:testableexamples // it ends the process
	command.Main(gateway.Group{
		Versions: []catalog.Source{{
			Group: "dns.acme.example", Version: "v1alpha1",
			Files: []protoreflect.FileDescriptor{dnsv1alpha1.File_acme_dns_v1alpha1_dns_proto},
		}},
	})
}
