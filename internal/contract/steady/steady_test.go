// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package steady

import (
	"strings"
	"testing"
	"time"
)

func TestText(t *testing.T) {
	for s, want := range map[string]string{
		"":                       "",
		"waits for the approval": "waits for the approval",

		// Times.
		"waits since 2026-11-28T22:22:00Z":                                 "waits since <time>",
		"since 2026-11-28T22:22:00.123456789+02:00, still":                 "since <time>, still",
		"[2026-11-28 22:22:00] no":                                         "[<time>] no",
		"2026/11/28 22:22:00 WARN no":                                      "<time> WARN no",
		"2026-11-28 22:22:00.123 +0000 UTC m=+0.001234: no":                "<time>: no",
		"at 2026-11-28 22:22:00 +0530 +0530.":                              "at <time>.",
		"Sat Nov 28 22:22:00 UTC 2026: no":                                 "<time>: no",
		"Sat Nov  8 22:22:00 2026":                                         "<time>",
		"Sat, 28 Nov 2026 22:22:00 GMT":                                    "<time>",
		"Saturday, 28-Nov-26 22:22:00 UTC.":                                "<time>.",
		"28 Nov 26 22:22 UTC":                                              "<time>",
		"Nov 28 22:22:00.123 host":                                         "<time> host",
		"asked at 22:22:00.5, at 10:22PM and at 22:22 UTC":                 "asked at <time>, at <time> and at <time>",
		"backup 20261128T222200Z runs":                                     "backup <time> runs",
		"snapshot etcd-2026-11-28T22:22:00Z is taken":                      "snapshot etcd-<time> is taken",
		"time=1764368520 ms=1764368520123 f=1764368520.25":                 "time=<number> ms=<number> f=<number>",
		"the window of 2026-11-28 begins":                                  "the window of 2026-11-28 begins",
		"Mon is off, Monday too; May 5 is free, and March":                 "Mon is off, Monday too; May 5 is free, and March",
		"node 02:42:11:00:02:03 and fe80::12:34:56 wait, mapped 3:4":       "node 02:42:11:00:02:03 and fe80::12:34:56 wait, mapped 3:4",
		"NodePool sat-1 of Augusta waits for image 22.04 (1.34.2, v1.2.3)": "NodePool sat-1 of Augusta waits for image 22.04 (1.34.2, v1.2.3)",

		// Durations.
		"waits for 1m30.5s (250ms, 1.5µs, 3d4h)":                        "waits for <duration> (<duration>)",
		"asked 3 minutes ago, took 1.234 seconds":                       "asked <duration> ago, took <duration>",
		"1 hour, 3 minutes and 5 seconds left":                          "<duration> left",
		"30s of 60s, 30/60s, 30 of 60 seconds":                          "<duration> of <duration>, <duration>, <duration>",
		"took=5m elapsed:-7s":                                           "took=<duration> elapsed:-<duration>",
		"pool-5m and c5.2d and m5.xlarge and 5xlarge, 3d-printers wait": "pool-5m and c5.2d and m5.xlarge and 5xlarge, <duration>-printers wait",

		// Identifiers.
		"request 6f9619ff-8b86-d011-b42d-00c04fc964ff failed":           "request <id> failed",
		"trace e6f9619f-8b86-d011-b42d-00c04fc964ff.":                   "trace <id>.",
		"object at 0xc000123456":                                        "object at <id>",
		"trace 4bf92f3577b34da6a3ce929d0e0e4736, commit bff19977":       "trace <id>, commit <id>",
		"req-8f3a2b1c9d, req_8f3a2b1c9d":                                "req-<id>, req_<id>",
		"ulid 01HZX3M4K5N6P7Q8R9S0T1V2W3":                               "ulid <id>",
		"Machine md-0-x7k2p-9f2kd, facade, deadbeef, 12345678 bytes":    "Machine md-0-x7k2p-9f2kd, facade, deadbeef, 12345678 bytes",
		"HookgateInfrastructureClass, v1beta2, x509, ec2, KubeadmV1Be2": "HookgateInfrastructureClass, v1beta2, x509, ec2, KubeadmV1Be2",
		`Cluster has resourceVersion "48213", {"resourceVersion":"7"}`:  `Cluster has resourceVersion "<number>", {"resourceVersion":"<number>"}`,

		// Counters.
		"attempt 3: no, Request #48213, retry=2, call number 9":   "attempt <number>: no, Request #<number>, retry=<number>, call number <number>",
		"after 17 attempts, asked 3 times, the 4th try":           "after <number>, asked <number>, the <number>",
		"attempt 3 of 5, attempt 3/5":                             "attempt 3 of 5, attempt 3/5",
		"3 of 10 done, 3/10, 3 out of 10, 30%, 45.1837 %":         "3 of 10 done, 3/10, 3 out of 10, 30%, 45.1837 %",
		"3 of the 10 nodes, 12.3 of 50 GiB, 12.3GiB/50GiB":        "3 of the 10 nodes, 12.3 of 50 GiB, 12.3GiB/50GiB",
		"2 nodes left; needs 4 CPUs of 16, quota 500":             "2 nodes left; needs 4 CPUs of 16, quota 500",
		"retry in a while; call the owner; try harder, checks: 3": "retry in a while; call the owner; try harder, checks: 3",

		// Ports.
		"read tcp 10.0.0.7:43211->10.0.0.9:6443: reset":                  "read tcp 10.0.0.7:<port>->10.0.0.9:6443: reset",
		"[::1]:60999, localhost:32768, localhost:32767, 10.0.0.7/24":     "[::1]:<port>, localhost:<port>, localhost:32767, 10.0.0.7/24",
		"registry.example:45000/a:34567, at most 65536, total:45000, :3": "registry.example:45000/a:34567, at most 65536, total:45000, :3",
	} {
		got := Text(s)
		if got != want {
			t.Errorf("%q: got %q, want %q", s, got, want)
		}
		if again := Text(got); again != got {
			t.Errorf("%q: masked twice: %q", s, again)
		}
	}
}

