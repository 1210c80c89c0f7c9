// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package image looks at the archive that `make image` writes, with nothing but the standard library: that it is what the
// OCI image layout says, that it holds nothing but the gateway, that a second build elsewhere gives the same bytes, and that
// the gateway serves from it.
//
// The tests are skipped unless HOOKGATE_IMAGE names the archive; `make test` builds it and sets that. As root, they run the
// gateway with the unpacked image as its root and as the image's user; otherwise from the unpacked image.
package image
