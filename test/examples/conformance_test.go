// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package examples

import (
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/hookgate/hookgate/internal/network/devcert"
	"github.com/hookgate/hookgate/test/process"
)

// checkConformance runs the conformance checks on the example, directly and behind a sidecar, as Cluster API calls it.
func checkConformance(t *testing.T, url string) {
	check := func(args ...string) {
		t.Helper()
		out, err := exec.Command(gatewayPath(t), append([]string{"check", "--verbose"}, args...)...).CombinedOutput()
		if err != nil {
			t.Errorf("hookgate check %v: %v\n%s", args, err, out)
		}
	}
	check(url, "--strict", "--skip", "answers.quick") // which measures the machine

	certs := t.TempDir()
	pair, err := devcert.New(time.Now().Add(60*24*time.Hour), "127.0.0.1", "localhost")
	if err != nil {
		t.Fatal(err)
	}
	if err := pair.WriteDir(certs); err != nil {
		t.Fatal(err)
	}
	sidecar := process.RunGateway(t, exec.Command(gatewayPath(t), "serve", "--sidecar", url, "--cert-dir", certs,
		"--http-address=127.0.0.1:0", "--diagnostics-address=127.0.0.1:0"))
	sidecar.WaitReady(t)
	// Not strict: over JSON, an extension that calls a request invalid gives a bad answer.
	check("https://"+sidecar.HTTPS, "--ca", filepath.Join(certs, "dev-ca.crt"))
	sidecar.EndWell(t)
}
