// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package author_test

import (
	"testing"

	"github.com/hookgate/hookgate/command"
	"github.com/hookgate/hookgate/command/internal/commandtest"
)

func TestMain(m *testing.M) { commandtest.Main(m, command.Run, command.Main) }
