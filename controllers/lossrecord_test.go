// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/internal/contract/convert"
)

const lossyText = "Conversions could not express these members and left them out, by handler and the version that it understands: "

// reread returns a record as the next replica reads it.
func reread(t testing.TB, l lossRecord) lossRecord {
	t.Helper()
	config := &runtimev1.ExtensionConfig{}
	if value := l.format(); value != "" {
		config.Annotations = map[string]string{lossesAnnotation: value}
	}
	read, err := readLosses(config)
	if err != nil {
		t.Errorf("what was written cannot be read: %v", err)
	}
	return read
}

func TestLossesMerge(t *testing.T) {
	both := map[string]string{"a": "v1beta1", "b": "v1beta2"}
	of := func(handlers map[string]handlerLosses) lossRecord {
		return lossRecord{Generation: 4, Handlers: handlers}
	}
	a := func(version string, paths ...string) map[string]handlerLosses {
		return map[string]handlerLosses{"a": {Version: version, Paths: paths}}
	}
	two := of(
		map[string]handlerLosses{
			"a": {Version: "v1beta1", Paths: []string{"cluster.x", "cluster.y"}},
			"b": {Version: "v1beta2", Paths: []string{"machine.x"}},
		},
	)
	for name, tc := range map[string]struct {
		reason   string
		before   lossRecord
		versions map[string]string
		recorded map[string][]string
		want     string // the message
	}{
		"nothing":         {"there is no condition without something to say", lossRecord{}, both, nil, ""},
		"recorded":        {"by handler, and in order", lossRecord{}, both, map[string][]string{"b": {"machine.x"}, "a": {"cluster.y", "cluster.x"}}, "a (v1beta1) cluster.x, cluster.y; b (v1beta2) machine.x"},
		"stays":           {"what was seen before a restart stays", two, both, nil, "a (v1beta1) cluster.x, cluster.y; b (v1beta2) machine.x"},
		"merged":          {"each replica adds what it sees", of(a("v1beta1", "cluster.a", "cluster.c")), both, map[string][]string{"a": {"cluster.b", "cluster.c"}, "b": {"machine.x"}}, "a (v1beta1) cluster.a, cluster.b, cluster.c; b (v1beta2) machine.x"},
		"other version":   {"it was lost on the way to another version", two, map[string]string{"a": "v1beta1", "b": "v1beta1"}, map[string][]string{"b": {"machine.y"}}, "a (v1beta1) cluster.x, cluster.y; b (v1beta1) machine.y"},
		"handler gone":    {"no call to it can lose anything", two, map[string]string{"b": "v1beta2"}, map[string][]string{"d": {"cluster.d"}}, "b (v1beta2) machine.x"},
		"last one gone":   {"as above", of(a("v1beta1", "cluster.a")), map[string]string{"b": "v1beta2"}, nil, ""},
		"generation":      {"it was lost by another registration", lossRecord{Generation: 3, Handlers: a("v1beta1", "cluster.a")}, both, map[string][]string{"a": {"cluster.b"}}, "a (v1beta1) cluster.b"},
		"odd names":       {"members that no type knows may have any name", lossRecord{}, both, map[string][]string{"a": {"cluster.spec.a, b; (c) and 3\x1b more"}}, "a (v1beta1) cluster.spec.a__b___c__and_3__more"},
		"not UTF-8":       {"JSON cannot hold it", lossRecord{}, both, map[string][]string{"a": {"cluster.\xff"}}, "a (v1beta1) cluster.\ufffd"},
		"markup":          {"it stays as it is", lossRecord{}, both, map[string][]string{"a": {`cluster.<&>"`}}, `a (v1beta1) cluster.<&>"`},
		"as many as kept": {"there is no more", lossRecord{}, both, map[string][]string{"a": paths(maxLostPaths)}, "a (v1beta1) " + strings.Join(paths(16), ", ")},
		"one too many":    {"the rest is counted", lossRecord{}, both, map[string][]string{"a": paths(maxLostPaths + 1)}, "a (v1beta1) " + strings.Join(paths(16), ", ") + " and 1 more"},
		"still many": {
			"what was counted before a restart counts", of(map[string]handlerLosses{"a": {Version: "v1beta1", Paths: paths(16), More: 4}}), both,
			map[string][]string{"a": paths(20)[17:18]},
			"a (v1beta1) " + strings.Join(paths(16), ", ") + " and 4 more",
		},
		"not remembered": {"what convert.Losses has no room for is at least one", lossRecord{}, both, map[string][]string{"a": {convert.MorePaths, "cluster.x"}}, "a (v1beta1) cluster.x and 1 more"},
		"hook version": {
			"versions of hooks are converted, too", of(a("v1beta1,hooks.test.hookgate.dev/v1", "node.a")),
			map[string]string{"a": "v1beta1,hooks.test.hookgate.dev/v1", "b": "hooks.test.hookgate.dev/v1"},
			map[string][]string{"b": {"node.b"}},
			"a (v1beta1,hooks.test.hookgate.dev/v1) node.a; b (hooks.test.hookgate.dev/v1) node.b",
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := reread(t, tc.before)
			got := tc.before.merge(4, tc.versions, tc.recorded)
			if message := strings.TrimPrefix(got.message(), lossyText); message != tc.want {
				t.Errorf("%s\ngot  %s\nwant %s", tc.reason, message, tc.want)
			}
			if diff := cmp.Diff(before, reread(t, tc.before)); diff != "" {
				t.Errorf("merging has changed what was merged:\n%s", diff)
			}
			for name, seen := range map[string]map[string][]string{"the same": tc.recorded, "nothing": nil} {
				again := reread(t, got).merge(4, tc.versions, seen)
				if diff := cmp.Diff(got.format(), again.format()); diff != "" {
					t.Errorf("%s: a replica that has seen %s writes something else:\n%s", tc.reason, name, diff)
				}
			}
		})
	}
}

