// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package policy

import (
	"fmt"

	kubejson "sigs.k8s.io/json"
)

// Decode decodes JSON into the form that Conditions.Match expects: whole numbers become int64 if they fit, all others
// float64. The result takes many times the memory of the text, so decode only requests that have to be matched.
func Decode(text []byte) (any, error) {
	var value any
	if err := kubejson.UnmarshalCaseSensitivePreserveInts(text, &value); err != nil {
		return nil, fmt.Errorf("decode request: %w", err)
	}
	return value, nil
}
