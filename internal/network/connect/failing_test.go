// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package connect

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookgate/hookgate/internal/base/limits"
)

func TestFailing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var all []netip.Addr
		for i := range 4 {
			all = append(all, netip.MustParseAddr(fmt.Sprintf("10.0.0.%d", i)))
		}
		f := &Failing{}
		want := func(reason string, order ...int) {
			t.Helper()
			var addresses []netip.Addr
			for _, i := range order {
				addresses = append(addresses, all[i])
			}
			if got := f.last(all); !slices.Equal(got, addresses) {
				t.Errorf("%s: got %v, want %v", reason, got, addresses)
			}
		}
		want("none has failed", 0, 1, 2, 3)
		f.record(all[0], true)
		time.Sleep(time.Second)
		f.record(all[2], true)
		want("those that failed are last", 1, 3, 0, 2)
		f.record(all[2], false)
		want("an address that is back is in its place", 1, 2, 3, 0)
		time.Sleep(limits.FailingTime - time.Second - 1)
		want("just before its time", 1, 2, 3, 0)
		time.Sleep(1 * time.Nanosecond)
		want("after its time", 0, 1, 2, 3)

		for i := range 1000 {
			f.record(netip.MustParseAddr(fmt.Sprintf("10.1.%d.%d", i/250, i%250)), true)
		}
		if n := len(f.until); n != maxFailing {
			t.Errorf("%d addresses are remembered, want %d", n, maxFailing)
		}
		time.Sleep(limits.FailingTime)
		f.record(all[0], true)
		if n := len(f.until); n != 1 {
			t.Errorf("%d addresses are remembered, want one", n)
		}
	})
}
