// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/test/process"
)

// row is one fault, and what must happen meanwhile.
type row struct {
	name string
	// specified says how the calls of the row itself are answered. Calls of healthy callers to healthy extensions are
	// always answered by the extension.
	specified string
	inject    func(t *testing.T, w *fixture, c *tally)
}

// tally counts the calls of a row. It is safe for concurrent use.
type tally struct {
	mu              sync.Mutex
	sent, specified int
	others          map[string]int
}

// countf counts a call that was answered as specified if ok, or else in another way.
func (c *tally) countf(ok bool, format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sent++
	if ok {
		c.specified++
		return
	}
	if c.others == nil {
		c.others = map[string]int{}
	}
	c.others[fmt.Sprintf(format, args...)]++
}

// line is a line of the table.
type line struct {
	name            string
	sent, specified int
	healthy         window
	peak            int64
	before, after   footprint
	failures        []string
}

// errorf notes a failure of the row, which the table says again at its end.
func (l *line) errorf(t *testing.T, format string, args ...any) {
	t.Helper()
	l.failures = append(l.failures, l.name+": "+fmt.Sprintf(format, args...))
	t.Errorf(format, args...)
}

// add adds a later line of the same fault.
func (l *line) add(next *line) {
	l.sent, l.specified = l.sent+next.sent, l.specified+next.specified
	l.healthy.add(next.healthy)
	l.peak, l.after = max(l.peak, next.peak), next.after
}

// enough is how many calls of healthy callers a row waits for.
const enough = 150

// settling is how long the gateway has after a fault to give back what the fault took. The last are connections over gRPC
// whose peer has read nothing and then closed them: the server's keepalive ends them after 80 s.
const settling = 2 * time.Minute

// run injects a fault, and measures.
func (w *fixture) run(t *testing.T, r row) line {
	t.Helper()
	w.pauseLoad(t)
	l := line{name: r.name, before: w.usual(t)}
	w.resumeLoad(t)
	_ = w.look(t)
	w.gateway.resetPeak()
	var calls tally
	t.Run("inject", func(t *testing.T) { // whose cleanup removes what the row has registered
		r.inject(t, w, &calls)
		process.Eventually(t, "healthy callers have called", func() bool {
			l.healthy.add(w.look(t))
			return l.healthy.Sent >= enough
		})
	})
	w.rest.CloseIdleConnections()
	l.sent, l.specified, l.peak = calls.sent, calls.specified, w.gateway.peak()
	select {
	case <-w.gateway.Exited():
		t.Fatalf("the gateway has ended:%s", w.gateway.LogTail())
	default:
	}
	l.report(t, "calls of the row", calls.others)
	l.report(t, "calls of healthy callers", l.healthy.Others)
	if l.sent == 0 {
		l.errorf(t, "the row made no call: it proves nothing")
	}
	if l.peak > memoryLimit {
		l.errorf(t, "the gateway took %d MiB", l.peak>>20)
	}
	w.pauseLoad(t)
	defer w.resumeLoad(t)
	var left []string
	if l.after, left = w.settle(t, &l.before); len(left) > 0 {
		l.errorf(t, "left behind: %s", strings.Join(left, ", "))
		if l.after.goroutines > l.before.goroutines {
			t.Logf("goroutines:\n%s", get(t, "http://"+w.gateway.profiler+"/debug/pprof/goroutine?debug=1"))
		}
	}
	return l
}

// settle waits until the gateway occupies no more than before, or for settling, and returns what it occupies then, and what
// is left. The load is paused.
func (w *fixture) settle(t *testing.T, before *footprint) (after footprint, left []string) {
	t.Helper()
	after = w.footprint(t)
	left = before.left(&after)
	for deadline := time.Now().Add(settling); len(left) > 0 && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		after.follow(w.footprint(t))
		left = before.left(&after)
	}
	return after, left
}

func (l *line) report(t *testing.T, whose string, others map[string]int) {
	t.Helper()
	for _, outcome := range slices.Sorted(maps.Keys(others)) {
		l.errorf(t, "%s: %d times: %s", whose, others[outcome], outcome)
	}
}

// table prints lines.
type table struct {
	out  io.Writer
	base window
}

// head begins a table, whose ratios are to what healthy callers see without any fault.
func (p table) head() {
	fmt.Fprintf(p.out, "\nhealthy callers without any fault: p50 %s, p99 %s of %d calls\n\n", round(p.base.quantile(.5)),
		round(p.base.quantile(.99)), p.base.Sent)
	fmt.Fprintf(p.out, "%-34s %7s %9s %9s | %7s %9s %8s %7s | %8s %6s %8s | %s\n", "fault", "calls", "specified", "otherwise",
		"healthy", "otherwise", "p99", "ratio", "peak MiB", "heap", "resident", "left: goroutines, descriptors, series, files")
}

func (p table) line(l *line) {
	fmt.Fprintf(p.out, "%-34s %7d %9d %9d | %7d %9d %8s %7.1f | %8d %+5d%% %+8d | %+d %+d %+d %+d\n", l.name, l.sent, l.specified,
		l.sent-l.specified, l.healthy.Sent, l.healthy.Sent-l.healthy.Specified, round(l.healthy.quantile(.99)),
		float64(l.healthy.quantile(.99))/float64(max(p.base.quantile(.99), 1)), l.peak>>20,
		(l.after.live-l.before.live)*100/max(l.before.live, 1), (l.after.resident-l.before.resident)>>20,
		l.after.goroutines-l.before.goroutines,
		l.after.descriptors-l.before.descriptors, len(l.before.newSeries(&l.after)), l.after.files-l.before.files)
}

func round(d time.Duration) time.Duration { return d.Round(100 * time.Microsecond) }

// warmUp lets the gateway reach the state in which it stays: pools are filled, and the heap has its size. It returns
// what healthy callers see without any fault.
func (w *fixture) warmUp(t *testing.T) window {
	t.Helper()
	var calls tally
	for _, extension := range []string{"good-rest", "good-grpc"} {
		w.flood(&calls, func(got answer) bool { return got.code == http.StatusOK }, extension)
	}
	w.rest.CloseIdleConnections()
	// The first call of a hook over a protocol makes its metric series.
	rpc, err := dialGRPC(w.gateway.GRPC, attacker, w.client)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = rpc.Close() }()
	_, err = hooksv1alpha1.NewDiscoveryServiceClient(rpc).Discovery(t.Context(), &hooksv1alpha1.DiscoveryRequest{})
	calls.countf(err == nil, "%v", err)
	_, err = hooksv1alpha1.NewTopologyMutationHooksServiceClient(rpc).GeneratePatches(t.Context(),
		&hooksv1alpha1.GeneratePatchesRequest{Handler: "unknown"})
	calls.countf(status.Code(err) == codes.NotFound, "%v", err)
	var seen window
	_ = w.look(t)
	process.Eventually(t, "healthy callers have called", func() bool {
		seen.add(w.look(t))
		return seen.Sent >= 5*enough
	})
	usual := line{name: "no fault"}
	usual.report(t, "calls before any fault", calls.others)
	usual.report(t, "healthy callers, without any fault", seen.Others)
	return seen
}
