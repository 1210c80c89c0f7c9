// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package contract is what the packages for authors know of the contract: its descriptors, the API groups of the
// project's own packages, and the contract's JSON.
package contract

import "google.golang.org/protobuf/reflect/protoreflect"

// Group returns the API group of the hooks of a proto package of the project, in any version, or an empty text.
func Group(pkg protoreflect.FullName) string {
	switch pkg.Parent() {
	case "hookgate.hooks":
		return "hooks.runtime.cluster.x-k8s.io"
	case "hookgate.infrastructure":
		return "infrastructure.hookgate.dev"
	case "hookgate.machines":
		return "hooks.machines.hookgate.dev"
	}
	return ""
}
