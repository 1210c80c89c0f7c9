// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookrule

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata"
)

// openings returns when a schedule opens after one time and before another.
func openings(t *testing.T, source, zone, after, before string) []string {
	t.Helper()
	var times [2]time.Time
	for i, text := range []string{after, before} {
		at, err := time.Parse(time.RFC3339, text)
		if err != nil {
			t.Fatal(err)
		}
		times[i] = at
	}
	s := scheduleOf(t, source, zone)
	var all []string
	for at := s.next(times[0]); !at.IsZero() && at.Before(times[1]); at = s.next(at) {
		all = append(all, at.Format(time.RFC3339))
	}
	return all
}

func scheduleOf(t *testing.T, source, zone string) *schedule {
	t.Helper()
	location, err := time.LoadLocation(zone)
	if err != nil {
		t.Fatal(err)
	}
	clock, err := parseCron(source)
	if err != nil {
		t.Fatal(err)
	}
	return newSchedule(clock, location)
}

func TestOpeningsWhereClocksChange(t *testing.T) {
	for name, tc := range map[string]struct{ reason, cron, zone, day, want string }{
		"Weekly":       {"02:00 does not come: it opens when it would be", "0 2 * * 0", "Europe/Berlin", "2026-03-29", "03:00+02"},
		"GapMiddle":    {"the end of the gap is the first that comes", "30 2 * * *", "Europe/Berlin", "2026-03-29", "03:00+02"},
		"GapSeveral":   {"they open together", "*/15 2 * * *", "Europe/Berlin", "2026-03-29", "03:00+02"},
		"GapAndAfter":  {"one time is one opening", "0 2-4 * * *", "Europe/Berlin", "2026-03-29", "03:00+02 04:00+02"},
		"GapBefore":    {"what comes is not moved", "59 1 * * *", "Europe/Berlin", "2026-03-29", "01:59+01"},
		"Twice":        {"02:30 comes twice: it opens once", "30 2 * * 0", "Europe/Berlin", "2026-10-25", "02:30+02"},
		"TwiceAtOnce":  {"the hour that comes twice begins with it", "0 2 * * *", "Europe/Berlin", "2026-10-25", "02:00+02"},
		"TwiceAfter":   {"03:00 comes once", "0 3 * * *", "Europe/Berlin", "2026-10-25", "03:00+01"},
		"TwiceSeveral": {"each opens once", "*/20 2 * * *", "Europe/Berlin", "2026-10-25", "02:00+02 02:20+02 02:40+02"},
		"EveryTwo":     {"not every hour: once", "0 */2 25 10 *", "Europe/Berlin", "2026-10-25", "00:00+02 02:00+02 04:00+01 06:00+01 08:00+01 10:00+01 12:00+01 14:00+01 16:00+01 18:00+01 20:00+01 22:00+01"},
		"HalfHour":     {"30 minutes are left out", "15 2 * * *", "Australia/Lord_Howe", "2026-10-04", "02:30+11"},
		"HalfHourBack": {"30 minutes come twice", "45 1 * * *", "Australia/Lord_Howe", "2026-04-05", "01:45+11"},
		"Midnight":     {"the day begins at 01:00", "0 0 * * *", "America/Santiago", "2026-09-06", "01:00-03"},
		"MidnightCuts": {"so it does here", "30 0 * * 5", "Africa/Cairo", "2026-04-24", "01:00+03"},
		"Beirut":       {"and here", "0 0 * * 7", "Asia/Beirut", "2026-03-29", "01:00+03"},
		"BackToBefore": {"the day before ends twice", "30 23 * * *", "America/Santiago", "2026-04-04", "23:30-03"},
		"DayLeftOut":   {"the whole day does not come", "0 2 30 12 *", "Pacific/Apia", "2011-12-31", "00:00+14"},
		"DayAfter":     {"and this one does", "0 2 * * *", "Pacific/Apia", "2011-12-31", "00:00+14 02:00+14"},
		"Plain":        {"a zone without changes", "0 2 * * *", "Asia/Kolkata", "2026-03-29", "02:00+05:30"},
		"UTC":          {"neither has this", "0 2 * * *", "", "2026-03-29", "02:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			day, err := time.Parse(time.DateOnly, tc.day)
			if err != nil {
				t.Fatal(err)
			}
			from, to := day.Add(-36*time.Hour).Format(time.RFC3339), day.Add(60*time.Hour).Format(time.RFC3339)
			var got []string
			for _, at := range openings(t, tc.cron, tc.zone, from, to) {
				if clock, ok := strings.CutPrefix(at, tc.day+"T"); ok {
					got = append(got, strings.TrimSuffix(clock[:len("15:04")]+clock[len("15:04:05"):], ":00"))
				}
			}
			if text := strings.Join(got, " "); text != tc.want {
				t.Errorf("%s: got %s, want %s", tc.reason, text, tc.want)
			}
		})
	}
}

// A schedule of every hour has as many openings as there are hours.
func TestEveryHour(t *testing.T) {
	for name, tc := range map[string]struct {
		cron, zone, from, to string
		want                 int
	}{
		"Forward":      {"0 * * * *", "Europe/Berlin", "2026-03-28T22:59:59Z", "2026-03-29T22:00:00Z", 23},
		"ForwardHalf":  {"30 * * * *", "Europe/Berlin", "2026-03-28T22:59:59Z", "2026-03-29T22:00:00Z", 24}, // 03:00, too
		"Back":         {"0 * * * *", "Europe/Berlin", "2026-10-24T21:59:59Z", "2026-10-25T23:00:00Z", 25},
		"BackInWords":  {"0 0-23 * * *", "Europe/Berlin", "2026-10-24T21:59:59Z", "2026-10-25T23:00:00Z", 25},
		"BackMinutes":  {"* * * * *", "Europe/Berlin", "2026-10-24T21:59:59Z", "2026-10-25T23:00:00Z", 25 * 60},
		"BackHalfHour": {"*/15 * * * *", "Australia/Lord_Howe", "2026-04-04T12:59:59Z", "2026-04-05T13:30:00Z", 98},
	} {
		if got := openings(t, tc.cron, tc.zone, tc.from, tc.to); len(got) != tc.want {
			t.Errorf("%s: got %d, want %d", name, len(got), tc.want)
		}
	}
}

