// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"crypto/sha256"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/client"
	"github.com/hookgate/hookgate/internal/codec"
	"github.com/hookgate/hookgate/internal/limits"
)

const (
	// followInterval is how often the files of a client are looked at.
	followInterval = 10 * time.Second
	// drainTime is how long calls over connections with former credentials may take.
	drainTime = 2 * limits.Timeout
)

// renewedClient is a client that runs for long: it follows its files, because certificates and tokens in a Pod are
// renewed. It is safe for concurrent use.
type renewedClient struct {
	options *clientOptions
	codec   *codec.Codec
	logger  *slog.Logger
	current atomic.Pointer[client.Client]
	read    [sha256.Size]byte // of the files; Run alone uses it
}

// openRenewed returns a client of the server of the flags.
func openRenewed(o *clientOptions, c *codec.Codec, logger *slog.Logger) (*renewedClient, error) {
	f := &renewedClient{options: o, codec: c, logger: logger, read: o.digest()}
	opened, err := o.open(c, io.Discard)
	if err != nil {
		return nil, err
	}
	f.current.Store(opened.client)
	return f, nil
}

// Call implements calls.Caller.
func (f *renewedClient) Call(ctx context.Context, h *catalog.Hook, handler string, req proto.Message) *client.Response {
	return f.current.Load().Call(ctx, h, handler, req)
}

// Close closes the connections.
func (f *renewedClient) Close() { f.current.Load().Close() }

// Run follows the files until ctx is done.
func (f *renewedClient) Run(ctx context.Context) error {
	ticker := time.NewTicker(followInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			f.look()
		}
	}
}

// look opens another client if the files have changed. While they cannot be used, the former one stays.
func (f *renewedClient) look() {
	read := f.options.digest()
	if read == f.read {
		return
	}
	opened, err := f.options.open(f.codec, io.Discard)
	if err != nil {
		f.logger.Warn("the files of the gateway's client cannot be used; what was read before stays", "error", err)
		return
	}
	f.read = read
	former := f.current.Swap(opened.client)
	time.AfterFunc(drainTime, former.Close)
	f.logger.Info("the files of the gateway's client were read again")
}

// digest returns a digest of the files of the flags. One that cannot be read counts by its error.
func (o *clientOptions) digest() [sha256.Size]byte {
	h := sha256.New()
	for _, path := range []string{o.ca, o.cert, o.key, o.tokenFile} {
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
