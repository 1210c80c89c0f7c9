// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package conformance

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// notFor are the checks that do not apply to the good extension, by how it is served.
var notFor = map[string][]string{
	"https":  {"protocol.health", "protocol.reflection"},
	"grpcs":  {"tls.used", "answers.kind", "protocol.unknown-handler"},
	"socket": {"tls.used", "tls.certificate", "tls.version", "tls.old-versions", "tls.expiry", "answers.kind", "protocol.unknown-handler"},
}

// TestGoodExtensions checks that an extension that keeps all rules passes, and that nothing is left out without a reason.
func TestGoodExtensions(t *testing.T) {
	for name, tt := range map[string]struct {
		protocol Protocol
		change   func(*stub)
	}{
		"https":  {REST, func(*stub) {}},
		"grpcs":  {GRPC, func(*stub) {}},
		"socket": {GRPC, func(s *stub) { s.plain, s.unix = true, true }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStub()
			tt.change(s)
			report, err := Run(t.Context(), s.start(t, tt.protocol), Options{})
			if err != nil {
				t.Fatal(err)
			}
			if len(report.Results) != len(Checks()) || len(report.Handlers) != 16 || !report.Conforms(true) {
				t.Errorf("%d results of %d checks, %d handlers of 16, conforms: %v", len(report.Results), len(Checks()), len(report.Handlers), report.Conforms(true))
			}
			expected := map[string]bool{}
			for _, id := range notFor[name] {
				expected[id] = true
			}
			for _, r := range report.Results {
				want := Pass
				if expected[r.ID] {
					want = Skip
				}
				if r.Status != want {
					t.Errorf("%s: got %s (%s) %+v, want %s", r.ID, r.Status, r.Reason, r.Findings, want)
				}
			}
		})
	}
}
