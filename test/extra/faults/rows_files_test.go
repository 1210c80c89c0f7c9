// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"crypto/tls"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/hookgate/hookgate/test/process"
	"github.com/hookgate/hookgate/test/samples"
)

// fileFaults are the rows whose fault is in the files that the gateway follows.
func fileFaults() []row {
	return []row{
		{"manifest of 200,000 lines ---", "the directory is followed", beside(func(t *testing.T, path string) {
			replace(t, path, strings.Repeat("---\n", 200_000))
		})},
		{"pipe as a manifest", "the directory is followed", beside(func(t *testing.T, path string) {
			if err := syscall.Mkfifo(path, 0o600); err != nil {
				t.Fatal(err)
			}
		})},
		{"device as a manifest", "the directory is followed", beside(func(t *testing.T, path string) {
			if err := os.Symlink("/dev/zero", path); err != nil {
				t.Fatal(err)
			}
		})},
		{"directory is emptied", "everything stays registered, and SIGHUP is not needed", emptied},
		{"pipe as ca.crt", "new callers connect as before", pipeAsAuthorities},
		{"YAML alias bomb as a manifest", "the directory is followed", beside(func(t *testing.T, path string) {
			replace(t, path, aliasBomb())
		})},
		{"expired certificate", "it is refused, and the old one shown", expired},
		{"certificate rotates", "new callers see it, old connections stay", rotated},
	}
}

// beside returns the fault of a file beside good manifests: an extension that is added then is registered.
func beside(write func(t *testing.T, path string)) func(*testing.T, *fixture, *tally) {
	return func(t *testing.T, w *fixture, c *tally) {
		path := filepath.Join(w.gateway.configs, "aaa.yaml")
		write(t, path)
		t.Cleanup(func() { _ = os.Remove(path) })
		good := startExtension(t, w.authority, healthy)
		name := w.register(t, "https://"+good.https)
		w.eventuallyAnswers(t, name)
		c.countf(true, "")
	}
}

// emptied takes all manifests away for some seconds.
func emptied(t *testing.T, w *fixture, c *tally) {
	away := t.TempDir()
	move := func(from, to string) {
		t.Helper()
		for _, name := range []string{"good-rest.yaml", "good-grpc.yaml"} {
			if err := os.Rename(filepath.Join(from, name), filepath.Join(to, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	move(w.gateway.configs, away)
	process.Eventually(t, "/readyz?verbose says so", func() bool {
		return strings.Contains(w.gateway.get(t, "/readyz?verbose"), "[!]manifests: ")
	})
	for range 20 {
		c.countf(w.knows("good-rest") && w.knows("good-grpc"), "an extension is not registered any more")
		time.Sleep(100 * time.Millisecond)
	}
	move(away, w.gateway.configs)
	process.Eventually(t, "/readyz?verbose is content again", func() bool {
		return !strings.Contains(w.gateway.get(t, "/readyz?verbose"), "[!]manifests: ")
	})
}

// pipeAsAuthorities puts a pipe in the place of a file that decides about new connections.
func pipeAsAuthorities(t *testing.T, w *fixture, c *tally) {
	path := filepath.Join(w.gateway.certs, "ca.crt")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = os.Remove(path) }()
	w.gateway.Expect(t, "certificate authorities of callers.*not a regular file")
	for range 20 {
		w.rest.CloseIdleConnections()
		err := callREST(w.rest, w.gateway.HTTPS, handler+".good-rest", samples.Body("BeforeClusterCreate"))
		c.countf(err == nil, "%v", err)
	}
}

// aliasBomb returns YAML that stands for ten thousand million values.
func aliasBomb() string {
	var b strings.Builder
	b.WriteString("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n")
	for i := range 9 {
		from := fmt.Sprintf("*a%d", i)
		fmt.Fprintf(&b, "a%d: &a%d [%s]\n", i+1, i+1, strings.Join(slices.Repeat([]string{from}, 10), ", "))
	}
	return b.String()
}

// expired puts a certificate in place whose time is over.
func expired(t *testing.T, w *fixture, c *tally) {
	w.write(t, w.gateway.certs, time.Now().Add(-time.Minute))
	process.Eventually(t, "/readyz?verbose says so", func() bool {
		return strings.Contains(w.gateway.get(t, "/readyz?verbose"), "its replacement is refused")
	})
	for range 20 {
		w.rest.CloseIdleConnections() // so that each call sees the certificate
		err := callREST(w.rest, w.gateway.HTTPS, handler+".good-rest", samples.Body("BeforeClusterCreate"))
		c.countf(err == nil, "%v", err)
	}
	w.write(t, w.gateway.certs, time.Now().Add(6*time.Hour))
	process.Eventually(t, "/readyz?verbose is content again", func() bool {
		return !strings.Contains(w.gateway.get(t, "/readyz?verbose"), "its replacement is refused")
	})
}

// rotated replaces the certificate, first by one that does not fit its key, which must not be shown.
func rotated(t *testing.T, w *fixture, c *tally) {
	shown := func() string {
		conn, err := tls.Dial("tcp", w.gateway.HTTPS, w.client)
		if err != nil {
			c.countf(false, "%v", err)
			return ""
		}
		defer func() { _ = conn.Close() }()
		return conn.ConnectionState().PeerCertificates[0].SerialNumber.String()
	}
	first := shown()
	wrong, err := os.ReadFile(filepath.Join(w.dir(t), "tls.crt"))
	if err != nil {
		t.Fatal(err)
	}
	replace(t, filepath.Join(w.gateway.certs, "tls.crt"), string(wrong))
	process.Eventually(t, "/readyz?verbose says so", func() bool {
		return strings.Contains(w.gateway.get(t, "/readyz?verbose"), "its replacement is refused")
	})
	got := shown()
	c.countf(got == first, "certificate %s is shown, want %s", got, first)
	w.write(t, w.gateway.certs, time.Now().Add(6*time.Hour))
	process.Eventually(t, "the new certificate is shown", func() bool { return shown() != first })
	c.countf(true, "")
}
