// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build unix

package extension

import (
	"errors"
	"io"
	"net"
	"syscall"
)

// socket reads what has arrived on a connection without waiting for more. Its zero value never finds anything.
type socket struct {
	raw  syscall.RawConn
	read func(fd uintptr) bool // reads into p; kept, because a function that is made for each read is allocated

	p   []byte
	n   int
	err error
}

// open prepares s for reading c, if that is a socket.
func (s *socket) open(c net.Conn) {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return
	}
	s.raw = raw
	s.read = func(fd uintptr) bool {
		s.n, s.err = syscall.Read(int(fd), s.p)
		for errors.Is(s.err, syscall.EINTR) {
			s.n, s.err = syscall.Read(int(fd), s.p)
		}
		return true // and not: wait until there is something to read
	}
}

// poll reads into p what has arrived; errQuiet if there is nothing.
func (s *socket) poll(p []byte) (int, error) {
	if s.raw == nil {
		return 0, errQuiet
	}
	s.p = p
	err := s.raw.Read(s.read)
	s.p = nil
	switch {
	case err != nil:
		return 0, err
	case errors.Is(s.err, syscall.EAGAIN):
		return 0, errQuiet
	case s.err != nil:
		return 0, s.err
	case s.n == 0:
		return 0, io.EOF
	}
	return s.n, nil
}
