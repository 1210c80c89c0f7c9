// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package convert

import (
	"bytes"

	jsonpatch "github.com/evanphx/json-patch/v5"
)

// mergePatchFor returns the JSON merge patch (RFC 7386) that changes in original what differs between base and
// wanted. base is original without what was lost on a way there and back, which the patch leaves alone. Lists are
// replaced as a whole, as merge patches do; a test holds that nothing is lost in elements of the lists of Machines
// and MachineSets.
func mergePatchFor(original, base, wanted []byte) ([]byte, error) {
	change, err := jsonpatch.CreateMergePatch(base, wanted)
	if err != nil {
		return nil, err
	}
	// The change may name what original does not have, because conversions fill in defaults.
	changed, err := jsonpatch.MergePatch(bytes.Clone(original), change)
	if err != nil {
		return nil, err
	}
	return jsonpatch.CreateMergePatch(original, changed)
}
