// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import "time"

// AwaitWrites makes a Source wait for its own writes in its cache, however long a busy machine takes to bring them.
// By default, it decides without them after a second, and then writes once more.
func (c *Config) AwaitWrites() { c.lag = time.Hour }
