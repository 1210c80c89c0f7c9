// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookrule_test

import (
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"sigs.k8s.io/yaml"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
)

// windowed is a rule of BeforeClusterUpgrade with windows.
func windowed(windows string) string {
	return "hook: BeforeClusterUpgrade\nwindows: [" + windows + "]"
}

const berlin = `{cron: "0 2 * * 6", duration: 4h, timeZone: Europe/Berlin}`

func TestWindows(t *testing.T) {
	const summer, winter = `{cron: "0 1 * * 0", duration: 4h, timeZone: Europe/Berlin}`,
		`{cron: "30 2 25 10 *", duration: 20m, timeZone: Europe/Berlin}`
	const gap = `{cron: "30 2 * * *", duration: 1h, timeZone: Europe/Berlin}`
	for name, tc := range map[string]struct {
		reason  string
		windows string
		at      string
		opens   string // empty if one is open
		retry   int32
	}{
		"Before":      {"it waits for the Saturday", berlin, "2026-07-08T12:00:00Z", "2026-07-11T02:00:00+02:00", 300},
		"Soon":        {"the caller comes when it opens", berlin, "2026-07-10T23:58:20Z", "2026-07-11T02:00:00+02:00", 100},
		"Fraction":    {"and not a second early", berlin, "2026-07-10T23:59:59.9Z", "2026-07-11T02:00:00+02:00", 1},
		"Opening":     {"it opens on the second", berlin, "2026-07-11T00:00:00Z", "", 0},
		"LastSecond":  {"it is open to its end", berlin, "2026-07-11T03:59:59.999Z", "", 0},
		"Closed":      {"and closed at its end", berlin, "2026-07-11T04:00:00Z", "2026-07-18T02:00:00+02:00", 300},
		"Earliest":    {"the first of several counts", berlin + `, {cron: "0 12 * * *", duration: 1h}`, "2026-07-11T04:00:00Z", "2026-07-11T12:00:00Z", 300},
		"Any":         {"one that is open is enough", berlin + `, {cron: "0 4 * * *", duration: 1h}`, "2026-07-11T04:00:00Z", "", 0},
		"Overlap":     {"a window may open again while it is open", `{cron: "* * * * *", duration: 744h}`, "2026-07-11T04:00:00Z", "", 0},
		"Forward":     {"01:00 and four hours end at 06:00 where 02:00 is 03:00", summer, "2026-03-29T03:59:59Z", "", 0},
		"ForwardEnd":  {"these are four hours", summer, "2026-03-29T04:00:00Z", "2026-04-05T01:00:00+02:00", 300},
		"Back":        {"01:00 and four hours end at 04:00 where 03:00 is 02:00", summer, "2026-10-25T02:59:59Z", "", 0},
		"BackEnd":     {"these are four hours, too", summer, "2026-10-25T03:00:00Z", "2026-11-01T01:00:00+01:00", 300},
		"Twice":       {"02:30 comes twice: the first in summer time counts", winter, "2026-10-25T00:40:00Z", "", 0},
		"TwiceAgain":  {"the second, in winter time, does not", winter, "2026-10-25T01:40:00Z", "2027-10-25T02:30:00+02:00", 300},
		"LeftOut":     {"02:30 does not come: it opens at 03:00", gap, "2026-03-29T01:00:00Z", "", 0},
		"LeftOutSoon": {"and not earlier", gap, "2026-03-29T00:59:59Z", "2026-03-29T03:00:00+02:00", 1},
		"LeftOutEnd":  {"for as long as on other days", gap, "2026-03-29T02:00:00Z", "2026-03-30T02:30:00+02:00", 300},
		"Sunday":      {"7 is Sunday", `{cron: "0 2 * * 7", duration: 4h, timeZone: Europe/Berlin}`, "2026-03-29T04:59:59Z", "", 0},
		"SundayEnd":   {"four hours after 03:00", `{cron: "0 2 * * SUN", duration: 4h, timeZone: Europe/Berlin}`, "2026-03-29T05:00:00Z", "2026-04-05T02:00:00+02:00", 300},
		"Days":        {"a window of two days has 49 hours of clock", `{cron: "0 12 * * 6", duration: 48h, timeZone: Europe/Berlin}`, "2026-03-30T10:59:59Z", "", 0},
		"DaysEnd":     {"and 48 of time", `{cron: "0 12 * * 6", duration: 48h, timeZone: Europe/Berlin}`, "2026-03-30T11:00:00Z", "2026-04-04T12:00:00+02:00", 300},
		"LeapDay":     {"a window may open every four years", `{cron: "0 0 29 2 *", duration: 24h}`, "2026-07-11T00:00:00Z", "2028-02-29T00:00:00Z", 300},
	} {
		t.Run(name, func(t *testing.T) {
			at, err := time.Parse(time.RFC3339, tc.at)
			if err != nil {
				t.Fatal(err)
			}
			o := &v1alpha1.HookRule{}
			if err := yaml.UnmarshalStrict([]byte(windowed(tc.windows)), &o.Spec); err != nil {
				t.Fatal(err)
			}
			o.Name = "r"
			reg, errs := compilerAt(t, func() time.Time { return at }).Compile(o)
			if len(errs) > 0 {
				t.Fatal(errs)
			}
			want := &hooksv1alpha1.BeforeClusterUpgradeResponse{
				Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS, RetryAfterSeconds: tc.retry,
			}
			if tc.opens != "" {
				want.Message = `outside the windows of HookRule "r": the next window opens at ` + tc.opens
			}
			got, err := reg.InProcess.Answer(t.Context(), upgrade("v1.36.0"), policy.Guard{})
			if err != nil || !proto.Equal(got, want) {
				t.Errorf("%s: got %v, %v", tc.reason, got, err)
			}
		})
	}
}

