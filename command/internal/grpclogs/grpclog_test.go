// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package grpclogs

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"google.golang.org/grpc/grpclog"
)

var _ grpclog.LoggerV2 = (*grpcLog)(nil)

// TestGRPCLog checks the level of each kind of line, and that errors cannot fill the log.
func TestGRPCLog(t *testing.T) {
	var out bytes.Buffer
	l := newGRPCLog(slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: slog.LevelDebug})))
	for _, tt := range []struct {
		log  func()
		want string
	}{
		{func() { l.Info("a", "b") }, `level=DEBUG msg=ab library=grpc`},
		{func() { l.Infoln("a", "b") }, `level=DEBUG msg="a b" library=grpc`},
		{func() { l.Warningf("a %d", 1) }, `level=DEBUG msg="a 1" library=grpc`},
		{func() { l.Errorf("a %d", 1) }, `level=WARN msg="a 1" library=grpc`},
		{func() { l.Errorf("Failed to write response: %v", errors.New("http2: stream closed")) }, `level=DEBUG msg="Failed to write response: http2: stream closed"`},
		{func() {
			l.Error("[core] [Channel #1]Subchannel health check is unimplemented at server side, thus health check is disabled")
		}, `level=INFO msg="the health of an extension is not checked`},
	} {
		out.Reset()
		tt.log()
		if got := out.String(); !strings.Contains(got, tt.want) || strings.Count(got, "\n") != 1 {
			t.Errorf("got %q, want %q", got, tt.want)
		}
	}
	out.Reset()
	for range 100 {
		l.Errorln("again")
	}
	if n := strings.Count(out.String(), "level=WARN"); n < 9 || n > 20 {
		t.Errorf("%d warnings of 100 errors, want ten or a few more", n)
	}
	if l.V(1) || !l.V(0) {
		t.Error("lines of verbosity 1 are logged, or those of 0 are not")
	}
}
