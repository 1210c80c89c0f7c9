// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package recording writes what handlers are asked and answer, without secrets, into files and for those who ask for
// the calls of one handler while they are made. It reads such files.
//
// A call is never kept waiting, and never fails, because it is recorded: its request and answer are copied into a
// bounded queue, and dropped and counted where there is no room. One goroutine removes the secrets and writes.
//
// docs/recording.md describes the format. A Recorder and a Redactor are safe for concurrent use; a Reader is not.
package recording
