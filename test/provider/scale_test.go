// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"cmp"
	"context"
	"flag"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hookgate/hookgate/infrastructure"
	"github.com/hookgate/hookgate/test/process"
	"github.com/hookgate/hookgate/test/rights"
)

// The flags of BenchmarkScale: behind -args of go test.
var (
	scaleClusters = flag.Int("clusters", 100, "`number` of Clusters of BenchmarkScale")
	scaleMachines = flag.Int("machines", 20, "`number` of machines of each")
	scaleRest     = flag.Duration("rest", 12*time.Minute, "how long to count at rest; every object is looked at in 10 minutes")
)

// The bars: from the first creation until all is ready, and requests to the API server at rest.
const (
	mostToReady = 5 * time.Minute
	mostAtRest  = 2.0
)

// resync is the least time after which a machine that is ready is asked about again.
const resync = 9 * time.Minute

// scalePatience bounds each wait of BenchmarkScale, far above the bars: a machine may be slow.
const scalePatience = 15 * time.Minute

// BenchmarkScale measures what many machines cost, with the real hookgate infrastructure at default settings and the
// permissions of deploy/infrastructure, a gateway, and an extension that answers in 50 ms. The API server, whose audit
// log has the requests, etcd and the extension share the processors with what is measured.
//
// It reports the time from the first creation until all machines are ready, beside the time that the extension needs for
// the calls alone, the requests of the controllers in that time and per second at rest, the calls for each machine at
// rest, and the time until restarted controllers have asked about everything. How long that takes fails nothing; that
// something is made twice, asked about more than once in ten minutes or after a restart, or written while nothing
// changes, does.
func BenchmarkScale(b *testing.B) {
	i := newInstallation(b, func(i *installation) { i.cloud.delay = 50 * time.Millisecond })
	i.createClass()
	machines, objects := *scaleClusters**scaleMachines, *scaleClusters*(*scaleMachines+1)

	began := time.Now()
	ctx, cancel := context.WithTimeout(b.Context(), scalePatience)
	defer cancel()
	if err := i.createFleet(ctx, *scaleClusters, *scaleMachines); err != nil {
		b.Fatal(err)
	}
	created := time.Now()
	i.untilScaled("all machines are ready", func() bool { return i.readyFleet() == machines })
	ready := time.Now()
	calls := len(i.cloud.asked(0))
	alone := time.Duration(calls) * i.cloud.delay / infrastructure.DefaultCallsPerClass
	i.madeOnce()
	pids, err := i.controllers.PIDs()
	if err != nil {
		b.Fatal(err)
	}

	quiet := time.Now().Add(5 * time.Second) // what was written last has been read again
	end, before := quiet.Add(*scaleRest), len(i.cloud.asked(0))
	for time.Now().Before(end) {
		time.Sleep(time.Second)
	}
	resting := i.cloud.asked(before)
	if n := most(resting); n > int(*scaleRest/resync)+1 {
		b.Errorf("the extension was asked %d times about the same object in %s at rest", n, *scaleRest)
	}
	resident, err := process.Resident(pids)
	if err != nil {
		b.Fatal(err)
	}

	since := len(i.cloud.asked(0))
	restarted := time.Now()
	i.restart()
	i.untilScaled("the extension is asked about everything again", func() bool { return len(i.cloud.asked(since)) >= objects })
	asked := time.Now()
	time.Sleep(5 * time.Second) // what an answer changes would be written now
	if n := most(i.cloud.asked(since)); n > 1 {
		b.Errorf("after a restart, the extension was asked %d times about the same object", n)
	}
	i.madeOnce()
	i.end()

	all := i.requests()
	for reason, between := range map[string][2]time.Time{"at rest": {quiet, end}, "after a restart": {restarted, time.Now()}} {
		if written := writesOf(within(all, between[0], between[1])); len(written) > 0 {
			b.Errorf("the controllers wrote %d times %s while nothing changed:\n%s", len(written), reason, strings.Join(written[:min(len(written), 20)], "\n"))
		}
	}
	making, atRest := within(all, began, ready), within(all, quiet, end)
	perSecond := float64(len(atRest)) / scaleRest.Seconds()
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(ready.Sub(began).Seconds(), "s/ready")
	b.ReportMetric(float64(len(making))/float64(machines), "requests/machine")
	b.ReportMetric(float64(len(writesOf(making)))/float64(machines), "writes/machine")
	b.ReportMetric(float64(calls)/float64(objects), "calls/object")
	b.ReportMetric(float64(len(resting))/float64(objects)/scaleRest.Minutes()*10, "calls/object-in-10min-at-rest")
	b.ReportMetric(perSecond, "requests/s-at-rest")
	b.ReportMetric(asked.Sub(restarted).Seconds(), "s/restart")
	b.ReportMetric(float64(resident>>20), "MiB")
	fmt.Printf("\n%d machines in %d Clusters: created in %s, ready after %s; restarted and asked about everything in %s; resident %d MiB\n",
		machines, *scaleClusters, short(created.Sub(began)), short(ready.Sub(began)), short(asked.Sub(restarted)), resident>>20)
	fmt.Printf("%d calls until ready, for which the extension alone needs %s\n", calls, short(alone))
	fmt.Printf("requests until ready:\n%srequests in %s at rest:\n%s", summary(making), *scaleRest, summary(atRest))
	fmt.Println(verdict(ready.Sub(began) <= mostToReady, "ready after %s, at most %s", short(ready.Sub(began)), mostToReady))
	fmt.Println(verdict(perSecond < mostAtRest, "%.2f requests per second at rest, less than %.0f", perSecond, mostAtRest))
}

