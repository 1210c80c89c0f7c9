// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package hookversion lets callers and handlers use different versions of one hook. It converts messages between the
// versions of a catalog, warns about deprecated versions, and checks when a version may be deprecated and removed.
//
// The newest version of a hook is its hub; every older version, a spoke, converts to the hub and back. Any two spokes
// convert through the hub. A call whose handler implements the caller's version passes through unchanged.
//
// Package catalog knows which versions exist. A Converter is immutable and safe for concurrent use.
package hookversion
