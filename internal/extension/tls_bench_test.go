// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"fmt"
	"io"
	"net/http"
	"syscall"
	"testing"
	"time"
)

// cpuTime returns the processor time that the process has used: unlike the time of day, it means something on a busy
// machine.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkHTTP1 sends requests of three sizes over loopback TLS, with http1 and with net/http's client. Its processor
// time includes the server's.
func BenchmarkHTTP1(b *testing.B) {
	srv := newServer(b, newAuthority(b), func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		_, _ = io.WriteString(w, success)
	}, nil)
	for _, size := range []int{4 << 10, 250 << 10, 5 << 20} {
		for _, callers := range []int{1, 8} {
			for _, own := range []bool{false, true} {
				b.Run(fmt.Sprintf("%dKB/callers=%d/own=%t", size>>10, callers, own), func(b *testing.B) {
					r := newREST(b, Config{})
					rt, err := r.routes.get(srv.cc)
					if err != nil {
						b.Fatal(err)
					}
					p := rt.host.acquire(r.now())
					defer p.release()
					if !own {
						p.useNetHTTP()
					}
					b.SetBytes(int64(size))
					done := make(chan error, callers)
					b.ResetTimer()
					before := cpuTime(b)
					for i := range callers {
						go func() {
							c := benchmarkCall(srv.cc, size)
							for n := i; n < b.N; n += callers {
								if _, err := r.Call(b.Context(), c); err != nil {
									done <- err
									return
								}
							}
							done <- nil
						}()
					}
					for range callers {
						if err := <-done; err != nil {
							b.Error(err)
						}
					}
					b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N), "cpu-ns/op")
				})
			}
		}
	}
}
