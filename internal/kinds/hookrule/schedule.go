// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookrule

import (
	"cmp"
	"strconv"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
)

// cronFields parses what CronJobs have, without names such as @daily.
var cronFields = cron.NewParser(cron.Minute | cron.Hour | cron.Dom | cron.Month | cron.Dow)

// parseCron parses the five fields of cron. 7 is Sunday, too, which the library does not know.
func parseCron(source string) (cron.Schedule, error) {
	if fields := strings.Fields(source); len(fields) == 5 {
		days := strings.Split(fields[4], ",")
		for i, item := range days {
			days[i] = withoutSeven(item)
		}
		fields[4] = strings.Join(days, ",")
		source = strings.Join(fields, " ")
	}
	return cronFields.Parse(source)
}

// withoutSeven writes an item of the days of the week that has Sunday as 7, or as the end of a range, with 0 in its
// place. It leaves what is wrong to be refused.
func withoutSeven(item string) string {
	days, step, _ := strings.Cut(item, "/")
	from, to, isRange := strings.Cut(days, "-")
	first, last := weekday(from), weekday(to)
	switch {
	case !isRange && first == 7:
		return strings.Replace(item, days, "0-0", 1)
	case !isRange || first < 0 || last != 7 && (last != 0 || first == 0 || !strings.EqualFold(to, "sun")):
		return item
	}
	every, err := strconv.Atoi(cmp.Or(step, "1"))
	if err != nil || every < 1 {
		return strings.Replace(item, days, "0-0", 1) // the step is wrong
	}
	var all []string
	for day := first; day <= 7; day += every {
		all = append(all, strconv.Itoa(day%7))
	}
	return strings.Join(all, ",")
}

// weekday returns the number of a day of the week, or -1.
func weekday(text string) int {
	const names = "sun mon tue wed thu fri sat"
	if i := strings.Index(names, strings.ToLower(text)); len(text) == 3 && i >= 0 && i%4 == 0 {
		return i / 4
	}
	if day, err := strconv.Atoi(text); err == nil && day >= 0 && day <= 7 {
		return day
	}
	return -1
}

// schedule says when a window opens, in the time of a zone. What its clock leaves out opens when it goes on. What the
// clock shows twice opens the first time, and both times if the window opens in every hour of the day.
type schedule struct {
	clock  cron.Schedule // of a clock that is never changed
	zone   *time.Location
	hourly bool
}

func newSchedule(clock cron.Schedule, zone *time.Location) *schedule {
	const everyHour = 1<<24 - 1
	spec, ok := clock.(*cron.SpecSchedule)
	return &schedule{clock: clock, zone: zone, hourly: ok && spec.Hour&everyHour == everyHour}
}

// next returns the first opening after a time, or zero if there is none within five years.
func (s *schedule) next(after time.Time) time.Time {
	t := after.In(s.zone)
	shown := wall(t, offset(t))
	began, ends := t.ZoneBounds()
	if !began.IsZero() && !s.hourly {
		// What the clock showed before it was put back has been.
		shown = later(shown, lastShown(began))
	}
	for {
		opens := s.clock.Next(shown)
		if opens.IsZero() {
			return opens
		}
		at := offset(t)
		if ends.IsZero() || opens.Before(wall(ends, at)) {
			return opens.Add(-at).In(s.zone)
		}
		if opens.Before(wall(ends, offset(ends))) {
			return ends // the clock goes on there, and does not show when it should open
		}
		t = ends
		shown = wall(t, offset(t)).Add(-time.Second) // a window may open as the clock is changed
		if !s.hourly {
			shown = later(shown, lastShown(t))
		}
		_, ends = t.ZoneBounds()
	}
}

// offset returns how far the clock is ahead of UTC.
func offset(t time.Time) time.Duration {
	_, seconds := t.Zone()
	return time.Duration(seconds) * time.Second
}

// wall returns what a clock shows that is so far ahead of UTC, as a time in UTC.
func wall(t time.Time, ahead time.Duration) time.Time { return t.UTC().Add(ahead) }

// lastShown returns what the clock showed in the second before it was changed.
func lastShown(change time.Time) time.Time {
	before := change.Add(-time.Second)
	return wall(before, offset(before))
}

func later(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
