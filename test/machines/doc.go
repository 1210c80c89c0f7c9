// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package machines runs the controllers of Machine hooks with a real API server, and a real extension behind the
// dispatcher of a gateway. The test plays Cluster API. `make test-kubernetes` runs it.
package machines
