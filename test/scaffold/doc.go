// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package scaffold does what a new user does: in an empty folder it makes a project of every kind with the built
// `hookgate init`, and runs the commands of the project's README as they are. The environment has no path into the
// repository. What a release publishes comes from a registry on this machine that has the built packages
// (registry_test.go), and everything else from where it always comes from. TestRelease (release_test.go) makes a release
// of the working tree, and does the same with that.
//
// The tests are skipped unless HOOKGATE_BIN names the program, and HOOKGATE_PACKAGES the folder of the packages;
// `make test-init` builds both.
package scaffold
