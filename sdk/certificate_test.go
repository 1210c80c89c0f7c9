// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"bytes"
	"context"
	"crypto/tls"
	"log/slog"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookgate/hookgate/sdk/internal/testcert"
)

// text is a log.
type text struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (t *text) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.b.Write(p)
}

// taken returns what was logged since the last time.
func (t *text) taken() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	defer t.b.Reset()
	return t.b.String()
}

// handshake returns the certificate and the authorities of a handshake now.
func handshake(t *testing.T, settings *tls.Config) (serial string, callers *tls.Config) {
	t.Helper()
	callers = settings
	if settings.GetConfigForClient != nil {
		var err error
		if callers, err = settings.GetConfigForClient(nil); err != nil {
			t.Fatal(err)
		}
	}
	pair, err := callers.GetCertificate(nil)
	if err != nil {
		t.Fatal(err)
	}
	return pair.Leaf.SerialNumber.String(), callers
}

func write(t *testing.T, name, content string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestCertificatesFollowTheirFiles replaces a pair and the authorities, breaks each of both, and mends them.
func TestCertificatesFollowTheirFiles(t *testing.T) {
	files := testcert.In(t.TempDir())
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		pair, pool := files.Write(t, time.Now().Add(time.Hour))
		log := &text{}
		settings, err := serverTLS(ctx, Config{CertFile: files.Cert, KeyFile: files.Key, ClientCAFile: files.CA}, slog.New(slog.NewTextHandler(log, nil)))
		if err != nil {
			t.Fatal(err)
		}
		look := func() {
			time.Sleep(certificateInterval)
			synctest.Wait()
		}
		expect := func(what string, wantSerial bool, wantPool bool, logs string) {
			t.Helper()
			serial, config := handshake(t, settings)
			if same := serial == pair.Leaf.SerialNumber.String(); same != wantSerial {
				t.Errorf("%s: the newest certificate is shown: %t", what, same)
			}
			if config.ClientAuth != tls.RequireAndVerifyClientCert || config.ClientCAs.Equal(pool) != wantPool {
				t.Errorf("%s: the newest authorities are asked for: %t", what, !wantPool)
			}
			if got := log.taken(); !strings.Contains(got, logs) || logs == "" && got != "" {
				t.Errorf("%s: want %q in the log\n%s", what, logs, got)
			}
		}
		look()
		expect("nothing new", true, true, "")
		first, firstPool := pair, pool
		pair, pool = files.Write(t, time.Now().Add(2*time.Hour))
		look()
		expect("replaced", true, true, `msg="certificate replaced"`)
		key, err := os.ReadFile(files.Key)
		if err != nil {
			t.Fatal(err)
		}
		write(t, files.Key, "half")
		look()
		expect("half of a pair", true, true, "")
		look()
		expect("half of a pair, again", true, true, "certificate refused: what was read last stays in use")
		look()
		expect("said once", true, true, "")
		write(t, files.CA, "")
		look()
		look()
		expect("no authorities", true, true, "read certificate authorities of callers: "+files.CA+" has no certificate in PEM")
		write(t, files.Key, string(key))
		look()
		expect("mended", true, true, "")
		pair, pool = first, firstPool
		expect("it is not the first", false, false, "")
		files.Write(t, time.Now().Add(-time.Second))
		look()
		look()
		expect("expired", false, false, "is valid only from")
	})
}

func TestCertificateFilesThatAreNone(t *testing.T) {
	dir := t.TempDir()
	pipe, large := dir+"/pipe", dir+"/large"
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Fatal(err)
	}
	write(t, large, strings.Repeat(" ", certificateBytes+1))
	for name, want := range map[string]string{
		dir: "is a directory", pipe: "not a regular file", large: "larger than 1048576 bytes", dir + "/none": "no such file or directory",
	} {
		if _, err := readFile(name); err == nil || err.Error() != want {
			t.Errorf("%s: got %v, want %s", name, err, want)
		}
	}
	write(t, large, strings.Repeat(" ", certificateBytes))
	if _, err := readFile(large); err != nil {
		t.Errorf("as large as it may be: %v", err)
	}
}