// The API server refuses a message that is too long, and then nothing of the status is written.
func TestLossesAreBounded(t *testing.T) {
	versions, recorded := map[string]string{}, map[string][]string{}
	name := func(i int) string { return fmt.Sprintf("%s-%03d", strings.Repeat("h", 59), i) }
	for i := range 100 {
		versions[name(i)] = "v1beta1"
		for _, path := range paths(100) {
			recorded[name(i)] = append(recorded[name(i)], path+strings.Repeat("ä", 200))
		}
	}
	l := lossRecord{}.merge(1, versions, recorded)
	for what, text := range map[string]string{"message": l.message(), "annotation": l.format()} {
		if len(text) > 32<<10 {
			t.Errorf("the %s has %d bytes", what, len(text))
		}
	}
	if message := l.message(); !strings.HasSuffix(message, "; and 92 more handlers") ||
		!strings.Contains(message, " and 84 more; ") {
		t.Errorf("the message does not say how much more there is: %s", message)
	}
	for what, seen := range map[string]map[string][]string{"nothing": nil, "the same": recorded, "some": {name(90): paths(3)}} {
		if again := reread(t, l).merge(1, versions, seen); again.format() != l.format() {
			t.Errorf("a process that has seen %s says something else: %s", what, again.format())
		}
	}
	eight := map[string][]string{}
	for i := range maxListed {
		eight[name(i)] = paths(1)
	}
	exact := lossRecord{}.merge(1, versions, eight)
	if len(exact.Handlers) != maxListed || exact.More != 0 {
		t.Errorf("of %d handlers, it has %d and %d more", maxListed, len(exact.Handlers), exact.More)
	}
	eight[name(maxListed)] = paths(1)
	if more := exact.merge(1, versions, eight); len(more.Handlers) != maxListed || more.More != 1 {
		t.Errorf("of %d handlers, it has %d and %d more", maxListed+1, len(more.Handlers), more.More)
	}
}

func TestReadLossesIgnoresWhatIsWrong(t *testing.T) {
	long := strings.Repeat("x", maxLostPath)
	list := func(n int) string {
		return fmt.Sprintf(`{"generation":1,"handlers":{"a":{"version":"v1","paths":["%s"]}}}`, strings.Join(paths(n), `","`))
	}
	handlers := func(n int) string {
		var all []string
		for i := range n {
			all = append(all, fmt.Sprintf(`"h%d":{"version":"v1","paths":["p"]}`, i))
		}
		return `{"generation":1,"handlers":{` + strings.Join(all, ",") + `}}`
	}
	for name, tc := range map[string]struct {
		text, want string // part of the error; empty for none
	}{
		"not JSON":         {"garbage", "invalid character"},
		"no object":        {`["a"]`, "cannot unmarshal"},
		"no version":       {`{"handlers":{"a":{"paths":["p"]}}}`, `handler "a" must have a version`},
		"no paths":         {`{"handlers":{"a":{"version":"v1"}}}`, `1 to 16 paths`},
		"negative":         {`{"handlers":{"a":{"version":"v1","paths":["p"],"more":-1}}}`, `"more" must not be negative`},
		"negative in all":  {`{"more":-1}`, `"more" must not be negative`},
		"not sorted":       {`{"handlers":{"a":{"version":"v1","paths":["q","p"]}}}`, "must be sorted"},
		"separator":        {`{"handlers":{"a":{"version":"v1","paths":["p, q"]}}}`, "a character that separates paths"},
		"longest path":     {`{"handlers":{"a":{"version":"v1","paths":["` + long + `"]}}}`, ""},
		"path too long":    {`{"handlers":{"a":{"version":"v1","paths":["` + long + `x"]}}}`, "too long"},
		"most paths":       {list(maxLostPaths), ""},
		"too many":         {list(maxLostPaths + 1), "1 to 16 paths"},
		"most handlers":    {handlers(maxListed), ""},
		"too many of them": {handlers(maxListed + 1), "must have at most 8 handlers"},
		"of a newer":       {`{"generation":1,"new":1,"handlers":{"a":{"version":"v1","paths":["p"],"new":1}}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			config := &runtimev1.ExtensionConfig{}
			config.Annotations = map[string]string{lossesAnnotation: tc.text}
			l, err := readLosses(config)
			if tc.want == "" {
				if err != nil || len(l.Handlers) == 0 {
					t.Errorf("got %v, %v", l, err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tc.want) ||
				!strings.HasPrefix(err.Error(), "metadata.annotations[runtime.hookgate.dev/conversion-losses]: Invalid value: ") {
				t.Errorf("error is %v, want %s", err, tc.want)
			}
			if len(l.Handlers) > 0 || l.More != 0 {
				t.Errorf("got %v with an error", l)
			}
		})
	}
}

func paths(n int) []string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("cluster.p%03d", i))
	}
	return list
}