// Each day has one opening, in every zone: at the time of a daily schedule, the first if that comes twice, or else at
// the first time after it.
func TestEachDayOpensOnce(t *testing.T) {
	random := rand.New(rand.NewPCG(20, 26))
	for _, tc := range []struct {
		zone  string
		years [2]int
	}{
		{"Europe/Berlin", [2]int{2025, 2027}},
		{"Europe/Dublin", [2]int{2025, 2026}},
		{"America/New_York", [2]int{2006, 2008}},
		{"America/Santiago", [2]int{2025, 2026}},
		{"America/Sao_Paulo", [2]int{2016, 2019}},
		{"America/Havana", [2]int{2025, 2026}},
		{"Africa/Cairo", [2]int{2025, 2026}},
		{"Africa/Casablanca", [2]int{2025, 2026}},
		{"Asia/Beirut", [2]int{2025, 2026}},
		{"Asia/Tehran", [2]int{2021, 2023}},
		{"Asia/Pyongyang", [2]int{2015, 2018}},
		{"Australia/Lord_Howe", [2]int{2025, 2026}},
		{"Antarctica/Troll", [2]int{2025, 2026}},
		{"Pacific/Apia", [2]int{2010, 2012}},
		{"Pacific/Kwajalein", [2]int{1969, 1994}},
	} {
		for range 6 {
			hour, minute := random.IntN(5), random.IntN(60)
			if random.IntN(3) == 0 {
				hour = 23 - hour/2
			}
			s := scheduleOf(t, fmt.Sprintf("%d %d * * *", minute, hour), tc.zone)
			first := time.Date(tc.years[0], 1, 2, hour, minute, 0, 0, time.UTC)
			at := firstShowing(first, s.zone).Add(-time.Second)
			for day := first; day.Year() <= tc.years[1]; day = day.AddDate(0, 0, 1) {
				want := firstShowing(day, s.zone)
				if at.Equal(want) {
					continue // together with the day before: both are left out
				}
				if at = s.next(at); !at.Equal(want) {
					t.Fatalf("%s, %s: got %s, want %s", tc.zone, day.Format(time.DateTime), at, want)
				}
			}
		}
	}
}

// firstShowing returns the first time at which the clock shows a time, or else one after it on the way forward. It does
// not look at the changes of the zone, but at the clock.
func firstShowing(shows time.Time, zone *time.Location) time.Time {
	seen := func(at time.Time) time.Time {
		_, ahead := at.In(zone).Zone()
		return at.Add(time.Duration(ahead) * time.Second)
	}
	at := shows.Add(-26 * time.Hour) // no clock is ahead of UTC by more
	for _, step := range []time.Duration{time.Hour / 4, time.Minute} {
		for seen(at.Add(step)).Before(shows) {
			at = at.Add(step)
		}
	}
	return at.Add(time.Minute)
}

func TestDaysOfTheWeek(t *testing.T) {
	const week = "sun mon tue wed thu fri sat"
	for field, want := range map[string]string{
		"7": "sun", "07": "sun", "0": "sun", "sun": "sun", "SUN": "sun", "Sun": "sun", "7,1": "sun mon", "0,7": "sun",
		"5-7": "sun fri sat", "fri-sun": "sun fri sat", "Fri-7": "sun fri sat", "sat-SUN": "sun sat", "0-7": week, "sun-7": week,
		"1-7": week, "mon-sun": week, "7-7": "sun", "0-0": "sun", "sun-sun": "sun", "sun-sat": week, "mon-fri": "mon tue wed thu fri",
		"1-7/2": "sun mon wed fri", "1-7/3": "sun mon thu", "2-7/3": "tue fri", "0-7/7": "sun", "7/2": "sun", "5/2": "fri",
		"*/2": "sun tue thu sat", "*": week, "?": week, "sat,sun": "sun sat", "1-3,6-7": "sun mon tue wed sat",
	} {
		var got []string
		for _, at := range openings(t, "0 12 * * "+field, "", "2026-07-04T12:00:00Z", "2026-07-11T13:00:00Z") {
			day, err := time.Parse(time.RFC3339, at)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, strings.ToLower(day.Format("Mon")))
		}
		if !slices.Equal(got, strings.Fields(want)) {
			t.Errorf("%s: got %q, want %q", field, got, want)
		}
	}
	for _, field := range []string{"8", "7-1", "7-8", "5-8", "-7", "7-", "5-7/0", "7/0", "7/x", "5-7/x", "sunday", "7-sat", "fri-wed", "7/2/3", "5-6-7", "su", "un", "n m"} {
		if _, err := parseCron("0 12 * * " + field); err == nil {
			t.Errorf("%s is taken", field)
		}
	}
}

func TestDaysOfMonthAndWeek(t *testing.T) {
	got := openings(t, "0 12 1 * 7", "", "2026-07-01T00:00:00Z", "2026-07-13T00:00:00Z")
	want := []string{"2026-07-01T12:00:00Z", "2026-07-05T12:00:00Z", "2026-07-12T12:00:00Z"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q: a day that matches either is enough", got, want)
	}
}
