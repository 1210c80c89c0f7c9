// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/limits"
)

// drainTime is how long calls over connections with former credentials may take.
const drainTime = 2 * limits.Timeout

// Renewed is a client that runs for long and follows the files it was made from, because certificates and tokens in a
// Pod are renewed. It is safe for concurrent use.
type Renewed struct {
	files   []string
	open    func() (*Client, error)
	logger  *slog.Logger
	current atomic.Pointer[Client]

	mu   sync.Mutex
	read [sha256.Size]byte // of the files
}

// NewRenewed returns a client that open makes of files, whose names may be empty.
func NewRenewed(files []string, open func() (*Client, error), logger *slog.Logger) (*Renewed, error) {
	r := &Renewed{files: files, open: open, logger: logger}
	r.read = r.digest()
	opened, err := open()
	if err != nil {
		return nil, err
	}
	r.current.Store(opened)
	return r, nil
}

// Call is Client.Call with the files as they were last read.
func (r *Renewed) Call(ctx context.Context, h *catalog.Hook, handler string, req proto.Message) *Response {
	return r.current.Load().Call(ctx, h, handler, req)
}

// Close closes the connections.
func (r *Renewed) Close() { r.current.Load().Close() }

// Look opens another client if the files have changed. While they cannot be used, the former one stays.
func (r *Renewed) Look() {
	r.mu.Lock()
	defer r.mu.Unlock()
	read := r.digest()
	if read == r.read {
		return
	}
	opened, err := r.open()
	if err != nil {
		r.logger.Warn("the files of the gateway's client cannot be used; their last content stays in use",
			"error", err)
		return
	}
	r.read = read
	former := r.current.Swap(opened)
	time.AfterFunc(drainTime, former.Close)
	r.logger.Info("the files of the gateway's client were read again")
}

// digest returns a digest of the files. One that cannot be read counts by its error.
func (r *Renewed) digest() [sha256.Size]byte {
	h := sha256.New()
	for _, path := range r.files {
		if path == "" {
			continue
		}
		if err := hashFile(h, path); err != nil {
			_, _ = fmt.Fprintf(h, "%s: %v", path, err)
		}
		_, _ = h.Write([]byte{0})
	}
	return [sha256.Size]byte(h.Sum(nil))
}

func hashFile(h io.Writer, path string) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	_, err = io.Copy(h, io.LimitReader(file, limits.CertificateFileBytes))
	return err
}
