// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookversion

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/hookgate/hookgate/catalog"
)

// own returns the catalog of all groups that the gateway has.
func own(t *testing.T) *catalog.Catalog {
	t.Helper()
	hooks, err := catalog.With(catalog.Own()...)
	if err != nil {
		t.Fatal(err)
	}
	return hooks
}

func TestLifetimesOfTheContractKeepTheRules(t *testing.T) {
	if err := CheckLifetimes(own(t), time.Now()); err != nil {
		t.Error(err)
	}
}

// TestReleasedVersionsAreCompared wants every version of a release in what `buf breaking` compares the protos with, and no
// other: its protos may still change.
func TestReleasedVersionsAreCompared(t *testing.T) {
	data, err := os.ReadFile(filepath.Join("..", "proto", "released.binpb"))
	if err != nil {
		t.Fatal(err)
	}
	released := &descriptorpb.FileDescriptorSet{}
	if err := proto.Unmarshal(data, released); err != nil {
		t.Fatal(err)
	}
	hooks := own(t)
	for _, v := range hooks.Versions() {
		i := slices.IndexFunc(hooks.Releases(), func(r catalog.Release) bool { return r.Version == v.Lifetime.Introduced })
		if i < 0 {
			t.Fatalf("%s: no release %q", v.APIVersion(), v.Lifetime.Introduced)
		}
		for _, h := range v.Hooks() {
			compared := slices.ContainsFunc(released.GetFile(), func(f *descriptorpb.FileDescriptorProto) bool {
				return f.GetName() == h.Service.ParentFile().Path()
			})
			if dated := hooks.Releases()[i].Date != ""; dated != compared {
				t.Errorf("%s came with %s, which is released: %t; buf compares it: %t. Run make release-contract once for a release",
					h, v.Lifetime.Introduced, dated, compared)
			}
		}
	}
}

