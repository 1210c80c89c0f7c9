// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/test/bench/report"
	"github.com/hookgate/hookgate/test/process"
)

// recorded is a recording of two Clusters, of which the second one is reconciled twice as often.
const recorded = `{"clusterAPI":"v1.14.2","recorded":"2026-11-29","clusters":["t-00","t-01"],"syncSeconds":60,"phaseSeconds":{"steady":120}}
{"phase":"create","cluster":"t-00","hook":"BeforeClusterCreate","body":0,"request":{"cluster":{"metadata":{"name":"t-00"}}}}
{"phase":"steady","cluster":"t-00","hook":"GeneratePatches","body":1,"request":{"items":[{"uid":"@1","name":"t-00-md"},{"uid":"@12","name":"t-00"}]}}
{"phase":"steady","cluster":"t-00","hook":"ValidateTopology","body":2,"request":{"items":[{"name":"t-00"}]}}
{"phase":"steady","cluster":"t-00","hook":"GeneratePatches","body":1}
{"phase":"steady","cluster":"t-00","hook":"ValidateTopology","body":2}
{"phase":"steady","cluster":"t-01","hook":"GeneratePatches","body":3,"request":{"items":[{"uid":"@1","name":"t-01"}]}}
{"phase":"steady","cluster":"t-01","hook":"GeneratePatches","body":3}
{"phase":"steady","cluster":"t-01","hook":"GeneratePatches","body":3}
{"phase":"steady","cluster":"t-01","hook":"GeneratePatches","body":3}
{"phase":"restart","cluster":"t-00","hook":"GeneratePatches","body":1}
{"phase":"restart","cluster":"t-01","hook":"GeneratePatches","body":3}
`

func newTraffic(t *testing.T) *traffic {
	t.Helper()
	of, err := decodeTraffic(strings.NewReader(recorded))
	if err != nil {
		t.Fatal(err)
	}
	return of
}

// TestMain makes the test program the extension that run starts.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == extensionCommand {
		if err := runExtension(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

func TestTrafficOfAFleet(t *testing.T) {
	of := newTraffic(t)
	if got := strings.Join(of.hooks, " "); got != "BeforeClusterCreate GeneratePatches ValidateTopology" {
		t.Errorf("hooks %s", got)
	}
	if a, b := len(of.reconcile(0)), len(of.reconcile(3)); a != 2 || b != 1 || of.callsPerReconcile() != 1.5 {
		t.Errorf("%d and %d calls, %.1f on average; want 2, 1 and 1.5", a, b, of.callsPerReconcile())
	}
	// Per sync, the first is reconciled once, and the second twice: 1.5 on average, of 1,000 in 600 s.
	if got := of.reconcilesPerSecond(1000); got != 2.5 {
		t.Errorf("%.2f reconciliations a second, want 2.5", got)
	}
	if calls := of.callsOf(phaseCreate, 7); len(calls) != 0 {
		t.Errorf("the second Cluster has %d calls of a phase without any", len(calls))
	}
	name := of.nameOf(6)
	if name != "t-00-00006" {
		t.Errorf("the seventh Cluster is %s", name)
	}
	body := of.callsOf(phaseSteady, 6)[0].body
	first, second := string(body.of(name)), string(body.of(name))
	const uid = `[0-9a-f]{8}-[0-9a-f-]{27}`
	want := regexp.MustCompile(`^{"items":\[{"uid":"(` + uid + `)","name":"t-00-00006-md"},{"uid":"(` + uid + `)","name":"t-00-00006"}\]}$`)
	switch uids := want.FindStringSubmatch(first); {
	case uids == nil:
		t.Errorf("got %s", first)
	case uids[1] == uids[2] || first == second:
		t.Errorf("UIDs are not new for each item and request: %s, %s", first, second)
	}
}

func TestRecordingsThatAreNone(t *testing.T) {
	for _, tc := range []struct{ change, to, want string }{
		{`"syncSeconds":60`, `"syncSeconds":600`, "no steady state of a sync period"},
		{`"clusters":["t-00","t-01"]`, `"clusters":["t-00"]`, `Cluster "t-01"`},
		{`"body":3,"request"`, `"body":4,"request"`, "has body 3"},
		{`"phase":"restart"`, `"phase":"other"`, "no call of the phase restart"},
	} {
		_, err := decodeTraffic(strings.NewReader(strings.ReplaceAll(recorded, tc.change, tc.to)))
		if err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("with %s: got %v, want %s", tc.to, err, tc.want)
		}
	}
}

// TestRecordingInTheRepository reads what the measurements are made of.
func TestRecordingInTheRepository(t *testing.T) {
	of, err := readTraffic(filepath.Join("testdata", "traffic.json.gz"))
	if err != nil {
		t.Fatal(err)
	}
	for _, phase := range []string{phaseCreate, phaseSteady, phaseUpgrade, phaseRestart} {
		for i := range of.Clusters {
			if phase != phaseUpgrade && len(of.callsOf(phase, i)) < 2 {
				t.Errorf("%s: %s has %d calls", phase, of.Clusters[i], len(of.callsOf(phase, i)))
			}
			for _, k := range of.callsOf(phase, i) {
				if request := k.body.of("a"); !json.Valid(request) || bytes.Contains(request, []byte(of.Clusters[i])) {
					t.Errorf("%s of %s: %.200s", k.hook, of.Clusters[i], request)
				}
			}
		}
	}
	if rate := of.reconcilesPerSecond(600); rate < .5 || rate > 5 {
		t.Errorf("600 Clusters are reconciled %.1f times a second, want about once", rate)
	}
}

