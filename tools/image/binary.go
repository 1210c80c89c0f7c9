// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"debug/buildinfo"
	"debug/elf"
	"fmt"
	"runtime/debug"
)

// check returns an error unless the binary is for the platform, is static, and was built reproducibly.
func (b binary) check() error {
	info, err := buildinfo.ReadFile(b.file)
	if err != nil {
		return fmt.Errorf("read build information of %s: %w", b.file, err)
	}
	for _, s := range []debug.BuildSetting{
		{Key: "GOOS", Value: b.os}, {Key: "GOARCH", Value: b.arch}, {Key: "CGO_ENABLED", Value: "0"},
		{Key: "-trimpath", Value: "true"}, {Key: "vcs.revision"},
	} {
		if got := setting(info, s.Key); got != s.Value {
			return fmt.Errorf("%s was built with %s=%q: want %q", b.file, s.Key, got, s.Value)
		}
	}
	f, err := elf.Open(b.file)
	if err != nil {
		return fmt.Errorf("read %s: %w", b.file, err)
	}
	defer func() { _ = f.Close() }()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP || p.Type == elf.PT_DYNAMIC {
			return fmt.Errorf("%s is not static", b.file)
		}
	}
	return nil
}

func setting(info *debug.BuildInfo, key string) string {
	for _, s := range info.Settings {
		if s.Key == key {
			return s.Value
		}
	}
	return ""
}