// A rule that holds outside its windows is asked again and again: its clock turns, and its message stays.
func TestWindowOpensAsTheClockTurns(t *testing.T) {
	at := time.Date(2026, 7, 10, 23, 0, 0, 0, time.UTC)
	o := &v1alpha1.HookRule{}
	if err := yaml.UnmarshalStrict([]byte(windowed(berlin)), &o.Spec); err != nil {
		t.Fatal(err)
	}
	o.Name = "r"
	reg, errs := compilerAt(t, func() time.Time { return at }).Compile(o)
	if len(errs) > 0 {
		t.Fatal(errs)
	}
	var messages []string
	calls := 0
	for ; calls < 100; calls++ {
		got, err := reg.InProcess.Answer(t.Context(), upgrade("v1.36.0"), policy.Guard{})
		if err != nil {
			t.Fatal(err)
		}
		answer, ok := got.(*hooksv1alpha1.BeforeClusterUpgradeResponse)
		if !ok || answer.GetRetryAfterSeconds() == 0 {
			break
		}
		if len(messages) == 0 || messages[len(messages)-1] != answer.GetMessage() {
			messages = append(messages, answer.GetMessage())
		}
		at = at.Add(time.Duration(answer.GetRetryAfterSeconds()) * time.Second)
	}
	if open := time.Date(2026, 7, 11, 0, 0, 0, 0, time.UTC); !at.Equal(open) || len(messages) != 1 || calls != 12 {
		t.Errorf("it opened at %s after %d calls, with messages %q", at, calls, messages)
	}
}

// fail comes before windows, and windows before hold.
func TestOrderOfDecisions(t *testing.T) {
	const holds = "\nhold: [{if: 'true', message: '\"holds\"'}]"
	const fails = "\nfail: [{if: 'true', message: '\"fails\"'}]"
	const closed, open = `{cron: "0 2 * * 6", duration: 4h}`, `{cron: "0 0 * * *", duration: 24h}`
	for name, tc := range map[string]struct{ spec, want string }{
		"Fail":    {windowed(closed) + holds + fails, "fails"},
		"Windows": {windowed(closed) + holds, `outside the windows of HookRule "r": the next window opens at 2026-07-04T02:00:00Z`},
		"Hold":    {windowed(open) + holds, "holds"},
		"None":    {windowed(open), ""},
	} {
		got, err := answer(t, tc.spec, upgrade("v1.36.0"))
		if err != nil {
			t.Fatal(err)
		}
		if message := got.(interface{ GetMessage() string }).GetMessage(); message != tc.want {
			t.Errorf("%s: got %q, want %q", name, message, tc.want)
		}
	}
}

