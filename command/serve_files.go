// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/internal/network/certs"
	"github.com/hookgate/hookgate/internal/seeing/observe"
)

// followed are the files that the gateway follows: what SIGHUP reads again, and what /readyz?verbose and the metrics
// say of them.
type followed struct {
	logger  *slog.Logger
	signals chan os.Signal
	reloads []func()
	notices []func() status.Notice
}

// newFollowed returns followed without files. From now on SIGHUP does not end the process.
func newFollowed(logger *slog.Logger) *followed {
	f := &followed{logger: logger, signals: make(chan os.Signal, 1)}
	signal.Notify(f.signals, syscall.SIGHUP)
	return f
}

// add adds the files of in and of the source of registrations.
func (f *followed) add(in *inputs, s source, metrics *observe.Metrics) {
	f.reloads = append(f.reloads, in.certificates.Reload)
	f.observe("serving", in.certificates.Pair(), metrics)
	f.notices = append(f.notices, func() status.Notice {
		return status.Notice{Name: "certificate/callers", Text: in.certificates.AuthoritiesWarning(time.Now())}
	})
	metrics.Certificate("callers", in.certificates.AuthoritiesNotAfter)
	if in.issuer != nil {
		f.notices = append(f.notices, func() status.Notice {
			return status.Notice{Name: "self-certificates", Text: in.issuer.Warning()}
		})
	}
	if in.clientCertificate != nil {
		f.certificate("client", in.clientCertificate, metrics)
	}
	f.source(s)
	if in.callers != nil {
		f.reloads = append(f.reloads, in.callers.Reload)
	}
}

// certificate adds a certificate.
func (f *followed) certificate(name string, pair *certs.Pair, metrics *observe.Metrics) {
	f.reloads = append(f.reloads, pair.Reload)
	f.observe(name, pair, metrics)
}

// observe adds a certificate that is read again with others.
func (f *followed) observe(name string, pair *certs.Pair, metrics *observe.Metrics) {
	f.notices = append(f.notices, func() status.Notice {
		return status.Notice{Name: "certificate/" + name, Text: pair.Warning(time.Now())}
	})
	metrics.Certificate(name, pair.NotAfter)
}

// source adds the source of registrations, if it reads files.
func (f *followed) source(s source) {
	files, ok := s.(interface {
		Reload()
		Warning() status.Notice
	})
	if !ok {
		return
	}
	f.reloads = append(f.reloads, files.Reload)
	f.notices = append(f.notices, func() status.Notice {
		notice := files.Warning()
		notice.Name = "manifests"
		return notice
	})
}

// all returns what operators should know about the files.
func (f *followed) all() []status.Notice {
	notices := make([]status.Notice, len(f.notices))
	for i, notice := range f.notices {
		notices[i] = notice()
	}
	return notices
}

// Run reads the files again at each SIGHUP, until ctx is done.
func (f *followed) Run(ctx context.Context) error {
	defer signal.Stop(f.signals)
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-f.signals:
			f.logger.Info("SIGHUP: files are read again")
			for _, reload := range f.reloads {
				reload()
			}
		}
	}
}
