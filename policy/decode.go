// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"

	kubejson "sigs.k8s.io/json"
)

// Decode returns the JSON text as Conditions.Match wants it: whole numbers as int64 where they fit, others as float64. It
// costs memory many times the size of the text, and is for requests that a condition looks at.
func Decode(text []byte) (any, error) {
	var value any
	if err := kubejson.UnmarshalCaseSensitivePreserveInts(text, &value); err != nil {
		return nil, fmt.Errorf("decode request: %w", err)
	}
	return value, nil
}
