// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package activity

import (
	"sync"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/contract/redact"
)

// Server is what was seen of the server of an extension, by whatever was sent there. The zero value is one that was
// never seen.
type Server struct {
	// Up is when it answered last, and Down when it was last found to be gone.
	Up, Down time.Time
	// Since is when it began to answer, or was found to be gone first, whichever was seen last.
	Since time.Time
	// Message says why it is gone; it is empty if it is not.
	Message string
}

// Gone reports whether it did not answer when it was seen last.
func (s *Server) Gone() bool { return s.Message != "" }

// Servers has the servers of extensions. Its zero value is empty.
type Servers struct {
	mu      sync.RWMutex
	servers map[string]*server
}

type server struct {
	mu   sync.Mutex
	url  string
	seen Server
}

// Has reports whether the server of an extension was seen.
func (s *Servers) Has(extensionConfig string) bool {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.servers[extensionConfig] != nil
}

// Record records that a server answers, or why not if there is a message, and reports whether it is back. A server with
// another URL begins anew; an empty URL is the one that is known.
func (s *Servers) Record(extensionConfig, url string, at time.Time, message string) (back bool) {
	s.mu.RLock()
	v := s.servers[extensionConfig]
	s.mu.RUnlock()
	if v == nil {
		v = s.add(extensionConfig, url)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if url != "" && url != v.url {
		v.url, v.seen = url, Server{}
	}
	was := v.seen
	if message != "" {
		v.seen.Down, v.seen.Message = at, redact.Bounded(message, limits.FailureBytes)
	} else {
		v.seen.Up, v.seen.Message = at, ""
	}
	if was.Since.IsZero() || was.Gone() != v.seen.Gone() {
		v.seen.Since = at
	}
	return was.Gone() && !v.seen.Gone()
}

func (s *Servers) add(extensionConfig, url string) *server {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.servers[extensionConfig]; v != nil {
		return v
	}
	if s.servers == nil {
		s.servers = map[string]*server{}
	}
	v := &server{url: url}
	s.servers[extensionConfig] = v
	return v
}

// Of returns what was seen of the server of an extension.
func (s *Servers) Of(extensionConfig string) Server {
	s.mu.RLock()
	v := s.servers[extensionConfig]
	s.mu.RUnlock()
	if v == nil {
		return Server{}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.seen
}

// Forget forgets the server of an ExtensionConfig that is gone.
func (s *Servers) Forget(extensionConfig string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.servers, extensionConfig)
}