func TestAnswersOfTheExtension(t *testing.T) {
	for _, h := range catalog.New().Hooks() {
		if h.Hook == "Discovery" || h.Group != "hooks.runtime.cluster.x-k8s.io" {
			continue
		}
		answer, err := answerTo(h.Hook, []byte(`{"items":[{"uid":"u1"},{"uid":"u2"}]}`))
		if err != nil || !bytes.Contains(answer, []byte(`"status":"Success"`)) || bytes.Contains(answer, []byte(`"retryAfterSeconds":1`)) {
			t.Errorf("%s: %s, %v", h.Hook, answer, err)
		}
		if h.Hook == "GeneratePatches" && bytes.Count(answer, []byte(`"patch":`)) != 2 {
			t.Errorf("want a patch for each item: %s", answer)
		}
	}
}

// TestLoops calls an extension in this process.
func TestLoops(t *testing.T) {
	of := newTraffic(t)
	inner, failing := newExtension(of.hooks, 0), make(chan bool, 1)
	failing <- false
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fail := <-failing
		failing <- fail
		if r.ProtoMajor != 2 {
			t.Errorf("%s", r.Proto)
		}
		if fail {
			http.Error(w, "full", http.StatusTooManyRequests)
			return
		}
		inner.ServeHTTP(w, r)
	}))
	server.EnableHTTP2 = true
	server.StartTLS()
	defer server.Close()
	config := server.Client().Transport.(*http.Transport).TLSClientConfig
	c := newCaller(of, &tls.Config{RootCAs: config.RootCAs, ServerName: "example.com"}, "",
		func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, server.Listener.Addr().String())
		})
	defer c.close()

	closed, err := c.closed(t.Context(), phaseRestart, 100, 7)
	if err != nil || closed.lost != 0 || len(closed.latencies) != 100 {
		t.Errorf("a closed loop: %d calls, %d lost, %v; want 100 calls", closed.calls(), closed.lost, err)
	}
	open, err := c.open(t.Context(), 100, 200, time.Second, nil)
	if n := open.calls(); err != nil || open.lost != 0 || n < 150 || n > 600 {
		t.Errorf("an open loop: %d calls, %d lost, %v; want about 300 calls", n, open.lost, err)
	}
	if a, b := open.percentile(.5), open.percentile(.99); a <= 0 || a > b {
		t.Errorf("p50 %s, p99 %s", a, b)
	}
	<-failing
	failing <- true
	lost, err := c.closed(t.Context(), phaseRestart, 10, 2)
	if err != nil || lost.lost != 10 || lost.first == nil || !strings.Contains(lost.first.Error(), "status 429: full") {
		t.Errorf("%d lost, %v, %v", lost.lost, lost.first, err)
	}
}

func TestUsage(t *testing.T) {
	for name, args := range map[string]string{
		"no gateway": "", "no number": "--hookgate h --clusters many", "no part": "--hookgate h --parts all",
		"half a limit": "--hookgate h --cpu 0", "no phase": "--hookgate h --phases steady", "argument": "--hookgate h more",
	} {
		if _, err := parse(strings.Fields(args), &bytes.Buffer{}); !errors.Is(err, errUsage) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// TestMeasure measures real gateways for a moment, without limits.
func TestMeasure(t *testing.T) {
	program := process.Program(t, "HOOKGATE_BIN")
	file := filepath.Join(t.TempDir(), "traffic.json.gz")
	var zipped bytes.Buffer
	zip := gzip.NewWriter(&zipped)
	if _, err := zip.Write([]byte(recorded)); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(zip.Close(), os.WriteFile(file, zipped.Bytes(), 0o600)); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	o, err := parse([]string{
		"--hookgate", program, "--recording", file, "--clusters", "600", "--replicas", "2", "--cpu", "0", "--memory", "0",
		"--duration", "2s", "--takes", "1ms", "--shutdown-delay", "1500ms", "--connection-age", "200ms", "--most", "60", "--within", "1000",
		"--json", filepath.Join(dir, "fleet.json"),
	}, &bytes.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	var out, log bytes.Buffer
	if err := run(t.Context(), o, &out, &log); err != nil {
		t.Fatalf("%v\n%s", err, &log)
	}
	for _, want := range []string{
		`(?m)^\| 600 \| 2 \| .* \| 0 \| [0-9]+ \| 0 % \| [1-9][0-9]* MiB \| [0-9]+ %, [0-9]+ % \|$`, // steady
		`(?m)^\| 2 \| 60 or more \|`,
		`(?m)^\| restart \| 600 \| 2 \| 600 \|.*\| [1-9][0-9]* % \| [1-9][0-9]* MiB \|$`,
		`(?m)^\| 600 \| 2 \| [0-9.]+ m?s \| [1-9][0-9]* \| 0 \|`, // rolling
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("no row %s in\n%s\n%s", want, &out, &log)
		}
	}
	results, err := report.Read(dir, "fleet")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range results[0].Cells {
		for _, p := range c.Peers {
			got = append(got, fmt.Sprintf("%s %d %s", c.Size, c.Callers, p.Peer))
			if p.Rounds[0].Rate <= 0 || p.Rounds[0].P99 <= 0 {
				t.Errorf("%s: %+v", got[len(got)-1], p.Rounds)
			}
		}
	}
	want := []string{
		"steady 600 direct", "steady 600 2 replicas", "create 600 direct", "create 600 2 replicas", "create 600 2 replicas, cache",
		"restart 600 direct", "restart 600 2 replicas", "restart 600 2 replicas, cache",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("cells for the curves (-want +got):\n%s", diff)
	}
}
