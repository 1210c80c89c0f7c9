// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
)

// Release is a release of the gateway.
type Release struct {
	Version string // "v0.1.0"
	Date    string // "2026-11-21"; empty for the one that is to come
}

// period is for how long a deprecated version stays at least: both have to pass.
type period struct{ months, releases int }

// track is how stable a version is. A more stable one is larger.
type track int

const (
	alpha track = iota
	beta
	stable
)

// periods are those of rule #4 of the Runtime SDK. Releases are counted by their minor version: a patch is no release here.
var periods = [...]period{alpha: {}, beta: {months: 6, releases: 2}, stable: {months: 12, releases: 3}}

func (t track) String() string { return [...]string{"alpha", "beta", "GA"}[t] }

func trackOf(name string) track {
	switch {
	case strings.Contains(name, "alpha"):
		return alpha
	case strings.Contains(name, "beta"):
		return beta
	}
	return stable
}

// CheckLifetimes holds the lifetimes of all versions against the rules of the Runtime SDK proposal for deprecation
// (https://github.com/kubernetes-sigs/cluster-api/blob/main/docs/proposals/20220221-runtime-SDK.md#runtime-sdk-rules-1):
//
//   - rule #3: a version is deprecated only when a newer one that is at least as stable, and not deprecated itself, has
//     been released, with every hook that the deprecated one has;
//   - rule #4: a deprecated version stays for 12 months and 3 releases where it is GA, for 6 months and 2 releases where it is
//     beta; an alpha version need not stay.
//
// A release without a date is taken to come out today. The error tells every fault.
func (c *Catalog) CheckLifetimes(today time.Time) error {
	dates, errs := datesOf(c.releases, today)
	for _, v := range c.versions {
		if err := c.checkLifetime(v, dates); err != nil {
			errs = append(errs, fmt.Errorf("version %s: %w", v.APIVersion(), err))
		}
	}
	return errors.Join(errs...)
}

// release is one of the table: when it came out, and its place among the minor releases.
type release struct {
	version *version.Version
	date    time.Time
	minor   int
}

// datesOf reads the table of releases, by version.
func datesOf(releases []Release, today time.Time) (map[string]release, []error) {
	var errs []error
	dates := map[string]release{}
	var last release
	for i, r := range releases {
		v, err := version.ParseSemantic(r.Version)
		if err != nil {
			errs = append(errs, fmt.Errorf("release %q: is not of the form v1.2.3", r.Version))
			continue
		}
		date := today
		switch {
		case r.Date != "":
			if date, err = time.Parse(time.DateOnly, r.Date); err != nil {
				errs = append(errs, fmt.Errorf("release %s: date %q is not of the form 2006-01-02", r.Version, r.Date))
				continue
			}
		case i != len(releases)-1:
			errs = append(errs, fmt.Errorf("release %s: has no date, and is not the last", r.Version))
			continue
		}
		next := release{version: v, date: date}
		if last.version != nil {
			if !last.version.LessThan(v) || date.Before(last.date) {
				errs = append(errs, fmt.Errorf("release %s: comes after %s in the table, and is not newer", r.Version, releases[i-1].Version))
			}
			next.minor = last.minor
			if v.Major() != last.version.Major() || v.Minor() != last.version.Minor() {
				next.minor++
			}
		}
		dates[r.Version], last = next, next
	}
	return dates, errs
}

func (c *Catalog) checkLifetime(v *Version, dates map[string]release) error {
	l := v.Lifetime
	for _, named := range []struct{ what, release string }{{"introduced", l.Introduced}, {"deprecated", l.Deprecated}, {"removed", l.Removed}} {
		if _, ok := dates[named.release]; !ok && named.release != "" {
			return fmt.Errorf("%s in %s, which is not in the table of releases", named.what, named.release)
		}
	}
	introduced, deprecated, removed := dates[l.Introduced], dates[l.Deprecated], dates[l.Removed]
	switch {
	case l.Introduced == "":
		return errors.New("was never introduced")
	case l.Deprecated == "" && l.Removed != "":
		return fmt.Errorf("removed in %s without having been deprecated", l.Removed)
	case l.Deprecated == "":
		return nil
	case deprecated.version.LessThan(introduced.version):
		return fmt.Errorf("deprecated in %s, before it was introduced in %s", l.Deprecated, l.Introduced)
	case l.Removed != "" && removed.version.LessThan(deprecated.version):
		return fmt.Errorf("removed in %s, before it was deprecated in %s", l.Removed, l.Deprecated)
	}
	if err := c.checkSuccessor(v, dates); err != nil {
		return err
	}
	if l.Removed == "" {
		return nil
	}
	t := trackOf(v.Name)
	p := periods[t]
	if n := removed.minor - deprecated.minor; n < p.releases {
		return fmt.Errorf("rule #4: %s stays for %d releases after its deprecation in %s, and %s comes %d after it", t, p.releases, l.Deprecated, l.Removed, n)
	}
	if end := deprecated.date.AddDate(0, p.months, 0); removed.date.Before(end) {
		return fmt.Errorf("rule #4: %s stays for %d months after its deprecation in %s, until %s, and %s comes before that",
			t, p.months, l.Deprecated, end.Format(time.DateOnly), l.Removed)
	}
	return nil
}

// checkSuccessor holds v, which is deprecated, against rule #3.
func (c *Catalog) checkSuccessor(v *Version, dates map[string]release) error {
	deprecated := dates[v.Lifetime.Deprecated]
	missing := ""
	for _, other := range c.versions {
		if other.Group != v.Group || newest(other.Name, v.Name) >= 0 || trackOf(other.Name) < trackOf(v.Name) {
			continue
		}
		introduced, known := dates[other.Lifetime.Introduced]
		if !known || deprecated.version.LessThan(introduced.version) {
			continue
		}
		if ended, ok := dates[other.Lifetime.Deprecated]; ok && !deprecated.version.LessThan(ended.version) {
			continue
		}
		if other.Removed() {
			return nil // it was there then, with hooks that nobody knows any more
		}
		if missing = missingHook(v, other); missing == "" {
			return nil
		}
	}
	if missing != "" {
		return fmt.Errorf("rule #3: deprecated in %s, when no newer version that is at least as stable had the hook %s", v.Lifetime.Deprecated, missing)
	}
	return fmt.Errorf("rule #3: deprecated in %s, when there was no newer version that is at least as stable", v.Lifetime.Deprecated)
}

// missingHook returns the first hook of v that other does not have.
func missingHook(v, other *Version) string {
	for _, h := range v.hooks {
		if !slices.ContainsFunc(other.hooks, func(o *Hook) bool { return o.Hook == h.Hook }) {
			return h.Hook
		}
	}
	return ""
}
