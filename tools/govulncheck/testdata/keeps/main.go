// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Command keeps calls none.
package main

import "os"

func main() { _, _ = os.Stdout.WriteString("a") }
