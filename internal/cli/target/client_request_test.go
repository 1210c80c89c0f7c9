// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/internal/base/yaml/yamltest"
)

// Requests mean what manifests with the same text do.
func TestRequestJSON(t *testing.T) {
	for name, tc := range yamltest.Cases {
		if name == "Bomb" {
			continue // which grows to megabytes; package yaml stops it
		}
		got, err := requestJSON([]byte(tc.YAML))
		if tc.Error == "" && (err != nil || string(got) != tc.JSON) {
			t.Errorf("%s: %s: got %s, %v, want %s", name, tc.Reason, got, err, tc.JSON)
		}
		if tc.Error != "" && (err == nil || !strings.Contains(err.Error(), tc.Error) || tc.Line > 0 && !strings.HasPrefix(err.Error(), fmt.Sprintf("line %d: ", tc.Line))) {
			t.Errorf("%s: %s: got %v, want line %d: %s", name, tc.Reason, err, tc.Line, tc.Error)
		}
	}
}
