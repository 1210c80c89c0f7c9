// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/common/expfmt"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/registry"
)

// formatted returns metrics as text.
func formatted(g prometheus.Gatherer, names ...string) (string, error) {
	families, err := g.Gather()
	var b strings.Builder
	for _, f := range families {
		if slices.Contains(names, f.GetName()) {
			_, wrong := expfmt.MetricFamilyToText(&b, f)
			err = errors.Join(err, wrong)
		}
	}
	return b.String(), err
}

// series returns the series of the status collector as text, without the timeouts of handlers.
func (f *reported) series(t *testing.T) string {
	t.Helper()
	text, err := formatted(f.observed.series,
		"hookgate_extension_up", "hookgate_extension_up_since_timestamp_seconds", "hookgate_extension_last_success_timestamp_seconds",
		"hookgate_held_clusters", "hookgate_held_clusters_since_timestamp_seconds")
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for line := range strings.Lines(text) {
		if !strings.HasPrefix(line, "#") {
			lines = append(lines, strings.TrimPrefix(line, "hookgate_"))
		}
	}
	return strings.Join(lines, "")
}

// TestMetricsOfTheStatus follows an extension from its registration until it is gone, with what an alert sees of it.
func TestMetricsOfTheStatus(t *testing.T) {
	unreachable := hook.Errorf(hook.Unreachable, "cannot connect")
	synctest.Test(t, func(t *testing.T) {
		f := newReported(t)
		reg, _ := f.Registry.(*registry.Registry)
		// All times are seconds since the beginning.
		began := time.Now()
		at := func(seconds int) string {
			return strings.TrimSpace(fmt.Sprintf("%g", float64(began.Unix()+int64(seconds))))
		}
		want := func(step string, lines ...string) {
			t.Helper()
			if got, want := f.series(t), strings.Join(append(lines, ""), "\n"); got != want {
				t.Errorf("%s: got\n%s\nwant\n%s", step, got, want)
			}
		}
		up := func(value string, since, last int) []string {
			return []string{
				`extension_last_success_timestamp_seconds{extension="acme"} ` + at(last), `extension_up{extension="acme"} ` + value,
				`extension_up_since_timestamp_seconds{extension="acme"} ` + at(since),
			}
		}
		waits := func(n, since int) []string {
			return []string{
				fmt.Sprintf(`held_clusters{handler="a.acme",hook="BeforeClusterCreate"} %d`, n),
				`held_clusters_since_timestamp_seconds{handler="a.acme",hook="BeforeClusterCreate"} ` + at(since),
			}
		}
		want("without a reporter")
		f.observed.metrics.Report(&f.Reporter)
		want("before any call")

		f.Observer.Discovered("acme", "https://acme.example", "Success", false, nil)
		time.Sleep(time.Second)
		f.call(t, "a.acme", 0, 0, nil)
		want("called", up("1", 0, 1)...)
		time.Sleep(time.Second)
		f.call(t, "a.acme", 0, 0, unreachable)
		want("unreachable", append(up("0", 2, 1), waits(1, 2)...)...)
		time.Sleep(time.Second)
		f.call(t, "b.acme", 0, 0, nil)
		want("another handler answers", append(up("1", 3, 3), waits(1, 2)...)...)
		time.Sleep(time.Second)
		f.call(t, "a.acme", 0, 0, nil)
		want("both answer", up("1", 3, 4)...)

		time.Sleep(time.Second)
		f.call(t, "a.acme", 0, 30, nil)
		time.Sleep(time.Second)
		f.call(t, "a.acme", 0, 30, nil)
		want("it asks to come back", append(up("1", 3, 6), waits(1, 5)...)...)
		f.Observer.Discovered("never", "https://never.example", "Unreachable", false, unreachable)
		if got := f.series(t); !strings.Contains(got, `extension_up{extension="never"} 0`) {
			t.Errorf("an extension that was never discovered is not down:\n%s", got)
		}
		f.Observer.Forget("never")

		reg.Remove("acme")
		f.Observer.Forget("acme")
		want("gone")
	})
}

func TestTimeoutsOfHandlers(t *testing.T) {
	f := newReported(t)
	f.observed.metrics.Report(&f.Reporter)
	if n := count(t, f.observed.series, "hookgate_handler_timeout_seconds"); n != 2 {
		t.Errorf("%d handlers have a timeout, want 2", n)
	}
	reg, _ := f.Registry.(*registry.Registry)
	reg.Remove("acme")
	if n := count(t, f.observed.series, "hookgate_handler_timeout_seconds"); n != 0 {
		t.Errorf("%d handlers that are gone have a timeout", n)
	}
}

// TestCallsNearTheTimeout counts from eight tenths of it on, whatever comes of the call.
func TestCallsNearTheTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newReported(t) // whose handlers have a timeout of 10 s
		near := func() float64 {
			return valueOf(t, f.observed.series, "hookgate_handler_calls_near_timeout_total", "BeforeClusterCreate", "a.acme")
		}
		for _, step := range []struct {
			took time.Duration
			err  error
			want float64
		}{
			{8*time.Second - 1, nil, 0},
			{8 * time.Second, nil, 1},
			{9 * time.Second, hook.Errorf(hook.BadResponse, "no"), 2},
			{7 * time.Second, hook.Errorf(hook.BadResponse, "no"), 2},
		} {
			f.call(t, "a.acme", step.took, 0, step.err)
			if got := near(); got != step.want {
				t.Errorf("after %s: %v calls near the timeout, want %v", step.took, got, step.want)
			}
		}
	})
}

func TestMetricOfTheLeader(t *testing.T) {
	o := newObserved(registry.New())
	if n := count(t, o.series, "hookgate_leading"); n != 0 {
		t.Errorf("a gateway that does not compete has %d series", n)
	}
	leads := false
	o.metrics.Leading(func() bool { return leads })
	for _, want := range []float64{0, 1, 0} {
		leads = want == 1
		if got := valueOf(t, o.series, "hookgate_leading"); got != want {
			t.Errorf("leads %t: got %v", leads, got)
		}
	}
}
