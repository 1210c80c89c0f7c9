// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package codec

import (
	"fmt"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/hookgate/hookgate/catalog"
)

// AlwaysWritten reports whether a field of the contract's messages is a member of their JSON even when it is empty. All
// others are left out then. In Cluster API's hooks, these are the members whose json tag has no omitempty; a test
// compares with Cluster API's types, in both directions.
func AlwaysWritten(fd protoreflect.FieldDescriptor) bool {
	message, member := fd.ContainingMessage().Name(), fd.JSONName()
	switch member {
	case "status", "retryAfterSeconds": // of every answer that has them; a status within is like any other member
		return strings.HasSuffix(string(message), "Response")
	}
	if isLifecycleRequest(fd.ContainingMessage()) {
		return member == "cluster" || strings.HasSuffix(strings.ToLower(member), "kubernetesversion")
	}
	switch message {
	case "GeneratePatchesRequest", "ValidateTopologyRequest":
		return member == "items"
	case "GeneratePatchesRequestItem", "ValidateTopologyRequestItem":
		return member == "uid" || member == "holderReference" || member == "object"
	case "GeneratePatchesResponseItem":
		return member == "uid" || member == "patchType" || member == "patch"
	case "HolderReference", "GroupVersionHook":
		return true
	case "Variable":
		return member == "name" || member == "value"
	case "ExtensionHandler":
		return member == "name" || member == "requestHook"
	}
	return false
}

// isLifecycleRequest reports whether a message is the request of one of Cluster API's lifecycle hooks.
func isLifecycleRequest(md protoreflect.MessageDescriptor) bool {
	service := md.ParentFile().Services().ByName(protoreflect.Name(catalog.Lifecycle + "Service"))
	if service == nil || !strings.HasPrefix(string(service.FullName()), "hookgate.hooks.") {
		return false
	}
	method := service.Methods().ByName(protoreflect.Name(strings.TrimSuffix(string(md.Name()), "Request")))
	return method != nil && method.Input() == md
}

// EnumTexts returns the strings in JSON for the values of an enum, by number; 0 is always the absent value, "". A
// string is what the name of the value adds to the name of the enum, in CamelCase: FAILURE_POLICY_IGNORE is "Ignore".
// Cluster API writes JSON in capital letters. EnumTexts panics if the values are not numbered 0, 1, 2 and so on, which
// the catalog refuses.
func EnumTexts(enum protoreflect.EnumDescriptor) []string {
	values := enum.Values()
	texts := make([]string, values.Len())
	for i := 1; i < values.Len(); i++ {
		v := values.Get(i)
		if int(v.Number()) != i {
			panic(fmt.Sprintf("codec: %s is not the value %d of its enum, but %d", v.FullName(), i, v.Number()))
		}
		words := strings.Split(string(v.Name()), "_")
		for n := len(words); n > 0; n-- { // words of the enum's name
			if strings.EqualFold(strings.Join(words[:n], ""), string(enum.Name())) {
				words = words[n:]
				break
			}
		}
		for n, word := range words {
			if word != "JSON" {
				words[n] = word[:1] + strings.ToLower(word[1:])
			}
		}
		texts[i] = strings.Join(words, "")
	}
	return texts
}
