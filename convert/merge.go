// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bytes"

	jsonpatch "github.com/evanphx/json-patch/v5"
)

// mergePatchFor returns the JSON merge patch (RFC 7386) that applies the differences between base and wanted to
// original. base is original without the members lost in a round trip, which the patch does not touch. Lists are
// replaced as a whole, as merge patches do; a test holds that nothing is lost in elements of the lists of Machines and
// MachineSets.
func mergePatchFor(original, base, wanted []byte) ([]byte, error) {
	change, err := jsonpatch.CreateMergePatch(base, wanted)
	if err != nil {
		return nil, err
	}
	// The change may name members that original lacks, because conversions fill in defaults.
	changed, err := jsonpatch.MergePatch(bytes.Clone(original), change)
	if err != nil {
		return nil, err
	}
	return jsonpatch.CreateMergePatch(original, changed)
}
