// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"context"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/hookgate/hookgate/test/process"
)

func TestProfilerRefusesAForeignHost(t *testing.T) {
	address := "127.0.0.1:" + strconv.Itoa(process.FreePort(t))
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- profilerServer{address}.Run(ctx) }()
	status := func(host string) int {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/debug/pprof/cmdline", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Host = host
		for deadline := time.Now().Add(time.Minute); ; {
			response, err := http.DefaultClient.Do(request)
			if err == nil {
				_ = response.Body.Close()
				return response.StatusCode
			}
			if time.Now().After(deadline) {
				t.Fatal(err)
			}
			time.Sleep(time.Millisecond) // it does not listen yet
		}
	}
	if got := status("localhost"); got != http.StatusOK {
		t.Errorf("localhost: %d", got)
	}
	if got := status("evil.example"); got != http.StatusMisdirectedRequest {
		t.Errorf("a foreign host: %d", got)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
