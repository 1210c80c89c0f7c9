// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// TestRefuses checks that nothing is written of what is not complete, static and reproducible.
func TestRefuses(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	other := map[string]string{"amd64": "arm64"}[runtime.GOARCH]
	if other == "" {
		other = "amd64"
	}
	binary := func(platform string) string { return "-binary=" + platform + "=" + self }
	for name, tc := range map[string]struct {
		reason string
		args   []string
		want   string
	}{
		"NoName":        {"an image without a name cannot be loaded", []string{"-version=v1", binary("linux/amd64")}, "-name is required"},
		"VersionNoTag":  {"a version that no registry takes", []string{"-name=n/i", "-version=v1+dirty", binary("linux/amd64")}, "-version: want what may be a tag"},
		"NoBinary":      {"an image for no platform", []string{"-name=n/i", "-version=v1"}, "-binary is required"},
		"BinaryTwice":   {"two images for one platform", []string{"-name=n/i", "-version=v1", binary("linux/amd64"), binary("linux/amd64")}, "linux/amd64 is there twice"},
		"NoPlatform":    {"a missing platform", []string{"-name=n/i", "-version=v1", "-binary=" + self}, "want OS/ARCHITECTURE=FILE"},
		"OtherPlatform": {"a binary that cannot run there", []string{"-name=n/i", "-version=v1", binary("linux/" + other)}, `GOARCH="` + runtime.GOARCH + `": want "` + other + `"`},
		"NoGoBinary":    {"a file that is no Go binary", []string{"-name=n/i", "-version=v1", "-binary=linux/amd64=main.go"}, "read build information of main.go"},
		"Cgo": {"a binary that may need libraries", []string{"-name=n/i", "-version=v1", altered(t, self, "CGO_ENABLED=0", "CGO_ENABLED=1")},
			`CGO_ENABLED="1": want "0"`},
		"NotTrimmed": {"a binary that depends on the folder of its build", []string{"-name=n/i", "-version=v1",
			altered(t, self, "-trimpath=true", "-trimpath=none")}, ": want "},
	} {
		t.Run(name, func(t *testing.T) {
			output := filepath.Join(t.TempDir(), "image.tar")
			err := run(append(tc.args, "-output", output), io.Discard)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("%s: got %v, want %s", tc.reason, err, tc.want)
			}
			if _, err := os.Stat(output); err == nil {
				t.Errorf("%s: an archive was written", tc.reason)
			}
		})
	}
}

// altered returns the flag for a copy of a binary whose build information has another setting of the same length. A binary
// that was not built as make does lacks the setting, and is refused anyway.
func altered(t *testing.T, file, before, after string) string {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "binary")
	if err := os.WriteFile(path, bytes.ReplaceAll(data, []byte(before), []byte(after)), 0o600); err != nil {
		t.Fatal(err)
	}
	return "-binary=" + runtime.GOOS + "/" + runtime.GOARCH + "=" + path
}

// TestRoots checks that the file has the authorities that are trusted without a condition, and only those.
func TestRoots(t *testing.T) {
	data, err := rootsPEM()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			t.Errorf("certificate authority %d: %v", len(got), err)
		}
		got[string(block.Bytes)] = true
	}
	for root := range bundle.Roots() {
		if got[string(root.Certificate)] != (root.Constraint == nil) {
			t.Errorf("an authority with constraint %t is there: %t", root.Constraint != nil, got[string(root.Certificate)])
		}
	}
	again, err := rootsPEM()
	if err != nil || !bytes.Equal(data, again) {
		t.Errorf("made twice, the file differs: %v", err)
	}
}
