// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package discovery_test

import (
	"testing"

	"github.com/hookgate/hookgate/internal/base/leaktest"
)

func TestMain(m *testing.M) { leaktest.Main(m) }
