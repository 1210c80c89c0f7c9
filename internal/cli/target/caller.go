// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package target

import (
	"io"
	"log/slog"

	"github.com/hookgate/hookgate/caller"
	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/contract/codec"
)

// OpenCaller returns a client of the gateway of the flags that runs for long. Open says mistakes in the flags by the
// names of the flags.
func (o *ClientOptions) OpenCaller(hooks *catalog.Catalog, logger *slog.Logger) (*caller.Client, error) {
	o.Timeout = limits.InfrastructureTimeout // for Open alone
	opened, err := o.Open(codec.New(hooks), io.Discard)
	if err != nil {
		return nil, err
	}
	opened.Client.Close()
	return caller.New(caller.Config{
		URL: o.Server, CAFile: o.CA, CertFile: o.cert, KeyFile: o.key, Token: o.token, TokenFile: o.tokenFile,
		UserAgent: cmdline.UserAgent(), Logger: logger,
	})
}
