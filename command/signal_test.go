// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/test/process"
)

// startProgram starts hookgate serve as a process, with a call in flight: a request whose body does not come.
func startProgram(t *testing.T) *process.Gateway {
	t.Helper()
	configs, certs := commandtest.Serving(t)
	g := commandtest.ServeProgram(t, configs, certs, "--shutdown-timeout", "1h")
	c, err := net.Dial("tcp", g.HTTPS)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	secure := tls.Client(c, &tls.Config{InsecureSkipVerify: true})
	_, err = fmt.Fprintf(secure, "POST /hooks.runtime.cluster.x-k8s.io/v1alpha1/discovery HTTP/1.1\r\nHost: x\r\n"+
		"Content-Length: 10\r\nExpect: 100-continue\r\n\r\n")
	if err != nil {
		t.Fatal(err)
	}
	// The gateway asks for the body when it reads it: the call is in flight.
	if _, err := secure.Read(make([]byte, 10)); err != nil {
		t.Fatal(err)
	}
	return g
}

// The first SIGTERM lets a call in flight finish; the second ends the gateway at once. One that comes with the first, as
// timeout(1) sends it to a process and to its group, is the first.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	g := startProgram(t)
	for range 2 {
		if err := g.Terminate(); err != nil {
			t.Fatal(err)
		}
	}
	process.Eventually(t, "the gateway is not ready", func() bool { return g.Ready(t.Context()) == 503 })
	select {
	case <-g.Exited():
		t.Fatal("the gateway did not wait for the call in flight")
	default:
	}
	process.Eventually(t, "a second signal ends the gateway", func() bool {
		_ = g.Terminate()
		select {
		case <-g.Exited():
			return true
		default:
			return false
		}
	})
	// The call stays in flight, so that nothing but the second signal ends the gateway so soon: it may take an hour.
	if got, err := g.ExitStatus(); got != cmdline.ExitFailed || err != nil {
		t.Errorf("exit status %d, %v; want %d", got, err, cmdline.ExitFailed)
	}
	if _, err := g.Await(t.Context(), `stopped at once by a second signal \(terminated\)`); err != nil {
		t.Error(err)
	}
}

// SIGHUP reads the files again, and confirms that a directory without ExtensionConfigs is meant to be so. The gateway
// serves on.
func TestHangupReadsFilesAgain(t *testing.T) {
	configs, certs := commandtest.Serving(t)
	manifest := filepath.Join(configs, "acme.yaml")
	const content = "apiVersion: runtime.cluster.x-k8s.io/v1beta2\nkind: ExtensionConfig\nmetadata: {name: acme}\n" +
		"spec: {clientConfig: {url: 'https://127.0.0.1:1'}}\n"
	if err := os.WriteFile(manifest, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	g := commandtest.ServeProgram(t, configs, certs)
	g.Expect(t, `manifests read" .*extensionConfigs=1`)
	if err := os.Remove(manifest); err != nil {
		t.Fatal(err)
	}
	g.Expect(t, `directory is emptied`)
	if err := g.Reload(); err != nil {
		t.Fatal(err)
	}
	g.Expect(t, `SIGHUP: files are read again`)
	g.Expect(t, `all are unregistered" .*extensionConfigs=1`)
	g.WaitReady(t)
}
