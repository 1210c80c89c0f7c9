// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sdk

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"
)

const unixScheme = "unix://"

// checkLoopback returns an error unless only programs of this machine can connect to an address.
func checkLoopback(ctx context.Context, address string) error {
	if strings.HasPrefix(address, unixScheme) {
		return nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return fmt.Errorf("listen on %q: want host:port or unix:///path", address)
	}
	if host == "" {
		return errLoopback(address)
	}
	addresses, err := net.DefaultResolver.LookupIPAddr(ctx, host)
	if err != nil {
		return fmt.Errorf("listen on %s: %w", address, err)
	}
	for _, a := range addresses {
		if !a.IP.IsLoopback() {
			return errLoopback(address)
		}
	}
	return nil
}

// listen listens on host:port or unix:///path. choice says how to choose another port.
func listen(ctx context.Context, address, choice string) (net.Listener, error) {
	path, isUnix := strings.CutPrefix(address, unixScheme)
	if isUnix {
		return listenUnix(ctx, path)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("listen on %s: the port is in use: stop the program that uses it, or %s", address, choice)
	}
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	return listener, nil
}

// probeTimeout bounds the question whether a server listens on a socket.
const probeTimeout = time.Second

// listenUnix listens on a socket that only this user can open. A killed server leaves its socket's file, which is
// replaced.
func listenUnix(ctx context.Context, path string) (net.Listener, error) {
	if !strings.HasPrefix(path, "/") {
		return nil, fmt.Errorf("listen on unix://%s: want unix:///path", path)
	}
	switch info, err := os.Lstat(path); {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, fmt.Errorf("listen on unix://%s: %w", path, err)
	case info.Mode().Type() != fs.ModeSocket:
		return nil, fmt.Errorf("listen on unix://%s: there is a file that is not a socket", path)
	default:
		ctx, cancel := context.WithTimeout(ctx, probeTimeout)
		defer cancel()
		conn, err := new(net.Dialer).DialContext(ctx, "unix", path)
		if err == nil {
			_ = conn.Close()
			return nil, fmt.Errorf("listen on unix://%s: another server listens there: stop it, or choose another path", path)
		}
		if !errors.Is(err, syscall.ECONNREFUSED) && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("listen on unix://%s: %w", path, err)
		}
	}
	// The file has its final name only when no one else can open it.
	temporary := path + "~"
	_ = os.Remove(temporary) // of a server that was killed in between
	listener, err := new(net.ListenConfig).Listen(ctx, "unix", temporary)
	if err != nil {
		return nil, fmt.Errorf("listen on unix://%s: %w", path, err)
	}
	if unix, ok := listener.(*net.UnixListener); ok {
		unix.SetUnlinkOnClose(false) // which would be temporary
	}
	err = os.Chmod(temporary, 0o600)
	if err == nil {
		err = os.Rename(temporary, path)
	}
	if err != nil {
		_ = listener.Close()
		_ = os.Remove(temporary)
		return nil, fmt.Errorf("listen on unix://%s: %w", path, err)
	}
	return &unixListener{Listener: listener, remove: sync.OnceFunc(func() { _ = os.Remove(path) })}, nil
}

// unixListener removes its file when it is closed.
type unixListener struct {
	net.Listener

	remove func()
}

// Close implements net.Listener.
func (l *unixListener) Close() error {
	l.remove()
	return l.Listener.Close()
}
