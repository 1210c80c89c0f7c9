// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package samples

// S returns the small body of the benchmarks: BeforeClusterCreate with a full Cluster, about 4 kB.
func S() []byte { return Body("BeforeClusterCreate") }

// M returns the middle one: GeneratePatches with 100 items, about 250 kB.
func M() []byte { return Marshal(GeneratePatches(100)) }

// L returns the large one: GeneratePatches with 2,000 items, about 5 MB.
func L() []byte { return Marshal(GeneratePatches(2000)) }
