// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package workflows has the tests of the workflows in .github, which cannot run here: that they use actions by their commits,
// that they may do no more than they need, and that a release publishes what the pages tell people to download. It also
// tests what .ci/run begins with, and which suites it runs after a change.
package workflows
