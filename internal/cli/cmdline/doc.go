// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cmdline has what every command of hookgate does alike: mistakes in the command line and exit statuses, flags
// from the environment, help, completion, and what is printed on a terminal. It knows no command.
package cmdline
