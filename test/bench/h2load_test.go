// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"
)

// goodReport is the middle of what h2load prints.
const goodReport = `Stopped all clients for thread #0

finished in 2.20s, 3612.50 req/s, 1.03MB/s
requests: 7225 total, 7241 started, 7225 done, 7225 succeeded, 0 failed, 0 errored, 0 timeout
status codes: 7226 2xx, 0 3xx, 0 4xx, 0 5xx
traffic: 2.06MB (2160275) total, 1.10MB (1156000) headers (space savings 0.00%), 505.75KB (517888) data
`

func TestParseH2load(t *testing.T) {
	if rate, err := parseH2load(goodReport); err != nil || rate != 3612.5 {
		t.Errorf("the rate is %v, %v", rate, err)
	}
	for reason, replace := range map[string][2]string{
		"calls failed":          {"0 failed", "1 failed"},
		"connections broke":     {"0 errored", "16 errored"},
		"calls were too slow":   {"0 timeout", "2 timeout"},
		"the gateway refused":   {"0 5xx", "7 5xx"},
		"the path is wrong":     {"0 4xx", "7 4xx"},
		"no call has come back": {"7226 2xx", "0 2xx"},
		"it is something else":  {"finished in", "done after"},
	} {
		if rate, err := parseH2load(strings.Replace(goodReport, replace[0], replace[1], 1)); err == nil {
			t.Errorf("%s: the rate is %v", reason, rate)
		}
	}
}
