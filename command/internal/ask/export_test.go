// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ask

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

const ExplanationWidth = explanationWidth

var (
	AsksServer    = asksServer
	DecodePatches = decodePatches
	Forward       = forward
)

// WatchExtensions lists the extensions of a server until the context of a command ends.
func WatchExtensions(cmd *cobra.Command, server string, interval time.Duration) error {
	o := extensionsOptions{output: cmdline.FormatTable, watch: true, interval: interval}
	o.Server, o.Timeout = server, time.Minute
	return o.ofGateway(cmd)
}
