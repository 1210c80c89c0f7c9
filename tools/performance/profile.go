// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/pprof/profile"

	"github.com/hookgate/hookgate/test/bench/report"
)

// work is a kind of what a processor does.
type work int

// The kinds of work, in the order of the table's columns.
const (
	kernel work = iota
	cryptography
	validation
	protocols
	copies
	memory
	scheduling
	rest
	kindsOfWork
)

var workNames = [kindsOfWork]string{
	"system calls", "TLS", "JSON", "HTTP, gRPC", "copies", "memory", "scheduler", "the rest",
}

// workOf has the kinds by the beginnings of functions' names. A sample is of the innermost function that is named, so
// that a system call is one wherever it comes from.
var workOf = []struct {
	prefix string
	kind   work
}{
	{"internal/runtime/syscall.EpollWait", scheduling},
	{"internal/runtime/syscall/linux.EpollWait", scheduling},
	{"syscall.", kernel},
	{"crypto/", cryptography},
	{"github.com/hookgate/hookgate/internal/contract/codec.", validation},
	{"github.com/hookgate/hookgate/internal/contract/convert.", validation},
	{"net/http.", protocols},
	{"net/http/", protocols},
	{"net/textproto.", protocols},
	{"golang.org/x/net/", protocols},
	{"google.golang.org/grpc", protocols},
	{"github.com/hookgate/hookgate/internal/http1.", protocols},
	{"runtime.memmove", copies},
	{"runtime.memclr", memory},
	{"runtime.mallocgc", memory},
	{"runtime.newobject", memory},
	{"runtime.makeslice", memory},
	{"runtime.growslice", memory},
	{"runtime.gc", memory},
	{"runtime.bgsweep", memory},
	{"runtime.bgscavenge", memory},
	{"runtime.scan", memory},
	{"runtime.newstack", memory},
	{"runtime.futex", scheduling},
	{"runtime.usleep", scheduling},
	{"runtime.schedule", scheduling},
	{"runtime.findRunnable", scheduling},
	{"runtime.goready", scheduling},
	{"runtime.ready", scheduling},
	{"runtime.park", scheduling},
	{"runtime.gopark", scheduling},
	{"runtime.wakep", scheduling},
	{"runtime.mcall", scheduling},
	{"runtime.sysmon", scheduling},
	{"runtime.netpoll", scheduling},
}

// shares is how the CPU time of a process is spread over the kinds of work; they add up to 1.
type shares [kindsOfWork]float64

// readShares reads a profile of CPU time.
func readShares(file string) (shares, error) {
	f, err := os.Open(file)
	if err != nil {
		return shares{}, err
	}
	defer func() { _ = f.Close() }()
	p, err := profile.Parse(f)
	if err != nil {
		return shares{}, fmt.Errorf("%s: %w", file, err)
	}
	s, err := sharesOf(p)
	if err != nil {
		return shares{}, fmt.Errorf("%s: %w", file, err)
	}
	return s, nil
}

func sharesOf(p *profile.Profile) (shares, error) {
	value := -1
	for i, t := range p.SampleType {
		if t.Type == "cpu" {
			value = i
		}
	}
	if value < 0 {
		return shares{}, errors.New("this is no profile of CPU time")
	}
	var s shares
	total := 0.0
	for _, sample := range p.Sample {
		s[kindOf(sample)] += float64(sample.Value[value])
		total += float64(sample.Value[value])
	}
	if total == 0 {
		return shares{}, errors.New("the profile has no samples")
	}
	for i := range s {
		s[i] /= total
	}
	return s, nil
}

// kindOf looks from the innermost function outwards.
func kindOf(s *profile.Sample) work {
	for _, location := range s.Location {
		for _, line := range location.Line {
			for _, w := range workOf {
				if line.Function != nil && strings.HasPrefix(line.Function.Name, w.prefix) {
					return w.kind
				}
			}
		}
	}
	return rest
}

// profileTable returns the CPU time of a call, spread over the kinds of work, for all peers that were profiled in the
// directory with several callers; "" for none.
func profileTable(dir string, parts []*report.Result) (string, error) {
	var rows [][]string
	for _, c := range merge(parts).Cells {
		if c.Callers == 1 { // the processors wait most of the time
			continue
		}
		for _, p := range c.Peers {
			if p.Profile == "" {
				continue
			}
			s, err := readShares(filepath.Join(dir, filepath.Base(p.Profile)))
			if err != nil {
				return "", err
			}
			cpu := p.Rounds.Median(report.CPU)
			row := []string{c.Size + ", " + c.Who(), p.Peer, report.Duration(cpu)}
			for _, share := range s {
				row = append(row, report.Duration(cpu*share))
			}
			rows = append(rows, row)
		}
	}
	if len(rows) == 0 {
		return "", nil
	}
	return report.Table(append([]string{"body, callers", "peer", "CPU per call"}, workNames[:]...), rows), nil
}
