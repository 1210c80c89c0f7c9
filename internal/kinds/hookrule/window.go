// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookrule

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
)

// windows are the windows of the rule that is named so. Outside all of them, the rule holds.
type windows struct {
	rule string
	list []window
}

// window opens by a schedule, and stays open for a duration.
type window struct {
	schedule *schedule
	duration time.Duration
}

// windows compiles the windows of a rule.
func (in *compilation) windows(from []v1alpha1.HookRuleWindow, path *field.Path) windows {
	compiled := windows{rule: in.name}
	for i := range in.bounded(len(from), path) {
		at := path.Index(i)
		clock := in.schedule(from[i].Cron, at.Child("cron"))
		zone := in.zone(from[i].TimeZone, at.Child("timeZone"))
		w := window{duration: in.duration(from[i].Duration, at.Child("duration"))}
		if clock == nil || zone == nil {
			continue
		}
		if w.schedule = newSchedule(clock, zone); w.schedule.next(in.now()).IsZero() {
			in.errs = append(in.errs, field.Invalid(at.Child("cron"), from[i].Cron, "opens at no time of the next five years"))
			continue
		}
		compiled.list = append(compiled.list, w)
	}
	return compiled
}

// schedule parses a cron expression, or notes its mistake and returns nil.
func (in *compilation) schedule(source string, path *field.Path) cron.Schedule {
	quoted := text.Cut(source, limits.QuotedBytes)
	switch {
	case source == "":
		in.errs = append(in.errs, field.Required(path, "must have the five fields of cron"))
		return nil
	case len(source) > limits.CronBytes:
		in.errs = append(in.errs, field.TooLong(path, "", limits.CronBytes))
		return nil
	case strings.Contains(source, "TZ="):
		in.errs = append(in.errs, field.Invalid(path, quoted, "must have no time zone: that is what timeZone is for"))
		return nil
	case strings.HasPrefix(source, "@"):
		in.errs = append(in.errs, field.Invalid(path, quoted, "must have the five fields of cron, not a name such as @daily"))
		return nil
	}
	clock, err := parseCron(source)
	if err != nil {
		in.errs = append(in.errs, field.Invalid(path, quoted, text.Cut(err.Error(), limits.QuotedBytes)))
		return nil
	}
	return clock
}

// zone finds a time zone, or notes that there is none and returns nil.
func (in *compilation) zone(name string, path *field.Path) *time.Location {
	zone, err := time.LoadLocation(name)
	if strings.EqualFold(name, "local") { // what that is depends on the machine
		err = errors.New("not the name of a time zone")
	}
	if err != nil {
		in.errs = append(in.errs, field.Invalid(path, text.Cut(name, limits.QuotedBytes),
			"must be the name of a time zone, such as Europe/Berlin"))
		return nil
	}
	return zone
}

// duration parses how long a window is open, or notes the mistake.
func (in *compilation) duration(source string, path *field.Path) time.Duration {
	d, err := time.ParseDuration(source)
	if err != nil || d < limits.LeastWindow || d > limits.LongestWindow {
		in.errs = append(in.errs, field.Invalid(path, text.Cut(source, limits.QuotedBytes), fmt.Sprintf(
			"must be a duration such as 4h or 90m, between %.0fm and %.0fh",
			limits.LeastWindow.Minutes(), limits.LongestWindow.Hours())))
	}
	return d
}

// untilOpen returns a message and how soon to ask again if no window is open at a time; zero if one is, or if there are
// no windows. The message is the same until one opens.
func (w *windows) untilOpen(now time.Time) (message string, retryAfterSeconds int32) {
	if len(w.list) == 0 {
		return "", 0
	}
	var next time.Time
	for i := range w.list {
		// The first opening whose window has not ended yet: if it has come, the window is open.
		opens := w.list[i].schedule.next(now.Add(-w.list[i].duration))
		switch {
		case opens.IsZero():
		case !opens.After(now):
			return "", 0
		case next.IsZero() || opens.Before(next):
			next = opens
		}
	}
	message = fmt.Sprintf("outside the windows of HookRule %q", w.rule)
	if next.IsZero() {
		return message + ": none opens within five years", limits.WindowRetrySeconds
	}
	wait := (next.Sub(now) + time.Second - 1) / time.Second
	return fmt.Sprintf("%s: the next window opens at %s", message, next.Format(time.RFC3339)),
		int32(min(wait, limits.WindowRetrySeconds))
}
