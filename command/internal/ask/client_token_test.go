// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package ask_test

import (
	"strings"
	"testing"

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// TestTokensAreSent tests that call and get send the token of the flags over both protocols, and nothing without one.
func TestTokensAreSent(t *testing.T) {
	f := commandtest.NewFakeServer(t, map[string]commandtest.FakeReply{"Discovery": {Body: `{"kind":"DiscoveryResponse","apiVersion":"hooks.runtime.cluster.x-k8s.io/v1alpha1","status":"Success","handlers":[]}`}})
	file := commandtest.WriteFile(t, "token", "secret.from-a.file\n")
	for _, server := range []string{f.HTTP.URL, "grpcs://" + f.GRPCS, "grpc://" + f.GRPC} {
		ca := []string{"--ca", f.CAFile}
		if strings.HasPrefix(server, "grpc://") {
			ca = nil
		}
		for want, flags := range map[string][]string{
			"":                          nil,
			"Bearer secret.from-a.file": {"--token-file", file},
			"Bearer secret":             {"--token", "secret"},
		} {
			for _, command := range [][]string{{"call", "Discovery"}, {"get", "handlers"}} {
				got := commandtest.Hookgate(t, "", append(append(append(command, "--server", server), ca...), flags...)...)
				if got.Code != cmdline.ExitDone || f.Bearer != want {
					t.Errorf("%v %s %v: exit status %d, sent %q, want %q\n%s", command, server, flags, got.Code, f.Bearer, want, got.ErrOut)
				}
				if strings.Contains(got.Out+got.ErrOut, "secret") {
					t.Errorf("%v prints the token:\n%s%s", command, got.Out, got.ErrOut)
				}
			}
		}
	}
}

// TestBadTokensAreNotPrinted tests each mistake with a token, of which the error must show nothing.
func TestBadTokensAreNotPrinted(t *testing.T) {
	f := commandtest.NewFakeServer(t, nil)
	for name, tt := range map[string]struct {
		flags []string
		want  string
		code  int
	}{
		"Both":      {[]string{"--token", "secret", "--token-file", commandtest.WriteFile(t, "a", "secret")}, "--token and --token-file: give only one of them", cmdline.ExitUsage},
		"NoFile":    {[]string{"--token-file", "/none/of/it"}, "read --token-file: open /none/of/it", cmdline.ExitFailed},
		"EmptyFile": {[]string{"--token-file", commandtest.WriteFile(t, "b", " \n")}, "b is empty", cmdline.ExitFailed},
		"TwoLines":  {[]string{"--token-file", commandtest.WriteFile(t, "c", "secret\nsecret")}, "the token has a character that tokens cannot have", cmdline.ExitUsage},
		"Control":   {[]string{"--token", "secret\x01"}, "the token has a character that tokens cannot have", cmdline.ExitUsage},
		"TooLong":   {[]string{"--token", strings.Repeat("secret", limits.TokenBytes)}, "the token is longer than 16384 bytes", cmdline.ExitUsage},
		"FileTooLong": {[]string{"--token-file", commandtest.WriteFile(t, "d", strings.Repeat("s", limits.TokenBytes+1))},
			"the token is longer than 16384 bytes", cmdline.ExitUsage},
		"NoTLS": {[]string{"--token", "secret", "--server", "grpc://192.0.2.1:9090"}, "--token and --token-file need TLS: want --server grpcs://192.0.2.1:9090", cmdline.ExitUsage},
	} {
		got := commandtest.Hookgate(t, "", append([]string{"call", "Discovery", "--ca", f.CAFile, "--server", f.HTTP.URL}, tt.flags...)...)
		if name == "NoTLS" {
			got = commandtest.Hookgate(t, "", append([]string{"call", "Discovery"}, tt.flags...)...)
		}
		if got.Code != tt.code || !strings.Contains(got.ErrOut, tt.want) || strings.Contains(got.Out+got.ErrOut, "secret") {
			t.Errorf("%s: exit status %d, want %d and %q:\n%s", name, got.Code, tt.code, tt.want, got.ErrOut)
		}
	}
}
