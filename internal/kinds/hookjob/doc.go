// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hookjob compiles HookJobs, and answers hooks by Jobs of Kubernetes: handlers without a server. A Job answers
// for a registration in process, so that the registry, the chain of links, explanations and metrics treat it like an
// extension.
//
// The batch/v1 Job is the state. Its name is derived from the value of once, so that replicas, restarts and repeated
// calls make one. It is made suspended, gets its Secret, and only then starts. What keeps its Pod from succeeding is
// written to it, as the Pod may be gone when the Job fails. When it has ended, its message is written to it; its
// success is recorded before it is answered or the Job may be removed. See Cluster.
package hookjob
