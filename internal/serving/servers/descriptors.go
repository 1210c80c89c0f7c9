// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package servers

import "math"

const unlimited = math.MaxUint64

// within returns how many connections an address may have open: most, or less if that is more than one of so many parts
// of the descriptors that the process may have open. So the connections of one address leave some to the others, above
// all to probes of health, and to files and calls.
func within(descriptors uint64, parts, most int) int {
	return int(min(descriptors/uint64(parts), uint64(most)))
}
