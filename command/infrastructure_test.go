// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"bytes"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// Mistakes in the flags of hookgate infrastructure end it before it calls anything, with a text that names the flag.
func TestInfrastructureUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "--gateway is required"},
		{[]string{"--ui"}, "unknown flag: --ui"},
		{[]string{"--gateway", "https://gateway:9443"}, `--gateway "https://gateway:9443"`},
		{[]string{"--gateway", "grpcs://gateway"}, "--gateway \"grpcs://gateway\": must have a port"},
		{[]string{"--gateway", "grpcs://gateway:9090"}, "--kubeconfig is required"},
		{[]string{"--gateway", "grpcs://gateway:9090", "--kubeconfig", "k", "--max-calls", "0"}, "--max-calls: want more than 0"},
		{[]string{"--gateway", "grpcs://gateway:9090", "--kubeconfig", "k", "--sync-period", "0s"}, "--sync-period: want"},
		{[]string{"--gateway", "grpcs://gateway:9090", "--kubeconfig", "k", "--webhook-port", "65536"}, "--webhook-port: want"},
		{[]string{"--gateway", "grpcs://gateway:9090", "--kubeconfig", "k", "--diagnostics-address", "x"}, "--diagnostics-address"},
	} {
		var out, errOut bytes.Buffer
		code := commandtest.Run(t.Context(), append([]string{"infrastructure"}, c.args...), strings.NewReader(""), &out, &errOut,
			func(string) (string, bool) { return "", false })
		if code != cmdline.ExitUsage || !strings.Contains(errOut.String(), c.want) {
			t.Errorf("%q: exit status %d, %s, want %q", c.args, code, &errOut, c.want)
		}
	}
}
