// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package ask has the commands that ask a gateway that runs: get, describe, call, explain, record, replay, dashboard,
// and bug-report. None of them is a gateway; explain can have one in its process.
package ask
