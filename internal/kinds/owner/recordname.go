// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package owner

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// nameHashBytes is how much of a hash is in a name that was too long.
const nameHashBytes = 8

// RecordName returns the name of a record, which is made of the names of other objects. The API server refuses more
// than 253 characters, so a hash of the whole name replaces the end of a longer one.
func RecordName(name string) string {
	if len(name) <= validation.DNS1123SubdomainMaxLength {
		return name
	}
	const most = validation.DNS1123SubdomainMaxLength - 1 - 2*nameHashBytes
	sum := sha256.Sum256([]byte(name))
	return strings.TrimRight(name[:most], ".-") + "-" + hex.EncodeToString(sum[:nameHashBytes])
}
