// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/hookgate/hookgate/test/bench/report"
)

// exampleProfile has a sample for each stack, which names functions from the innermost outwards, and says how long it ran.
func exampleProfile(stacks map[string]int64) *profile.Profile {
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "samples", Unit: "count"}, {Type: "cpu", Unit: "nanoseconds"}}}
	for stack, nanoseconds := range stacks {
		s := &profile.Sample{Value: []int64{1, nanoseconds}}
		for name := range strings.FieldsSeq(stack) {
			function := &profile.Function{ID: uint64(len(p.Function) + 1), Name: name}
			location := &profile.Location{ID: uint64(len(p.Location) + 1), Line: []profile.Line{{Function: function}}}
			p.Function, p.Location = append(p.Function, function), append(p.Location, location)
			s.Location = append(s.Location, location)
		}
		p.Sample = append(p.Sample, s)
	}
	return p
}

func TestShares(t *testing.T) {
	got, err := sharesOf(exampleProfile(map[string]int64{
		"internal/runtime/syscall.Syscall6 syscall.write crypto/tls.(*Conn).Write net/http.serve":                10,
		"internal/runtime/syscall.EpollWait runtime.netpoll runtime.findRunnable":                                20,
		"crypto/internal/fips140/aes/gcm.encrypt net/http.serve":                                                 30,
		"unicode/utf8.Valid github.com/hookgate/hookgate/internal/contract/codec.(*scanner).text net/http.serve": 40,
		"runtime.memmove github.com/hookgate/hookgate/internal/contract/codec.Scan":                              50,
		"runtime.nextFreeFast runtime.mallocgc net/http.serve":                                                   60,
		"github.com/hookgate/hookgate/gateway.serve net/http.serve":                                              70,
		"main.main": 120,
	}))
	if err != nil {
		t.Fatal(err)
	}
	const total = 400.0
	want := shares{
		kernel: 10 / total, scheduling: 20 / total, cryptography: 30 / total, validation: 40 / total, copies: 50 / total,
		memory: 60 / total, protocols: 70 / total, rest: 120 / total,
	}
	if got != want {
		t.Errorf("the shares are %v, want %v", got, want)
	}
	if _, err := sharesOf(exampleProfile(nil)); err == nil {
		t.Error("a profile without samples has shares")
	}
	if _, err := sharesOf(&profile.Profile{SampleType: []*profile.ValueType{{Type: "inuse_space"}}}); err == nil {
		t.Error("a profile of memory is taken for one of CPU time")
	}
}

func TestProfileTable(t *testing.T) {
	dir := t.TempDir()
	r := example()
	if got, err := profileTable(dir, []*report.Result{r}); err != nil || got != "" {
		t.Errorf("without profiles, the table is %q, %v", got, err)
	}
	r.Cells[0].Peers[2].Profile = "S.pprof"
	if _, err := profileTable(dir, []*report.Result{r}); err == nil {
		t.Error("a profile that is missing is left out")
	}
	f, err := os.Create(filepath.Join(dir, "S.pprof"))
	if err != nil {
		t.Fatal(err)
	}
	if err := exampleProfile(map[string]int64{"syscall.read": 3, "main.main": 1}).Write(f); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	got, err := profileTable(dir, []*report.Result{r})
	if err != nil {
		t.Fatal(err)
	}
	want := "| S, 16, HTTP/1.1 | gateway | 68 µs | 51 µs | 0 µs | 0 µs | 0 µs | 0 µs | 0 µs | 0 µs | 17 µs |"
	if last := strings.Join(strings.Fields(got[strings.LastIndex(got[:len(got)-1], "\n"):]), " "); last != want {
		t.Errorf("the table is\n%swant the row %s", got, want)
	}
	if err := os.WriteFile(filepath.Join(dir, "S.pprof"), []byte("no profile"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := profileTable(dir, []*report.Result{r}); err == nil {
		t.Error("a broken profile is left out")
	}
}