func TestMistakesOfWindows(t *testing.T) {
	const zone = `must be the name of a time zone, such as Europe/Berlin`
	const length = `must be a duration such as 4h or 90m, between 1m and 744h`
	for name, tc := range map[string]struct{ windows, want string }{
		"NoCron":    {`{duration: 1h}`, `spec.windows[0].cron: Required value: must have the five fields of cron`},
		"Fields":    {`{cron: "0 2 * *", duration: 1h}`, `spec.windows[0].cron: Invalid value: "0 2 * *": expected exactly 5 fields, found 4: [0 2 * *]`},
		"Seconds":   {`{cron: "0 0 2 * * 6", duration: 1h}`, `spec.windows[0].cron: Invalid value: "0 0 2 * * 6": expected exactly 5 fields, found 6: [0 0 2 * * 6]`},
		"Range":     {`{cron: "61 2 * * *", duration: 1h}`, `spec.windows[0].cron: Invalid value: "61 2 * * *": end of range (61) above maximum (59): 61`},
		"Zone":      {`{cron: "TZ=UTC 0 2 * * *", duration: 1h}`, `spec.windows[0].cron: Invalid value: "TZ=UTC 0 2 * * *": must have no time zone: that is what timeZone is for`},
		"CronZone":  {`{cron: "CRON_TZ=UTC", duration: 1h}`, `spec.windows[0].cron: Invalid value: "CRON_TZ=UTC": must have no time zone: that is what timeZone is for`},
		"Every":     {`{cron: "@every 1h", duration: 1h}`, `spec.windows[0].cron: Invalid value: "@every 1h": must have the five fields of cron, not a name such as @daily`},
		"Never":     {`{cron: "0 0 30 2 *", duration: 1h}`, `spec.windows[0].cron: Invalid value: "0 0 30 2 *": opens at no time of the next five years`},
		"TooLong":   {`{cron: "` + strings.Repeat("0", limits.CronBytes-7) + ` 0 * * *", duration: 1h}`, `spec.windows[0].cron: Too long: may not be more than 256 bytes`},
		"Unknown":   {`{cron: "0 2 * * *", duration: 1h, timeZone: Europe/Berlim}`, `spec.windows[0].timeZone: Invalid value: "Europe/Berlim": ` + zone},
		"Local":     {`{cron: "0 2 * * *", duration: 1h, timeZone: Local}`, `spec.windows[0].timeZone: Invalid value: "Local": ` + zone},
		"Path":      {`{cron: "0 2 * * *", duration: 1h, timeZone: ../../etc/localtime}`, `spec.windows[0].timeZone: Invalid value: "../../etc/localtime": ` + zone},
		"NoLength":  {`{cron: "0 2 * * *"}`, `spec.windows[0].duration: Invalid value: "": ` + length},
		"Zero":      {`{cron: "0 2 * * *", duration: 0s}`, `spec.windows[0].duration: Invalid value: "0s": ` + length},
		"Negative":  {`{cron: "0 2 * * *", duration: -1h}`, `spec.windows[0].duration: Invalid value: "-1h": ` + length},
		"TooShort":  {`{cron: "0 2 * * *", duration: 59s}`, `spec.windows[0].duration: Invalid value: "59s": ` + length},
		"Longer":    {`{cron: "0 2 * * *", duration: 744h1s}`, `spec.windows[0].duration: Invalid value: "744h1s": ` + length},
		"Unit":      {`{cron: "0 2 * * *", duration: 1 day}`, `spec.windows[0].duration: Invalid value: "1 day": ` + length},
		"Overflow":  {`{cron: "0 2 * * *", duration: 99999999999999h}`, `spec.windows[0].duration: Invalid value: "99999999999999h": ` + length},
		"TooMany":   {strings.Repeat(`{cron: "0 2 * * *", duration: 1h},`, limits.RuleList+1), `spec.windows: Too many: 65: must have at most 64 items`},
		"AtTheMost": {strings.Repeat(`{cron: "0 2 * * *", duration: 744h},`, limits.RuleList), ``},
		"Shortest":  {`{cron: "0 2 * * *", duration: 1m}`, ``},
		"Second":    {berlin + `, {cron: "x 2 * * *", duration: 1h}`, `spec.windows[1].cron: Invalid value: "x 2 * * *": failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax`},
	} {
		if _, got := compile(t, windowed(tc.windows)); got != tc.want {
			t.Errorf("%s: got  %s\nwant %s", name, got, tc.want)
		}
	}
	_, got := compile(t, "hook: AfterControlPlaneInitialized\nwindows: ["+berlin+"]\nhold: [{if: 'true', message: '\"\"'}]")
	const want = "spec.hold: Forbidden: Cluster API does not wait for AfterControlPlaneInitialized\n" +
		"spec.windows: Forbidden: Cluster API does not wait for AfterControlPlaneInitialized"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestNow tells expressions the time of the call, which is the one by which windows open.
func TestNow(t *testing.T) {
	got, err := answer(t, `
hook: BeforeClusterUpgrade
hold:
- if: now < timestamp("2026-07-04T01:00:01Z") && now >= timestamp("2026-07-04T01:00:00Z") && now.getHours("Europe/Berlin") == 3
  message: '"it is a day of week " + string(now.getDayOfWeek()) + ", and 2 h before " + string(now + duration("2h"))'
`, upgrade("v1.36.0"))
	const want = "it is a day of week 6, and 2 h before 2026-07-04T03:00:00Z"
	if message := got.(interface{ GetMessage() string }).GetMessage(); err != nil || message != want {
		t.Errorf("got %q, %v, want %q", message, err, want)
	}
}

func compilerAt(t testing.TB, now func() time.Time) *hookrule.Compiler {
	t.Helper()
	hooks := catalog.New()
	cel, err := policy.NewCompiler()
	if err != nil {
		t.Fatal(err)
	}
	types, err := policy.NewTypes(hooks)
	if err != nil {
		t.Fatal(err)
	}
	return hookrule.NewCompiler(hooks, cel, types, now)
}
