// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package target has the flags that say what a command talks to, and talks to it: a server of hooks, the diagnostics
// address of a gateway, also through the API server, and a cluster. It leaves what is asked to the commands.
package target
