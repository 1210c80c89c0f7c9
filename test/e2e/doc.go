// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package e2e runs the gateway between the real Cluster API and its own test extension: kube-apiserver, etcd, the
// managers, the extension and the gateway are processes of this machine, and the Machines exist in the memory of the
// infrastructure provider, or in that of a fake cloud, in front of which the providers of examples/ stand. No container
// runs.
// It has only tests, run by `make test-e2e`. It is a separate module, so that go.sum pins the programs of
// Cluster API that are built for it, and the product does not depend on them. It leaves to the other suites what needs
// no Cluster API: answers, faults, policies, replicas.
package e2e
