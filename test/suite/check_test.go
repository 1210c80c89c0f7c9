// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/hookgate/hookgate/test/process"
)

var passed = regexp.MustCompile(` 0 failed, 0 warnings, \d+ not applicable\n`)

// TestCheck checks Cluster API's own server, and a gateway in front of it over REST and gRPC: a gateway is an
// extension, too.
func TestCheck(t *testing.T) {
	hookgate := process.Program(t, gatewayVariable)
	a := newAuthority(t)
	e := startExtension(t, a, "acme", "0")
	g := startGateway(t, a, map[string]string{"acme.yaml": registration{name: "acme", url: e.url}.manifest(a)})
	g.awaitHandler(t, "patches--acme")
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, a.PEM, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, url := range map[string]string{"upstream": e.url, "gateway REST": "https://" + g.HTTPS, "gateway gRPC": "grpcs://" + g.GRPC} {
		t.Run(name, func(t *testing.T) {
			// The certificates of these tests are valid for an hour, and how quick an answer is depends on the machine.
			check := exec.CommandContext(t.Context(), hookgate, "check", url, "--ca", ca, "--strict", "--skip",
				"tls.expiry", "--skip", "answers.quick")
			out, err := check.CombinedOutput()
			if err != nil || !passed.Match(out) {
				t.Errorf("%v:\n%s", err, out)
			}
		})
	}
}
