// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package grpclogs passes on what grpc-go logs, at levels that fit a gateway.
package grpclogs

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	"google.golang.org/grpc/grpclog"

	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// grpcLog writes what grpc-go logs. Its warnings are about connections, whose failures are reported with the call or
// the discovery that they concern, so that they have the level debug. Its errors are warnings, because the process goes
// on: ten at once, and then one in a second. Those beyond have the level debug.
type grpcLog struct {
	logger atomic.Pointer[slog.Logger]
	errors *rate.Limiter
}

func newGRPCLog(logger *slog.Logger) *grpcLog {
	l := &grpcLog{errors: rate.NewLimiter(rate.Every(time.Second), 10)}
	l.logger.Store(logger)
	return l
}

// Install makes grpc-go log to a logger. The first call must precede all use of grpc-go.
func Install(logger *slog.Logger) { installed().logger.Store(logger) }

// installed is set once, because grpc-go does not synchronize that with what it logs.
var installed = sync.OnceValue(func() *grpcLog {
	l := newGRPCLog(slog.New(slog.DiscardHandler))
	grpclog.SetLoggerV2(l)
	return l
})

// noHealthService is a part of what grpc-go logs as an error, and is none, about a server without a health service.
const noHealthService = "health check is unimplemented at server side"

// notWritten is the beginning of what grpc-gateway logs as an error, and is none: the caller has closed its stream or
// connection. Over HTTP/2 it may do so as soon as it has the whole answer.
const notWritten = "Failed to write response: "

func (l *grpcLog) log(level slog.Level, text func() string) {
	if logger := l.logger.Load(); logger.Enabled(context.Background(), level) {
		logger.Log(context.Background(), level, strings.TrimSpace(text()), "library", "grpc")
	}
}

func (l *grpcLog) error(text string) {
	if strings.Contains(text, noHealthService) {
		l.logger.Load().Info("the health of an extension is not checked, because its gRPC server has no health service: "+
			"calls go to every address of the server that accepts connections",
			"library", "grpc", "cause", strings.TrimSpace(text))
		return
	}
	level := slog.LevelWarn
	if strings.HasPrefix(text, notWritten) || !l.errors.Allow() {
		level = slog.LevelDebug
	}
	l.log(level, func() string { return text })
}

func (l *grpcLog) fatal(text string) {
	l.log(slog.LevelError, func() string { return text })
	os.Exit(cmdline.ExitFailed) // as grpclog.LoggerV2 wants
}

func (l *grpcLog) Info(args ...any) {
	l.log(slog.LevelDebug, func() string { return fmt.Sprint(args...) })
}

func (l *grpcLog) Infoln(args ...any) {
	l.log(slog.LevelDebug, func() string { return fmt.Sprintln(args...) })
}

func (l *grpcLog) Infof(format string, args ...any) {
	l.log(slog.LevelDebug, func() string { return fmt.Sprintf(format, args...) })
}

func (l *grpcLog) Warning(args ...any)                 { l.Info(args...) }
func (l *grpcLog) Warningln(args ...any)               { l.Infoln(args...) }
func (l *grpcLog) Warningf(format string, args ...any) { l.Infof(format, args...) }

func (l *grpcLog) Error(args ...any)                 { l.error(fmt.Sprint(args...)) }
func (l *grpcLog) Errorln(args ...any)               { l.error(fmt.Sprintln(args...)) }
func (l *grpcLog) Errorf(format string, args ...any) { l.error(fmt.Sprintf(format, args...)) }

func (l *grpcLog) Fatal(args ...any)                 { l.fatal(fmt.Sprint(args...)) }
func (l *grpcLog) Fatalln(args ...any)               { l.fatal(fmt.Sprintln(args...)) }
func (l *grpcLog) Fatalf(format string, args ...any) { l.fatal(fmt.Sprintf(format, args...)) }

// V reports whether lines of a verbosity are logged: only those of the least.
func (l *grpcLog) V(verbosity int) bool { return verbosity <= 0 }
