// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"net"
	"os/exec"
	"path/filepath"
)

// proxiesDir is where `make bin/proxies/envoy` puts Envoy and nginx.
const proxiesDir = "bin/proxies"

// findProgram returns the path of a program of others: given, if a flag names it, or else the first candidate that can be
// run. It returns "" if there is none, and an error only if what the flag names cannot be run.
func findProgram(given string, candidates ...string) (string, error) {
	if given != "" {
		path, err := exec.LookPath(given)
		if err != nil {
			return "", fmt.Errorf("%w: %w", errUsage, err)
		}
		return filepath.Abs(path)
	}
	for _, name := range candidates {
		if path, err := exec.LookPath(name); err == nil {
			return filepath.Abs(path)
		}
	}
	return "", nil
}

// freeAddress returns an address of loopback that was free a moment ago, for programs that do not report their port.
func freeAddress() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return l.Addr().String(), l.Close()
}
