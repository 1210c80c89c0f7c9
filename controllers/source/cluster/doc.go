// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster is the source of ExtensionConfigs that a Kubernetes cluster is.
//
// Every replica of the gateway fills its own registry from the status of the ExtensionConfigs that it watches. One of
// them leads: it also injects CAs, discovers extensions, and writes status and conditions, which the others follow.
// What an ExtensionConfig means, and what is served while its extension does not answer, is decided by package
// controllers, for this source as for any other. What conversions have lost in calls to any of them, each adds to one condition.
//
// Nothing on the path of a call asks the API server. While it is away, everything stays served as it was; a leader that
// loses its lease goes on as a follower.
//
// What is written depends only on the ExtensionConfig and on what its extension says, so that a world that does not
// change is not written to, however often it is looked at.
//
// A Source may be used from any goroutine once Run was called. An ExtensionConfig is worked on by one goroutine at a time.
package cluster
