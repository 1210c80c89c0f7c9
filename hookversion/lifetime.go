// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookversion

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/version"
	kubeversion "k8s.io/apimachinery/pkg/version"

	"github.com/hookgate/hookgate/catalog"
)

// period is how long a deprecated version stays at least. Both parts have to pass.
type period struct{ months, releases int }

// track is the stability of a version. A more stable track is greater.
type track int

const (
	alpha track = iota
	beta
	stable
)

// periods are defined by rule #4 of the Runtime SDK. Releases are counted by minor version; a patch does not count.
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

// CheckLifetimes returns an error that joins every breach of the deprecation rules of the Runtime SDK proposal
// (https://github.com/kubernetes-sigs/cluster-api/blob/main/docs/proposals/20220221-runtime-SDK.md#runtime-sdk-rules-1):
//
//   - rule #3: a version is deprecated only after the release of a newer one that is at least as stable, is not
//     deprecated itself, and has every hook of the deprecated one;
//   - rule #4: a deprecated GA version stays for 12 months and 3 releases, a beta version for 6 months and 2 releases.
//     An alpha version need not stay.
//
// Every group is held against the releases of its program. A release without a date is taken to come out today.
func CheckLifetimes(hooks *catalog.Catalog, today time.Time) error {
	versions := map[string][]lifetime{} // by group
	releases := map[string][]catalog.Release{}
	for _, v := range hooks.Versions() {
		l := lifetime{Lifetime: v.Lifetime, group: v.Group, name: v.Name}
		for _, h := range v.Hooks() {
			l.hooks = append(l.hooks, h.Hook)
		}
		versions[v.Group] = append(versions[v.Group], l)
		if releases[v.Group] = v.Releases; v.Releases == nil {
			releases[v.Group] = hooks.Releases()
		}
	}
	var errs []error
	for _, group := range slices.Sorted(maps.Keys(versions)) {
		errs = append(errs, checkLifetimes(releases[group], versions[group], today))
	}
	return errors.Join(errs...)
}

// lifetime holds the parts of a version that the rules use.
type lifetime struct {
	catalog.Lifetime
	group, name string
	hooks       []string // none if it was removed
}

func checkLifetimes(releases []catalog.Release, versions []lifetime, today time.Time) error {
	table, errs := readReleases(releases, today)
	for _, v := range versions {
		if err := v.check(versions, table); err != nil {
			errs = append(errs, fmt.Errorf("version %s/%s: %w", v.group, v.name, err))
		}
	}
	return errors.Join(errs...)
}

// release is a row of the table of releases: its date, and its place among the minor releases.
type release struct {
	version *version.Version
	date    time.Time
	minor   int
}

// readReleases returns the table of releases by version.
func readReleases(releases []catalog.Release, today time.Time) (map[string]release, []error) {
	var errs []error
	table := map[string]release{}
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
			errs = append(errs, fmt.Errorf("release %s: no date; only the last release may lack one", r.Version))
			continue
		}
		next := release{version: v, date: date}
		if last.version != nil {
			if !last.version.LessThan(v) || date.Before(last.date) {
				errs = append(errs, fmt.Errorf("release %s: comes after %s in the table, but is not newer",
					r.Version, releases[i-1].Version))
			}
			next.minor = last.minor
			if v.Major() != last.version.Major() || v.Minor() != last.version.Minor() {
				next.minor++
			}
		}
		table[r.Version], last = next, next
	}
	return table, errs
}

func (v lifetime) check(versions []lifetime, table map[string]release) error {
	for _, named := range []struct{ what, release string }{
		{"introduced", v.Introduced}, {"deprecated", v.Deprecated}, {"removed", v.Removed},
	} {
		if _, ok := table[named.release]; !ok && named.release != "" {
			return fmt.Errorf("%s in %s, which is not in the table of releases", named.what, named.release)
		}
	}
	introduced, deprecated, removed := table[v.Introduced], table[v.Deprecated], table[v.Removed]
	switch {
	case v.Introduced == "":
		return errors.New("was never introduced")
	case v.Deprecated == "" && v.Removed != "":
		return fmt.Errorf("removed in %s without having been deprecated", v.Removed)
	case v.Deprecated == "":
		return nil
	case deprecated.version.LessThan(introduced.version):
		return fmt.Errorf("deprecated in %s, before it was introduced in %s", v.Deprecated, v.Introduced)
	case v.Removed != "" && removed.version.LessThan(deprecated.version):
		return fmt.Errorf("removed in %s, but deprecated only later, in %s", v.Removed, v.Deprecated)
	}
	if err := v.checkSuccessor(versions, table); err != nil {
		return err
	}
	if v.Removed == "" {
		return nil
	}
	return v.checkPeriod(deprecated, removed)
}

// checkPeriod returns an error unless v, which was removed, kept rule #4.
func (v lifetime) checkPeriod(deprecated, removed release) error {
	t := trackOf(v.name)
	p := periods[t]
	if n := removed.minor - deprecated.minor; n < p.releases {
		return fmt.Errorf("rule #4: %s must stay for %d releases after its deprecation in %s, but %s removes "+
			"it after only %d",
			t, p.releases, v.Deprecated, v.Removed, n)
	}
	if end := deprecated.date.AddDate(0, p.months, 0); removed.date.Before(end) {
		return fmt.Errorf("rule #4: %s must stay for %d months after its deprecation in %s, until %s, but %s "+
			"removes it before that date", t, p.months, v.Deprecated, end.Format(time.DateOnly), v.Removed)
	}
	return nil
}

// checkSuccessor returns an error unless v, which is deprecated, kept rule #3.
func (v lifetime) checkSuccessor(versions []lifetime, table map[string]release) error {
	deprecated := table[v.Deprecated]
	missing := ""
	for _, other := range versions {
		if other.group != v.group || trackOf(other.name) < trackOf(v.name) ||
			kubeversion.CompareKubeAwareVersionStrings(other.name, v.name) <= 0 {
			continue
		}
		introduced, known := table[other.Introduced]
		if !known || deprecated.version.LessThan(introduced.version) {
			continue
		}
		if ended, ok := table[other.Deprecated]; ok && !deprecated.version.LessThan(ended.version) {
			continue
		}
		if other.Removed != "" {
			return nil // its hooks are no longer known
		}
		i := slices.IndexFunc(v.hooks, func(hook string) bool { return !slices.Contains(other.hooks, hook) })
		if i < 0 {
			return nil
		}
		missing = v.hooks[i]
	}
	if missing != "" {
		return fmt.Errorf(
			"rule #3: deprecated in %s, but in that release, no newer version of at least the same stability had the hook %s",
			v.Deprecated, missing)
	}
	return fmt.Errorf(
		"rule #3: deprecated in %s, but in that release, no newer version was at least as stable", v.Deprecated,
	)
}
