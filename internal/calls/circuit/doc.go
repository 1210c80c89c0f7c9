// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package circuit decides whether an extension that fails is called at all. A Circuit opens when calls fail one after
// the other, or when too large a part of them fails, and then lets one call at a time try whether the extension is
// back, at intervals that grow. It knows nothing of calls: its user says which of them count as failures.
//
// A Circuit has no goroutine and no timer, so it costs nothing while no call is made, and needs no end.
package circuit
