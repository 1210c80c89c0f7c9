// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cluster runs the product in Pods: in a Kubernetes of one node, with kubelet and containerd, which the suite starts
// and ends. All of it, and what calls it, is in namespaces of the kernel that go with the test's process: of processes, of
// mounts, and of a network that has no way out. On the machine it needs root, unshare and ip, and leaves nothing behind.
//
// Tests that call all run only before a release, by make test-cluster-all; those of the files z1 to z3 install other things
// in place of the hub, and are the last.
//
// The tests are skipped unless HOOKGATE_CLUSTER_BIN names the directory that scripts/build-cluster fills, and where the
// namespaces cannot be made. `make test-cluster` then writes why to bin/not-checked.log, which .ci/run prints last.
package cluster
