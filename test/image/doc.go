// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package image checks the archive that `make image` writes, using only the standard library: that it follows the OCI
// image layout, that it holds only the gateway, that a second build elsewhere gives the same bytes, and that the
// gateway serves from it.
//
// The tests are skipped unless HOOKGATE_IMAGE names the archive; `make test-image` builds it and sets that. As root, they run
// the gateway with the unpacked image as its root and as the image's user; otherwise from the unpacked image.
package image
