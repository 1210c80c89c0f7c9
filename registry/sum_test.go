// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
)

// The handlers of all registrations together are bounded: one beyond is refused by its name, and comes when there is
// room. What is registered may change as long as it does not grow.
func TestSumOfHandlers(t *testing.T) {
	of := func(name string, n int) Registration {
		reg := Registration{Name: name, ClientConfig: ClientConfig{URL: "https://" + name + ".example"}}
		for i := range n {
			reg.Handlers = append(reg.Handlers, Handler{
				Name: fmt.Sprintf("handler-%d", i), Timeout: time.Second, FailurePolicy: hook.Fail,
				Hook: hook.GroupVersionHook{Group: hook.Group, Version: hook.Version, Hook: "BeforeClusterCreate"},
			})
		}
		return reg
	}
	r := New()
	var all []Registration
	for i := range limits.AllHandlers/limits.Handlers + 1 {
		all = append(all, of(fmt.Sprintf("e%d", i), limits.Handlers))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	errs := r.ApplyAll(all)
	runtime.GC()
	runtime.ReadMemStats(&after)
	t.Logf("%d bytes for each handler", (int64(after.HeapAlloc)-int64(before.HeapAlloc))/limits.AllHandlers)
	last := len(all) - 1
	for i, err := range errs {
		if refused := err != nil && strings.Contains(err.Error(), fmt.Sprintf("with the handlers of ExtensionConfig %q (512), there would be", all[i].Name)); refused != (i == last) || errors.Is(err, ErrTooMany) != refused {
			t.Errorf("%s: %v", all[i].Name, err)
		}
	}
	if got := len(r.Snapshot().Registrations()); got != last {
		t.Errorf("%d registrations, want %d", got, last)
	}
	again := of("e0", limits.Handlers)
	again.ClientConfig.URL = "https://elsewhere.example"
	if err := r.Apply(again); err != nil {
		t.Errorf("a change without another handler: %v", err)
	}
	r.Remove("e0")
	if err := r.Apply(all[last]); err != nil {
		t.Errorf("with room: %v", err)
	}
}
