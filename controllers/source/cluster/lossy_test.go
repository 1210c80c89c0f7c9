// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"fmt"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/convert"
)

func TestLossyMessage(t *testing.T) {
	const intro = "Conversions could not express these members and left them out, by handler and the version that it understands: "
	both := map[string]string{"a": "v1beta1", "b": "v1beta2"}
	cases := map[string]struct {
		reason   string
		before   string
		versions map[string]string
		recorded map[string][]string
		want     string
	}{
		"Nothing":  {"There is no condition without something to say.", "", both, nil, ""},
		"Recorded": {"By handler, and in order.", "", both, map[string][]string{"b": {"machine.x"}, "a": {"cluster.y", "cluster.x"}}, "a (v1beta1) cluster.x, cluster.y; b (v1beta2) machine.x"},
		"Stays":    {"What was seen before a restart stays.", "a (v1beta1) cluster.x, cluster.y; b (v1beta2) machine.x", both, nil, "a (v1beta1) cluster.x, cluster.y; b (v1beta2) machine.x"},
		"Merged": {
			"Whoever sees more adds it.", "a (v1beta1) cluster.a, cluster.c", both, map[string][]string{"a": {"cluster.b", "cluster.c"}, "b": {"machine.x"}},
			"a (v1beta1) cluster.a, cluster.b, cluster.c; b (v1beta2) machine.x",
		},
		"OtherVersion": {"It was lost on the way to another version.", "a (v1beta1) cluster.a; b (v1beta1) cluster.b", both, map[string][]string{"b": {"machine.x"}}, "a (v1beta1) cluster.a; b (v1beta2) machine.x"},
		"HandlerGone":  {"Nobody can lose anything in calls to it.", "a (v1beta1) cluster.a; c (v1beta1) cluster.c", both, map[string][]string{"d": {"cluster.d"}}, "a (v1beta1) cluster.a"},
		"LastOneGone":  {"As above.", "c (v1beta1) cluster.c", both, nil, ""},
		"OtherText":    {"Somebody else has written it.", "what?", both, map[string][]string{"a": {"cluster.x"}}, "a (v1beta1) cluster.x"},
		"OddNames": {
			"Members that no type knows may have any name, and must come back as they went.", "", both, map[string][]string{"a": {"cluster.spec.a, b; (c) and 3 more"}},
			"a (v1beta1) cluster.spec.a__b___c__and_3_more",
		},
		"TooMany":   {"The rest is counted.", "", both, map[string][]string{"a": paths(20)}, "a (v1beta1) " + strings.Join(paths(16), ", ") + " and 4 more"},
		"StillMany": {"After a restart, what was counted counts.", "a (v1beta1) " + strings.Join(paths(16), ", ") + " and 4 more", both, map[string][]string{"a": paths(20)[17:18]}, "a (v1beta1) " + strings.Join(paths(16), ", ") + " and 4 more"},
		"HookVersion": {
			"Versions of hooks are converted, too.", "a (v1beta1,hooks.test.hookgate.dev/v1) node.a", map[string]string{"a": "v1beta1,hooks.test.hookgate.dev/v1", "b": "hooks.test.hookgate.dev/v1"},
			map[string][]string{"b": {"node.b"}}, "a (v1beta1,hooks.test.hookgate.dev/v1) node.a; b (hooks.test.hookgate.dev/v1) node.b",
		},
		"NotRecorded": {"What was not remembered is at least one.", "", both, map[string][]string{"a": {convert.MorePaths, "cluster.x"}}, "a (v1beta1) cluster.x and 1 more"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			before, want := tc.before, tc.want
			if before != "" && before != "what?" {
				before = intro + before
			}
			if want != "" {
				want = intro + want
			}
			got := lossyMessage(before, tc.versions, tc.recorded)
			if got != want {
				t.Errorf("%s\ngot  %s\nwant %s", tc.reason, got, want)
			}
			if again := lossyMessage(got, tc.versions, tc.recorded); again != got {
				t.Errorf("%s\nit does not settle: %s", tc.reason, again)
			}
			if restarted := lossyMessage(got, tc.versions, nil); restarted != got {
				t.Errorf("%s\nafter a restart: %s", tc.reason, restarted)
			}
		})
	}
}

// The API server refuses a message that is too long, and then nothing of the status is written.
func TestLossyMessageIsBounded(t *testing.T) {
	versions, recorded := map[string]string{}, map[string][]string{}
	for i := range 100 {
		handler := fmt.Sprintf("%s-%03d", strings.Repeat("h", 59), i)
		versions[handler] = "v1beta1"
		for _, path := range paths(100) {
			recorded[handler] = append(recorded[handler], path+strings.Repeat("ä", 200))
		}
	}
	message := lossyMessage("", versions, recorded)
	if len(message) > 32<<10 {
		t.Errorf("the message has %d bytes", len(message))
	}
	if !strings.HasSuffix(message, "; and 92 more handlers") || !strings.Contains(message, " and 84 more; ") {
		t.Errorf("the message does not say how much more there is: %s", message)
	}
	for name, seen := range map[string]map[string][]string{"nothing": nil, "the same": recorded, "some": {strings.Repeat("h", 59) + "-090": paths(3)}} {
		if again := lossyMessage(message, versions, seen); again != message {
			t.Errorf("a process that has seen %s says something else: %s", name, again)
		}
	}
}

func paths(n int) []string {
	var list []string
	for i := range n {
		list = append(list, fmt.Sprintf("cluster.p%03d", i))
	}
	return list
}
