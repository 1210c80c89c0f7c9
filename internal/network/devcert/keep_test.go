// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package devcert_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hookgate/hookgate/internal/network/devcert"
)

func content(t *testing.T, dir string) string {
	t.Helper()
	var all strings.Builder
	for _, name := range []string{devcert.CAFile, devcert.CertFile, devcert.KeyFile} {
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		all.Write(data)
	}
	return all.String()
}

// A certificate is kept until a day before it ends, and then replaced.
func TestKeep(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	soon, late := time.Now().Add(23*time.Hour), time.Now().Add(48*time.Hour)
	if _, made, err := devcert.Keep(dir, soon); !made || err != nil {
		t.Fatalf("made %t, %v", made, err)
	}
	if info, err := os.Stat(dir); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("the directory: %v, %v", info.Mode(), err)
	}
	first := content(t, dir)
	ends, made, err := devcert.Keep(dir, late)
	second := content(t, dir)
	if !made || err != nil || !ends.Equal(late) || second == first {
		t.Errorf("one that ends within a day: made %t, until %s, %v", made, ends, err)
	}
	ends, made, err = devcert.Keep(dir, time.Now().Add(time.Hour))
	if made || err != nil || !ends.Equal(late.UTC().Truncate(time.Second)) || content(t, dir) != second {
		t.Errorf("one that lasts: made %t, until %s, %v", made, ends, err)
	}
}

// Certificates of others are never replaced.
func TestKeepLeavesOthersAlone(t *testing.T) {
	for name, spoil := range map[string]func(dir string) error{
		"no key": func(dir string) error { return os.Remove(filepath.Join(dir, devcert.KeyFile)) },
		"no CA":  func(dir string) error { return os.Remove(filepath.Join(dir, devcert.CAFile)) },
		"another key": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, devcert.KeyFile), newPair(t).KeyPEM, 0o600)
		},
		"another CA": func(dir string) error {
			return os.WriteFile(filepath.Join(dir, devcert.CAFile), newPair(t).CAPEM, 0o600)
		},
	} {
		dir := t.TempDir()
		pair := newPair(t)
		if err := pair.WriteDir(dir); err != nil {
			t.Fatal(err)
		}
		if err := spoil(dir); err != nil {
			t.Fatal(err)
		}
		_, made, err := devcert.Keep(dir, time.Now().Add(48*time.Hour))
		if made || err == nil || !strings.Contains(err.Error(), "was not made for development, so the files were not changed") {
			t.Errorf("%s: made %t, %v", name, made, err)
		}
		if left, err := os.ReadFile(filepath.Join(dir, devcert.CertFile)); err != nil || string(left) != string(pair.CertPEM) {
			t.Errorf("%s: the certificate has changed, %v", name, err)
		}
	}
}
