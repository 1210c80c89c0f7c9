// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package webhook answers what the API server asks about ExtensionConfigs and ExtensionPolicies before it stores them:
// defaults, whether they are valid, and how they look in another version.
//
// The rules are those of package controllers, which the sources keep to as well: what is admitted here is not refused
// there. What is legal but unwise gets a warning, once. What is being deleted, or changes nothing but metadata, passes: a
// rule that came later must keep nobody from that. Discovery and all that changes with time is left to conditions. Every replica answers, whether it leads or not;
// nothing is kept between two requests, and nothing waits for a cache.
//
// Everything here is safe for concurrent use but a Server, which is listened with and run once.
package webhook