// TestLifetimesOfAnotherProgram holds a group against the releases of its own program, and the others against the gateway's.
func TestLifetimesOfAnotherProgram(t *testing.T) {
	infrastructure := catalog.Infrastructure()[0]
	other := catalog.Source{
		Group: "other.example", Version: "v1", Files: infrastructure.Files,
		Lifetime: catalog.Lifetime{Introduced: "v7.0.0", Deprecated: "v7.1.0"},
		Releases: []catalog.Release{{Version: "v7.0.0", Date: "2026-01-01"}, {Version: "v7.1.0"}},
	}
	hooks, err := catalog.With(other)
	if err != nil {
		t.Fatal(err)
	}
	const want = "version other.example/v1: rule #3: deprecated in v7.1.0, but in that release, no newer version was at least as stable"
	if err := CheckLifetimes(hooks, time.Now()); err == nil || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// quarterly lists versions and dates of releases, three months apart, with a patch in between.
var quarterly = [][2]string{
	{"v0.1.0", "2026-01-01"},
	{"v0.1.1", "2026-02-01"},
	{"v0.2.0", "2026-04-01"},
	{"v0.3.0", "2026-07-01"},
	{"v0.4.0", "2026-10-01"},
	{"v0.5.0", "2027-01-01"},
	{"v0.6.0", "2027-04-01"},
	{"v0.7.0", ""},
}

func life(introduced, deprecated, removed string) catalog.Lifetime {
	return catalog.Lifetime{Introduced: introduced, Deprecated: deprecated, Removed: removed}
}

// versionOf returns a version of one group with these hooks.
func versionOf(name string, l catalog.Lifetime, hooks ...string) lifetime {
	return lifetime{Lifetime: l, group: "g.example", name: name, hooks: hooks}
}

func TestCheckLifetimes(t *testing.T) {
	first := catalog.Lifetime{Introduced: "v0.1.0"}
	for name, tc := range map[string]struct {
		reason   string
		releases [][2]string
		versions []lifetime
		want     string // empty: nothing is wrong
	}{
		"Introduced": {
			reason:   "a version that lives is not bound by anything",
			versions: []lifetime{versionOf("v1alpha1", first, "H")},
		},
		"AlphaReplacedByAlpha": {
			reason: "an alpha may be deprecated for a newer alpha, in the release that brings it",
			versions: []lifetime{
				versionOf("v1alpha1", life("v0.1.0", "v0.2.0", ""), "H"),
				versionOf("v1alpha2", catalog.Lifetime{Introduced: "v0.2.0"}, "H"),
			},
		},
		"AlphaRemovedAtOnce": {
			reason: "rule #4 gives an alpha no time",
			versions: []lifetime{
				versionOf("v1alpha1", life("v0.1.0", "v0.2.0", "v0.2.0")),
				versionOf("v1alpha2", catalog.Lifetime{Introduced: "v0.2.0"}, "H"),
			},
		},
		"BetaRemovedInTime": {
			reason: "six months and two releases later",
			versions: []lifetime{
				versionOf("v1beta1", life("v0.1.0", "v0.2.0", "v0.4.0")),
				versionOf("v1", catalog.Lifetime{Introduced: "v0.2.0"}, "H"),
			},
		},
		"GARemovedInTime": {
			reason: "twelve months and four releases later: the longer of both counts",
			versions: []lifetime{
				versionOf("v1", life("v0.1.0", "v0.2.0", "v0.6.0")),
				versionOf("v2", catalog.Lifetime{Introduced: "v0.2.0"}, "H"),
			},
		},
		"Rule3NoNewer": {
			reason:   "there is nothing else",
			versions: []lifetime{versionOf("v1alpha1", life("v0.1.0", "v0.2.0", ""), "H")},
			want: "version g.example/v1alpha1: rule #3: deprecated in v0.2.0, but in that release, " +
				"no newer version was at least as stable",
		},
		"Rule3BetaForGA": {
			reason:   "a beta does not replace a GA version",
			versions: []lifetime{versionOf("v1", life("v0.1.0", "v0.2.0", ""), "H"), versionOf("v2beta1", first, "H")},
			want:     "version g.example/v1: rule #3",
		},
		"Rule3AlphaForBeta": {
			reason: "an alpha does not replace a beta",
			versions: []lifetime{
				versionOf("v1beta1", life("v0.1.0", "v0.2.0", ""), "H"),
				versionOf("v2alpha1", first, "H"),
			},
			want: "version g.example/v1beta1: rule #3",
		},
		"Rule3OlderOne": {
			reason: "an older version of the same track is no replacement",
			versions: []lifetime{
				versionOf("v1alpha2", life("v0.1.0", "v0.2.0", ""), "H"),
				versionOf("v1alpha1", first, "H"),
			},
			want: "version g.example/v1alpha2: rule #3",
		},
		"Rule3TooEarly": {
			reason: "the new one has to be released first",
			versions: []lifetime{
				versionOf("v1alpha1", life("v0.1.0", "v0.2.0", ""), "H"),
				versionOf("v1alpha2", catalog.Lifetime{Introduced: "v0.3.0"}, "H"),
			},
			want: "version g.example/v1alpha1: rule #3",
		},
		"Rule3DeprecatedItself": {
			reason: "what is deprecated itself replaces nothing",
			versions: []lifetime{
				versionOf("v1alpha1", life("v0.1.0", "v0.2.0", ""), "H"),
				versionOf("v1alpha2", life("v0.1.0", "v0.2.0", ""), "H"),
			},
			want: "version g.example/v1alpha1: rule #3",
		},
		"Rule3HookLeftOut": {
			reason: "every hook needs a successor",
			versions: []lifetime{
				versionOf("v1alpha1", life("v0.1.0", "v0.2.0", ""), "H", "Lost"),
				versionOf("v1alpha2", first, "H"),
			},
			want: "version g.example/v1alpha1: rule #3: deprecated in v0.2.0, but in that release, no newer version " +
				"of at least the same stability had the hook Lost",
		},
		"Rule3AnotherGroup": {
			reason: "another group is no replacement",
			versions: []lifetime{
				versionOf("v1alpha1", life("v0.1.0", "v0.2.0", ""), "H"),
				{Lifetime: first, group: "other.example", name: "v1"},
			},
			want: "version g.example/v1alpha1: rule #3",
		},
		"Rule4BetaReleases": {
			reason:   "a patch is no release: there is one minor release between them",
			releases: [][2]string{{"v0.1.0", "2026-01-01"}, {"v0.1.1", "2026-05-01"}, {"v0.2.0", "2026-09-01"}},
			versions: []lifetime{versionOf("v1beta1", life("v0.1.0", "v0.1.0", "v0.2.0")), versionOf("v1", first, "H")},
			want: "version g.example/v1beta1: rule #4: beta must stay for 2 releases after its " +
				"deprecation in v0.1.0, but v0.2.0 removes it after only 1",
		},
		"Rule4BetaMonths": {
			reason:   "two releases that come quickly are not six months",
			releases: [][2]string{{"v0.1.0", "2026-01-01"}, {"v0.2.0", "2026-02-01"}, {"v0.3.0", "2026-06-30"}},
			versions: []lifetime{versionOf("v1beta1", life("v0.1.0", "v0.1.0", "v0.3.0")), versionOf("v1", first, "H")},
			want: "version g.example/v1beta1: rule #4: beta must stay for 6 months after its " +
				"deprecation in v0.1.0, until 2026-07-01, but v0.3.0 removes it before that date",
		},
		"Rule4GAReleases": {
			reason:   "two releases in two years",
			releases: [][2]string{{"v0.1.0", "2026-01-01"}, {"v0.2.0", "2027-01-01"}, {"v0.3.0", "2028-01-01"}},
			versions: []lifetime{versionOf("v1", life("v0.1.0", "v0.1.0", "v0.3.0")), versionOf("v2", first, "H")},
			want: "version g.example/v1: rule #4: GA must stay for 3 releases after its deprecation in " +
				"v0.1.0, but v0.3.0 removes it after only 2",
		},
		"Rule4GAMonths": {
			reason: "three releases in nine months",
			versions: []lifetime{
				versionOf("v1", life("v0.1.0", "v0.2.0", "v0.5.0")),
				versionOf("v2", catalog.Lifetime{Introduced: "v0.2.0"}, "H"),
			},
			want: "version g.example/v1: rule #4: GA must stay for 12 months after its deprecation in " +
				"v0.2.0, until 2027-04-01, but v0.5.0 removes it before that date",
		},
		"Rule4ReleaseToCome": {
			reason:   "a release without a date comes out today, which is too early",
			versions: []lifetime{versionOf("v1", life("v0.1.0", "v0.4.0", "v0.7.0")), versionOf("v2", first, "H")},
			want: "version g.example/v1: rule #4: GA must stay for 12 months after its deprecation in " +
				"v0.4.0, until 2027-10-01, but v0.7.0 removes it before that date",
		},
		"Rule3DeprecatedLater": {
			reason: "a successor that is deprecated in a later release was one",
			versions: []lifetime{
				versionOf("v1alpha1", life("v0.1.0", "v0.2.0", ""), "H"),
				versionOf("v1alpha2", life("v0.2.0", "v0.3.0", ""), "H"),
				versionOf("v1", catalog.Lifetime{Introduced: "v0.3.0"}, "H"),
			},
		},
		"Rule3RemovedLater": {
			reason: "a successor that has been removed since was one, whatever hooks it had",
			versions: []lifetime{
				versionOf("v1alpha1", life("v0.1.0", "v0.2.0", ""), "H"),
				versionOf("v1alpha2", life("v0.2.0", "v0.3.0", "v0.3.0")),
				versionOf("v1", catalog.Lifetime{Introduced: "v0.3.0"}, "H"),
			},
		},
		"Rule3OneOfTwo": {
			reason: "one successor with every hook is enough",
			versions: []lifetime{
				versionOf("v1alpha1", life("v0.1.0", "v0.2.0", ""), "H", "I"),
				versionOf("v1beta1", first, "H"),
				versionOf("v1", first, "H", "I", "J"),
			},
		},
		"Rule3NoneOfTwo": {
			reason: "two that have every hook between them are not",
			versions: []lifetime{
				versionOf("v1alpha1", life("v0.1.0", "v0.2.0", ""), "H", "I"),
				versionOf("v1beta1", first, "H"),
				versionOf("v1", first, "I"),
			},
			want: "version g.example/v1alpha1: rule #3: deprecated in v0.2.0, but in that release, no newer version " +
				"of at least the same stability had the hook H",
		},
		"Rule3SameTrack": {
			reason: "a beta replaces a beta, and a GA version a GA version",
			versions: []lifetime{
				versionOf("v1beta1", life("v0.1.0", "v0.2.0", ""), "H"),
				versionOf("v1beta2", first, "H"),
				versionOf("v1", life("v0.2.0", "v0.3.0", ""), "H"),
				versionOf("v2", first, "H"),
			},
		},
		"Rule4BetaAtBoth": {
			reason:   "two releases and six months, to the day",
			releases: [][2]string{{"v0.1.0", "2026-01-01"}, {"v0.2.0", "2026-02-01"}, {"v0.3.0", "2026-07-01"}},
			versions: []lifetime{versionOf("v1beta1", life("v0.1.0", "v0.1.0", "v0.3.0")), versionOf("v1", first, "H")},
		},
		"Rule4GAAtBoth": {
			reason: "three releases and twelve months, to the day",
			releases: [][2]string{
				{"v0.1.0", "2026-01-01"},
				{"v0.2.0", "2026-02-01"},
				{"v0.3.0", "2026-03-01"},
				{"v0.4.0", "2027-01-01"},
			},
			versions: []lifetime{versionOf("v1", life("v0.1.0", "v0.1.0", "v0.4.0")), versionOf("v2", first, "H")},
		},
		"Rule4GAOneDayShort": {
			reason: "three releases and twelve months less a day",
			releases: [][2]string{
				{"v0.1.0", "2026-01-01"},
				{"v0.2.0", "2026-02-01"},
				{"v0.3.0", "2026-03-01"},
				{"v0.4.0", "2026-12-31"},
			},
			versions: []lifetime{versionOf("v1", life("v0.1.0", "v0.1.0", "v0.4.0")), versionOf("v2", first, "H")},
			want: "version g.example/v1: rule #4: GA must stay for 12 months after its deprecation in " +
				"v0.1.0, until 2027-01-01, but v0.4.0 removes it before that date",
		},
		"Rule4MajorIsARelease": {
			reason: "v1.0.0 is the release after v0.9.0, and v1.0.1 is none",
			releases: [][2]string{
				{"v0.9.0", "2026-01-01"},
				{"v1.0.0", "2026-02-01"},
				{"v1.0.1", "2026-03-01"},
				{"v1.1.0", "2026-07-01"},
			},
			versions: []lifetime{
				versionOf("v1beta1", life("v0.9.0", "v0.9.0", "v1.1.0")),
				versionOf("v1", catalog.Lifetime{Introduced: "v0.9.0"}, "H"),
			},
		},
		"Rule4SameMinorOfAnotherMajor": {
			reason:   "v1.1.0 is not a patch of v0.1.0",
			releases: [][2]string{{"v0.1.0", "2026-01-01"}, {"v1.1.0", "2026-03-01"}, {"v2.1.0", "2026-07-01"}},
			versions: []lifetime{versionOf("v1beta1", life("v0.1.0", "v0.1.0", "v2.1.0")), versionOf("v1", first, "H")},
		},
		"Rule4ReleaseToComeInTime": {
			reason:   "a release without a date comes out today, which is not too early",
			versions: []lifetime{versionOf("v1", life("v0.1.0", "v0.3.0", "v0.7.0")), versionOf("v2", first, "H")},
		},
		"UnknownDeprecation": {
			reason:   "each of the three is looked up",
			versions: []lifetime{versionOf("v1alpha1", life("v0.1.0", "v0.9.0", ""), "H"), versionOf("v1", first, "H")},
			want:     "version g.example/v1alpha1: deprecated in v0.9.0, which is not in the table of releases",
		},
		"UnknownRemoval": {
			reason: "each of the three is looked up",
			versions: []lifetime{
				versionOf("v1alpha1", life("v0.1.0", "v0.2.0", "v0.9.0")),
				versionOf("v1", first, "H"),
			},
			want: "version g.example/v1alpha1: removed in v0.9.0, which is not in the table of releases",
		},
		"SameDay": {
			reason:   "two releases may come out on one day",
			releases: [][2]string{{"v0.1.0", "2026-01-01"}, {"v0.2.0", "2026-01-01"}},
		},
		"ReleaseTwice": {
			reason:   "but each only once",
			releases: [][2]string{{"v0.1.0", "2026-01-01"}, {"v0.1.0", "2026-02-01"}},
			want:     "release v0.1.0: comes after v0.1.0 in the table, but is not newer",
		},
		"ToComeBeforeTheLast": {
			reason:   "a release to come is not older than the last one",
			releases: [][2]string{{"v0.1.0", "2027-07-02"}, {"v0.2.0", ""}},
			want:     "release v0.2.0: comes after v0.1.0 in the table, but is not newer",
		},
		"Everything": {
			reason:   "every fault is reported",
			releases: [][2]string{{"v0.1.0", "2026-01-01"}, {"second", ""}},
			versions: []lifetime{
				versionOf("v1", catalog.Lifetime{}, "H"),
				versionOf("v2", catalog.Lifetime{Introduced: "v0.2.0"}, "H"),
			},
			want: "release \"second\": is not of the form v1.2.3\nversion g.example/v1: was never introduced\n" +
				"version g.example/v2: introduced in v0.2.0, which is not in the table of releases",
		},
		"Rule3AnotherCandidate": {
			reason: "one that came too late, one of another group and one that was deprecated do not hide the one that counts",
			versions: []lifetime{
				versionOf("v1alpha1", life("v0.1.0", "v0.2.0", ""), "H"),
				versionOf("v2", catalog.Lifetime{Introduced: "v0.3.0"}, "H"),
				{Lifetime: first, group: "other.example", name: "v3", hooks: []string{"H"}},
				versionOf("v1beta1", life("v0.1.0", "v0.2.0", ""), "H"),
				versionOf("v1", first, "H"),
			},
		},
		"Rule3AnotherGroupWithTheHook": {
			reason: "a newer version with the hook in another group is no replacement",
			versions: []lifetime{
				versionOf("v1alpha1", life("v0.1.0", "v0.2.0", ""), "H"),
				{Lifetime: first, group: "other.example", name: "v1", hooks: []string{"H"}},
			},
			want: "version g.example/v1alpha1: rule #3",
		},
		"Rule4ReleasesFromTheDeprecation": {
			reason:   "releases before the deprecation do not count",
			releases: [][2]string{{"v0.1.0", "2024-01-01"}, {"v0.2.0", "2025-01-01"}, {"v0.3.0", "2026-01-01"}},
			versions: []lifetime{versionOf("v1beta1", life("v0.1.0", "v0.2.0", "v0.3.0")), versionOf("v1", first, "H")},
			want: "version g.example/v1beta1: rule #4: beta must stay for 2 releases after its deprecation in v0.2.0, " +
				"but v0.3.0 removes it after only 1",
		},
		"FaultyReleases": {
			reason: "a faulty release does not hide the next one",
			releases: [][2]string{
				{"first", "2026-01-01"}, {"v0.2.0", "January"}, {"v0.3.0", ""}, {"v0.4.0", "2026-01-01"},
				{"v0.3.1", "2026-02-01"},
			},
			want: "release \"first\": is not of the form v1.2.3\n" +
				"release v0.2.0: date \"January\" is not of the form 2006-01-02\n" +
				"release v0.3.0: no date; only the last release may lack one\n" +
				"release v0.3.1: comes after v0.4.0 in the table, but is not newer",
		},
		"NotIntroduced": {
			reason:   "everything was released once",
			versions: []lifetime{versionOf("v1alpha1", catalog.Lifetime{}, "H")},
			want:     "version g.example/v1alpha1: was never introduced",
		},
		"RemovedWithoutWarning": {
			reason:   "nothing goes without a deprecation",
			versions: []lifetime{versionOf("v1alpha1", life("v0.1.0", "", "v0.2.0")), versionOf("v1", first, "H")},
			want:     "version g.example/v1alpha1: removed in v0.2.0 without having been deprecated",
		},
		"DeprecatedTooEarly": {
			reason:   "a version is there before it is deprecated",
			versions: []lifetime{versionOf("v1alpha1", life("v0.2.0", "v0.1.0", ""), "H"), versionOf("v1", first, "H")},
			want:     "version g.example/v1alpha1: deprecated in v0.1.0, before it was introduced in v0.2.0",
		},
		"RemovedTooEarly": {
			reason: "a version is deprecated before it is removed",
			versions: []lifetime{
				versionOf("v1alpha1", life("v0.1.0", "v0.3.0", "v0.2.0")),
				versionOf("v1", first, "H"),
			},
			want: "version g.example/v1alpha1: removed in v0.2.0, but deprecated only later, in v0.3.0",
		},
		"UnknownRelease": {
			reason:   "a typing mistake is no release",
			versions: []lifetime{versionOf("v1alpha1", catalog.Lifetime{Introduced: "v0.1"}, "H")},
			want:     "version g.example/v1alpha1: introduced in v0.1, which is not in the table of releases",
		},
		"ReleasesOutOfOrder": {
			reason:   "releases are counted, so their order matters",
			releases: [][2]string{{"v0.2.0", "2026-01-01"}, {"v0.1.0", "2026-02-01"}},
			want:     "release v0.1.0: comes after v0.2.0 in the table, but is not newer",
		},
		"DatesOutOfOrder": {
			reason:   "a later release has no earlier date",
			releases: [][2]string{{"v0.1.0", "2026-02-01"}, {"v0.2.0", "2026-01-01"}},
			want:     "release v0.2.0: comes after v0.1.0 in the table, but is not newer",
		},
		"DateMissing": {
			reason:   "only the last release is to come",
			releases: [][2]string{{"v0.1.0", ""}, {"v0.2.0", "2026-01-01"}},
			want:     "release v0.1.0: no date; only the last release may lack one",
		},
		"NoDate": {
			reason:   "a date that cannot be read",
			releases: [][2]string{{"v0.1.0", "January"}},
			want:     `release v0.1.0: date "January" is not of the form 2006-01-02`,
		},
		"NoVersion": {
			reason:   "a version that cannot be read",
			releases: [][2]string{{"first", "2026-01-01"}},
			want:     `release "first": is not of the form v1.2.3`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			table := tc.releases
			if table == nil {
				table = quarterly
			}
			var releases []catalog.Release
			for _, r := range table {
				releases = append(releases, catalog.Release{Version: r[0], Date: r[1]})
			}
			err := checkLifetimes(releases, tc.versions, time.Date(2027, 7, 1, 0, 0, 0, 0, time.UTC))
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("%s: got %v", tc.reason, err)
			case tc.want != "" && (err == nil || !strings.HasPrefix(err.Error(), tc.want)):
				t.Errorf("%s:\n got %v\nwant %s", tc.reason, err, tc.want)
			}
		})
	}
}
