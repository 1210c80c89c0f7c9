// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package seeing is a folder. Its packages show people what happens: metrics, spans and the status, the page, what the
// command line prints of it, differences between answers, and reports of bugs.
package seeing