// Whatever Go's layouts write of a time is masked as a whole.
func TestLayouts(t *testing.T) {
	for _, layout := range []string{
		time.ANSIC, time.UnixDate, time.RubyDate, time.RFC822, time.RFC822Z, time.RFC850, time.RFC1123, time.RFC1123Z, time.RFC3339,
		time.RFC3339Nano, time.Kitchen, time.Stamp, time.StampMilli, time.StampMicro, time.StampNano, time.DateTime, time.TimeOnly,
		"2006-01-02 15:04:05.999999999 -0700 MST",
	} {
		at := time.Date(2026, 1, 2, 3, 4, 5, 123456789, time.FixedZone("CET", 3600))
		for range 400 {
			if got, s := Text("since "+at.Format(layout)+", waits"), at.Format(layout); got != "since <time>, waits" {
				t.Errorf("%s: %s: got %q", layout, s, got)
				break
			}
			at = at.Add(29*time.Hour + 13*time.Minute + 7*time.Second)
		}
	}
	for d := time.Nanosecond; d < 1000*time.Hour; d = d*7/3 + 1 {
		if got := Text("after " + d.String()); got != "after <duration>" {
			t.Errorf("%s: got %q", d, got)
		}
	}
}

func TestCompare(t *testing.T) {
	for _, tc := range []struct {
		before, now string
		want        Change
	}{
		{"waits", "waits", None},
		{"3 of 10 done", "4 of 10 done", Progress},
		{"30 %", "31 %", Progress},
		{"3/10, since 2026-11-28T22:22:00Z", "4/10, since 2026-11-28T22:22:00Z", Progress},
		{"3/10, at 2026-11-28T22:22:00Z", "4/10, at 2026-11-28T22:22:01Z", Maskable},
		{"after 5s", "after 1m5s", Maskable},
		{"attempt 9", "attempt 10", Maskable},
		{"2 nodes left", "1 nodes left", Other},
		{"a, b", "b, a", Other},
		{"waits", "", Other},
	} {
		if got := Compare(tc.before, tc.now); got != tc.want {
			t.Errorf("%q, %q: got %d, want %d", tc.before, tc.now, got, tc.want)
		}
		if got := Compare(tc.now, tc.before); got != tc.want {
			t.Errorf("%q, %q: got %d, want %d", tc.now, tc.before, got, tc.want)
		}
	}
}

// A text is read in linear time: one of 8 KiB, of what costs most, in some milliseconds.
func BenchmarkText(b *testing.B) {
	for name, s := range map[string]string{
		"Short":  "waits for the approval of team-a/prod-1 since 2026-11-28T22:22:00Z (attempt 17)",
		"Plain":  "waits for the approval of the owner of the Cluster, who has been asked",
		"Digits": strings.Repeat("1", 8<<10),
		"Words":  strings.Repeat("1 of ", 8<<10/5),
		"Months": strings.Repeat("May ", 8<<10/4),
		"Colons": strings.Repeat("1:", 8<<10/2),
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(s)))
			b.ReportAllocs()
			for b.Loop() {
				Text(s)
			}
		})
	}
}

// Masking ends, keeps what stays in its order, is the same the second time, and makes equal of a text and its masked
// form whatever makes it so.
func FuzzText(f *testing.F) {
	for _, s := range []string{
		"2026-11-28 22:22:00.123 +0000 UTC m=+0.001234: no", "Sat, 28 Nov 2026 22:22:00 GMT", "1m30.5s 3 of 10", "30 % of 0xc000123456",
		"attempt 3 of 5 on 10.0.0.7:43211", "6f9619ff-8b86-d011-b42d-00c04fc964ff", "\xff1\xff", "1 of 2 of 3s", "0000000A.0y", "resourceVersion: \"7\"",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var whole strings.Builder
		for _, p := range pieces(s) {
			whole.WriteString(p.text)
			if p.text == "" || p.as != "" && p.done {
				t.Errorf("%q: piece %+v", s, p)
			}
		}
		if whole.String() != s {
			t.Errorf("%q: its pieces are %q", s, whole.String())
		}
		got := Text(s)
		if again := Text(got); again != got {
			t.Errorf("%q: masked %q, and again %q", s, got, again)
		}
		if len(got) > 4*len(s)+len(aDuration) {
			t.Errorf("%q: masked %q", s, got)
		}
		if c := Compare(s, got); c == Other {
			t.Errorf("%q differs from its masked form %q", s, got)
		}
	})
}
