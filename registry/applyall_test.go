// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package registry

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/hook"
)

// What ApplyAll makes of registrations is what Apply makes of them one after the other, also if some replace others of
// the same call, are refused, or move handlers to other hooks.
func TestApplyAllIsApplyOneAfterTheOther(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	hooks := []string{"BeforeClusterCreate", "BeforeClusterDelete", "GeneratePatches"}
	one, all := New(), New()
	for round := range 200 {
		var regs []Registration
		for range random.IntN(6) {
			// "a--b" has labels with a hash, and "A" is refused.
			reg := registration([]string{"a", "a-b", "a--b", "b", "c", "A"}[random.IntN(6)])
			for _, name := range []string{"v", "v-w", "v--w", "w"} {
				if random.IntN(2) == 0 {
					reg.Handlers = append(reg.Handlers, registration("x", name).Handlers[0])
					reg.Handlers[len(reg.Handlers)-1].Hook = gvh(hooks[random.IntN(3)])
				}
			}
			regs = append(regs, reg)
		}
		var want []error
		for _, reg := range regs {
			want = append(want, one.Apply(reg))
		}
		if diff := cmp.Diff(texts(want), texts(all.ApplyAll(regs))); diff != "" {
			t.Fatalf("round %d: errors -want +got\n%s", round, diff)
		}
		if gone := []string{"a", "a--b", "c"}[random.IntN(3)]; round%3 == 0 {
			one.Remove(gone)
			all.Remove(gone)
		}
		if diff := cmp.Diff(describe(one.Snapshot()), describe(all.Snapshot())); diff != "" {
			t.Fatalf("round %d: snapshot -want +got\n%s", round, diff)
		}
	}
}

func texts(errs []error) []string {
	var texts []string
	for _, err := range errs {
		texts = append(texts, fmt.Sprint(err))
	}
	return texts
}

// describe returns all that lookups in a snapshot say, in lines.
func describe(s *Snapshot) []string {
	var lines []string
	for _, reg := range s.Registrations() {
		lines = append(lines, "registration "+reg.Name)
	}
	for _, e := range s.All() {
		byLabel, ok := s.Handler(e.Label)
		lines = append(lines, fmt.Sprintf("handler %s %s %t %t", e.Name, e.Handler.Hook.Hook, ok, byLabel == e))
	}
	for gh, entries := range s.byHook {
		lines = append(lines, fmt.Sprintf("hook %s %v", gh.Hook, names(entries)))
	}
	lines = append(lines, fmt.Sprintf("%d labels with a hash", len(s.byHashedLabel)))
	slices.Sort(lines)
	return lines
}

func TestApplyAllIsVisibleAtOnce(t *testing.T) {
	r := New()
	mustApply(t, r, registration("x", "a"))
	before := r.Snapshot()
	bad := registration("bad", "a")
	bad.Handlers[0].Timeout = time.Hour
	errs := r.ApplyAll([]Registration{registration("z", "a"), bad, registration("y", "a"), registration("y", "b")})
	if errs[0] != nil || errs[2] != nil || errs[3] != nil || errs[1] == nil || !strings.Contains(errs[1].Error(), `"bad"`) {
		t.Errorf("got the errors %v", errs)
	}
	after := r.Snapshot()
	if after.Generation() != before.Generation()+1 {
		t.Errorf("generation %d follows %d", after.Generation(), before.Generation())
	}
	if diff := cmp.Diff([]string{"a.x", "a.z", "b.y"}, names(after.All())); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if diff := cmp.Diff([]string{"a.x"}, names(before.All())); diff != "" {
		t.Errorf("the snapshot before: -want +got\n%s", diff)
	}
	if len(r.ApplyAll(nil)) != 0 || r.Snapshot() != after {
		t.Error("applying nothing changed the snapshot")
	}
	if errs := r.ApplyAll([]Registration{bad}); errs[0] == nil || r.Snapshot() != after {
		t.Error("a refused registration changed the snapshot")
	}
}

func TestRemoveAllIsVisibleAtOnce(t *testing.T) {
	r := New()
	for _, name := range []string{"x", "y", "y--z", "z"} {
		mustApply(t, r, registration(name, "a"))
	}
	before := r.Snapshot()
	r.RemoveAll([]string{"x", "unknown", "y--z", "x"})
	after := r.Snapshot()
	if after.Generation() != before.Generation()+1 {
		t.Errorf("generation %d follows %d", after.Generation(), before.Generation())
	}
	if diff := cmp.Diff([]string{"a.y", "a.z"}, names(after.All())); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if _, ok := after.Handler(Label("a.y--z")); ok {
		t.Error("the label of a removed handler is still known")
	}
	if len(before.All()) != 4 {
		t.Errorf("the snapshot before has %v", names(before.All()))
	}
	if r.RemoveAll([]string{"unknown"}); r.Snapshot() != after {
		t.Error("the removal of what does not exist changed the snapshot")
	}
}

func TestApplyAllRefusesASecondSoleExtension(t *testing.T) {
	r := NewSidecar()
	errs := r.ApplyAll([]Registration{registration("one", "v"), registration("two", "w"), registration("one", "x")})
	want := `ExtensionConfig "two": the gateway answers only for "one"`
	if errs[0] != nil || errs[2] != nil || errs[1] == nil || errs[1].Error() != want {
		t.Errorf("got the errors %v, want the second to be %s", errs, want)
	}
	gh := hook.GroupHook{Group: hook.Group, Hook: "BeforeClusterCreate"}
	if got := names(r.Snapshot().Handlers(gh)); !slices.Equal(got, []string{"x"}) {
		t.Errorf("serves %v", got)
	}
}
