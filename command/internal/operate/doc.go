// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package operate has the commands that change objects in a cluster, or make what is applied there: rollout, job and
// callers. They ask the API server, and no gateway.
package operate
