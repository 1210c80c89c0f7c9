// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"context"
	"io"
	"log/slog"
	"time"

	"github.com/hookgate/hookgate/internal/calls/client"
	"github.com/hookgate/hookgate/internal/contract/codec"
)

// followInterval is how often the files of a client are looked at.
const followInterval = 10 * time.Second

// RenewedClient is a client of the server of the flags that runs for long, and follows its files.
type RenewedClient struct{ *client.Renewed }

// OpenRenewed returns a client of the server of the flags.
func OpenRenewed(o *ClientOptions, c *codec.Codec, logger *slog.Logger) (*RenewedClient, error) {
	open := func() (*client.Client, error) {
		opened, err := o.Open(c, io.Discard)
		if err != nil {
			return nil, err
		}
		return opened.Client, nil
	}
	r, err := client.NewRenewed([]string{o.CA, o.cert, o.key, o.tokenFile}, open, logger)
	if err != nil {
		return nil, err
	}
	return &RenewedClient{r}, nil
}

// Run follows the files until ctx is done.
func (r *RenewedClient) Run(ctx context.Context) error {
	ticker := time.NewTicker(followInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			r.Look()
		}
	}
}
