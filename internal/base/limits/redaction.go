// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package limits

// The limits of removing secrets from a text.
const (
	// RedactDepth is how many texts within one another are read: JSON in a string, base64, what is compressed.
	RedactDepth = 6
	// RedactLeastBytes and RedactPart bound the texts within a text together, when they are decoded: so many times the
	// text, and the least besides.
	RedactLeastBytes = 1 << 20
	RedactPart       = 16
	// RedactYAMLBytes is the size of a text that is read as YAML, and not line by line.
	RedactYAMLBytes = 256 << 10
	// RedactMarginBytes is how much more of a text is read than is kept of it.
	RedactMarginBytes = 8 << 10
)
