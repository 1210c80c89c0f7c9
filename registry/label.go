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
	// labelSeparator replaces the dot of the registered name.
	labelSeparator = "--"
	// labelHashLength is the number of hexadecimal digits.
	labelHashLength = 8
)

// Label returns a registered name, <handler>.<ExtensionConfig>, as a DNS-1123 label: the dot becomes "--". If that is
// ambiguous, because one of the two names contains "--", or too long, a hash of the registered name replaces the end.
// The label depends on the name alone. It always contains a hyphen, so it never equals the name of a hook in lower
// case.
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

// hashed reports whether the label of a handler has a hash, so that its name cannot be read back from it.
func hashed(handler, config string) bool {
	return strings.Contains(handler, labelSeparator) || strings.Contains(config, labelSeparator) ||
		len(handler)+len(labelSeparator)+len(config) > validation.DNS1123LabelMaxLength
}

// splitLabel splits a label without a hash into the names of the handler and the ExtensionConfig.
func splitLabel(label string) (handler, config string, ok bool) {
	handler, config, ok = strings.Cut(label, labelSeparator)
	return handler, config, ok && !hashed(handler, config)
}

// splitName splits a registered name, or a label without a hash, in any letter case.
func splitName(name string) (handler, config string, ok bool) {
	name = strings.ToLower(name)
	if handler, config, ok = strings.Cut(name, "."); ok {
		return handler, config, true
	}
	return splitLabel(name)
}

// hasHashedLabel reports whether a label with a hash, in any letter case, may be one of a handler of an
// ExtensionConfig. It is certain unless the hash has replaced the name of the ExtensionConfig as a whole.
func hasHashedLabel(label, config string) bool {
	label = strings.ToLower(label)
	hash := len(label) - labelHashLength - 1
	if hash <= 0 || label[hash] != '-' || strings.Trim(label[hash+1:], "0123456789abcdef") != "" {
		return false
	}
	for i := range hash {
		if strings.HasPrefix(label[i:hash], labelSeparator) && Label(label[:i]+"."+config) == label {
			return true
		}
	}
	return len(label) == validation.DNS1123LabelMaxLength && !strings.Contains(label[:hash], labelSeparator)
}
