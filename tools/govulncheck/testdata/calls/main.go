// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command calls calls a function that the database of the test has as vulnerable.
package main

import (
	"os"
	"strings"
)

func main() { _, _ = os.Stdout.WriteString(strings.ToUpper("a")) }
