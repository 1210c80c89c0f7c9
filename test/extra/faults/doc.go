// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package faults proves that the gateway is what stays up. Its tests start the built gateway within a limit of memory,
// extensions and callers, all as processes of their own, with a fault proxy between them. Under a steady load of
// healthy callers of healthy extensions they inject one fault after the other, and check for each that every call is
// answered as specified, that healthy callers notice nothing, that memory stays within the limit, and that nothing is
// left behind. They print a table of what they have measured; README.md says how to read it.
//
// It is a separate module, because the fault proxy is Toxiproxy, whose dependencies the product does not need. The
// tests are skipped unless HOOKGATE_BIN names the gateway; `make test-faults` builds it and sets the variable.
package faults
