// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"crypto/tls"
	"io"
	"net/http"
	"os/exec"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hookgate/hookgate/test/process"
)

// TestProbesHaveDescriptors opens more connections than a gateway may have descriptors. Those that it keeps make a request
// and stay, so that no timeout of a handshake ends them; /healthz is answered meanwhile.
func TestProbesHaveDescriptors(t *testing.T) {
	program := process.Program(t, gatewayVariable)
	a := newAuthority(t)
	args := append([]string{"-c", `ulimit -n 256 && exec "$0" "$@"`, program, "serve", "--extension-configs", t.TempDir(),
		"--cert-dir", a.dir(t)}, process.AnyPorts()...)
	g := process.RunGateway(t, exec.Command("/bin/sh", args...))
	g.WaitReady(t)
	config := &tls.Config{RootCAs: a.pool, NextProtos: []string{"http/1.1"}}
	var refused atomic.Int64
	const connections = 400
	for range connections {
		dialer := tls.Dialer{Config: config}
		go func() {
			c, err := dialer.DialContext(t.Context(), "tcp", g.HTTPS)
			if err != nil {
				refused.Add(1)
				return
			}
			defer func() { _ = c.Close() }()
			_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: x\r\n\r\n")
			<-t.Context().Done()
		}()
	}
	const kept = 256 / 4
	process.Eventually(t, "the gateway refuses what it has no descriptors for", func() bool {
		return refused.Load() >= connections-kept
	})
	client := &http.Client{Timeout: process.Patience, Transport: &http.Transport{DisableKeepAlives: true}}
	for range 20 {
		began := time.Now()
		response, err := client.Get("http://" + g.Diagnostics + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("/healthz answers %s after %s", response.Status, time.Since(began))
		}
	}
}