// most returns how often the most frequent of some ids is there.
func most(ids []string) int {
	n, count := 0, map[string]int{}
	for _, id := range ids {
		count[id]++
		n = max(n, count[id])
	}
	return n
}

// untilScaled waits for a state of many objects, whose listing is work, too.
func (i *installation) untilScaled(what string, ok func() bool) {
	i.t.Helper()
	for deadline := time.Now().Add(scalePatience); !ok(); time.Sleep(time.Second) {
		if time.Now().After(deadline) {
			i.t.Fatalf("still not: %s", what)
		}
	}
}

// within returns the requests that came in a span of time.
func within(all []rights.Request, from, to time.Time) []rights.Request {
	return slices.DeleteFunc(slices.Clone(all), func(r rights.Request) bool { return r.At.Before(from) || r.At.After(to) })
}

// writesOf returns the requests that change objects, without those that say who leads.
func writesOf(all []rights.Request) []string {
	var written []string
	for _, r := range all {
		switch {
		case r.Verb == "get", r.Verb == "list", r.Verb == "watch", r.Resource == "leases", r.Resource == "events":
		default:
			written = append(written, r.Verb+" "+r.URI)
		}
	}
	return written
}

// summary counts requests by verb and resource, the most frequent first. Those that were refused count apart.
func summary(all []rights.Request) string {
	count := map[string]int{}
	for _, r := range all {
		what := rights.Of(r.Group, r.Resource, r.Verb)
		if r.Subresource != "" {
			what = rights.Of(r.Group, r.Resource+"/"+r.Subresource, r.Verb)
		}
		if r.Code >= http.StatusBadRequest {
			what += fmt.Sprintf(" (%d)", r.Code)
		}
		count[what]++
	}
	var b strings.Builder
	for _, what := range slices.SortedFunc(maps.Keys(count), func(x, y string) int { return cmp.Or(count[y]-count[x], strings.Compare(x, y)) }) {
		fmt.Fprintf(&b, "%8d %s\n", count[what], what)
	}
	return b.String()
}

func verdict(ok bool, format string, args ...any) string {
	if ok {
		return "PASS: " + fmt.Sprintf(format, args...)
	}
	return "BELOW: " + fmt.Sprintf(format, args...)
}

func short(d time.Duration) time.Duration { return d.Round(100 * time.Millisecond) }
