// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// labelSeparator stands in a label where the registered name has its dot.
	labelSeparator = "--"
	// labelHashLength is in hexadecimal digits.
	labelHashLength = 8
)

// Label returns a registered name, <handler>.<ExtensionConfig>, as a DNS-1123 label: the dot becomes "--". Where that
// would be ambiguous, because one of the two names has "--" itself, or too long, the end gives way to a hash of the
// registered name. The result depends on the name alone, and it always has a hyphen, so that it is never the name of a
// hook in lower case.
func Label(name string) string {
	handler, config, _ := strings.Cut(name, ".")
	label := handler + labelSeparator + config
	if len(label) <= validation.DNS1123LabelMaxLength && !hashed(handler, config) {
		return label
	}
	sum := sha256.Sum256([]byte(name))
	const most = validation.DNS1123LabelMaxLength - labelHashLength - 1
	return label[:min(len(label), most)] + "-" + hex.EncodeToString(sum[:labelHashLength/2])
}

// hashed tells whether the label of the handler does not lead back to its name.
func hashed(handler, config string) bool {
	return strings.Contains(handler, labelSeparator) || strings.Contains(config, labelSeparator) ||
		len(handler)+len(labelSeparator)+len(config) > validation.DNS1123LabelMaxLength
}

// splitLabel returns the names of the handler and the ExtensionConfig that make up a label without a hash.
func splitLabel(label string) (handler, config string, ok bool) {
	handler, config, ok = strings.Cut(label, labelSeparator)
	return handler, config, ok && !hashed(handler, config)
}
