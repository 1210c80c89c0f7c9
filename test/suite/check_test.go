// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Cluster API's own server passes all checks, and so does a gateway with it behind it, over both of its fronts: a gateway is
// an extension, too.
func TestCheck(t *testing.T) {
	hookgate := program(t, gatewayVariable)
	a := newAuthority(t)
	e := startExtension(t, a, "acme", "0")
	g := startGateway(t, a, map[string]string{"acme.yaml": registration{name: "acme", url: e.url}.manifest(a)})
	g.awaitHandler(t, "patches--acme")
	ca := filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, a.PEM, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, url := range map[string]string{"upstream": e.url, "gateway REST": "https://" + g.https, "gateway gRPC": "grpcs://" + g.grpc} {
		t.Run(name, func(t *testing.T) {
			// The certificates of these tests are good for an hour only.
			p := launch(t, "check", hookgate, "check", url, "--ca", ca, "--strict", "--skip", "tls.expiry")
			select { // it sends large requests, and many
			case <-p.done:
			case <-time.After(6 * patience):
			}
			if code := p.exitCode(t); code != 0 {
				t.Errorf("exit status %d", code)
			}
			p.await(t, ` 0 failed, 0 warnings, \d+ not applicable\n`)
		})
	}
}
