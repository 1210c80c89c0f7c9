// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package directory

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/status"
	"github.com/hookgate/hookgate/registry"
	"github.com/hookgate/hookgate/test/process"
)

// rolloutOf is the manifest of the ExtensionRollout acme of v6 and v7, with more in its spec.
func rolloutOf(more string) string {
	return "apiVersion: hookgate.dev/v1alpha1\nkind: ExtensionRollout\nmetadata: {name: acme}\nspec: {stable: v6, candidate: v7" + more + "}\n"
}

// newRollout returns a source of a directory with v6, v7 and the rollout of both, whose records are in kept.
func newRollout(t *testing.T, kept, more string) *source {
	t.Helper()
	s := newStateSource(t, kept)
	s.Extensions.Serve(urlA, "patch")
	s.Extensions.Serve(urlB, "patch")
	writeFile(t, s.dir, "v6.yaml", config("v6", urlA))
	writeFile(t, s.dir, "v7.yaml", config("v7", urlB))
	writeFile(t, s.dir, "acme.yaml", rolloutOf(more))
	return s
}

// eventuallyAnswers waits until stable or the candidate answers for a Cluster, or nothing does.
func (s *source) eventuallyAnswers(t *testing.T, cluster, want string) {
	t.Helper()
	process.Eventually(t, want+" answers for "+cluster, func() bool {
		of, ok := s.Registry.Snapshot().Rollout("acme")
		if !ok {
			return want == ""
		}
		isCandidate, err := of.Assignment.Candidate(t.Context(), "ns", cluster)
		return want == "" && hook.KindOf(err) == hook.NotReady || err == nil && want == map[bool]string{true: "v7", false: "v6"}[isCandidate]
	})
}

// compares makes a call about a Cluster, which is compared with this result, until it is.
func (s *source) compares(t *testing.T, cluster string, with registry.Compared) {
	t.Helper()
	with.Question, with.Content = "GeneratePatches/1", "1"
	process.Eventually(t, "a call was compared", func() bool {
		of, ok := s.Registry.Snapshot().Rollout("acme")
		if !ok {
			return false
		}
		done := make(chan struct{})
		var once sync.Once // the candidate is asked several times
		asked := false
		of.Assignment.Compare(registry.Comparison{
			Namespace: "ns", Cluster: cluster, Handler: "patch", Bytes: 1,
			Ask: func(string) func(context.Context) registry.Compared {
				asked = true
				return func(context.Context) registry.Compared { once.Do(func() { close(done) }); return with }
			},
		})
		if asked {
			<-done
		}
		return asked
	})
}

// Records of a directory survive a restart, and a Cluster whose record is deleted is back.
func TestRolloutOfADirectory(t *testing.T) {
	kept := filepath.Join(t.TempDir(), "state")
	s := newRollout(t, kept, ", candidateFor: {}")
	stop := s.start(t)
	s.eventuallyServes(t, "patch.v6 "+urlA, "patch.v7 "+urlB)
	var names []string
	for _, e := range s.Registry.Snapshot().Handlers(s.Registry.Snapshot().All()[0].Handler.Hook.GroupHook()) {
		names = append(names, e.Name)
	}
	if !slices.Equal(names, []string{"patch.acme"}) {
		t.Errorf("callers see %q", names)
	}
	for range 2 {
		s.compares(t, "c1", registry.Compared{})
	}
	s.eventuallyAnswers(t, "c1", "v7")
	s.compares(t, "c2", registry.Compared{Differences: []registry.Difference{{Path: "/x", Stable: "1", Candidate: "2"}}})
	process.Eventually(t, "the difference is listed", func() bool {
		all := s.objects().Rollouts
		return len(all) == 1 && all[0].Ready && all[0].Moved == 1 && all[0].Different == 1 &&
			slices.ContainsFunc(all[0].Clusters, func(c status.RolloutCluster) bool { return c.Cluster == "c2" && c.Differences[0].Path == "/x" })
	})
	stop()

	s = newRollout(t, kept, "") // nobody may move any more
	s.start(t)()
	s = newRollout(t, kept, "")
	s.directory.reread = s.directory.maxDebounce
	defer s.start(t)()
	s.eventuallyAnswers(t, "c1", "v7")
	s.eventuallyAnswers(t, "c2", "v6")
	away := kept + ".away"
	if err := os.Rename(filepath.Join(kept, RecordsDir), away); err != nil {
		t.Fatal(err)
	}
	s.eventuallyLogs(t, "record of an ExtensionRollout cannot be read", "no such file or directory")
	s.eventuallyAnswers(t, "c1", "v7") // it may be a mount that comes back
	if err := os.Rename(away, filepath.Join(kept, RecordsDir)); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(kept, RecordsDir, "acme.*.json"))
	if err != nil || len(files) != 2 {
		t.Fatalf("records: %q, %v", files, err)
	}
	for _, file := range files {
		info, err := os.Stat(file)
		if err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", file, info, err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), string(v1alpha1.RolloutStateMoved)) {
			if err := os.Remove(file); err != nil {
				t.Fatal(err)
			}
		}
	}
	s.eventuallyAnswers(t, "c1", "v6")
}

// A record that cannot be read may be of a Cluster that has moved.
func TestRolloutWaitsForItsRecords(t *testing.T) {
	kept := filepath.Join(t.TempDir(), "state")
	s := newRollout(t, kept, "")
	if err := os.Mkdir(filepath.Join(kept, RecordsDir), 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(kept, RecordsDir), "acme.0.json", "{")
	s.directory.reread = s.directory.maxDebounce
	defer s.start(t)()
	s.eventuallyServes(t, "patch.v6 "+urlA, "patch.v7 "+urlB)
	s.eventuallyLogs(t, "record of an ExtensionRollout cannot be read", "file=acme.0.json", "delete it to move its Cluster back")
	s.eventuallyAnswers(t, "c1", "")
	if err := os.Remove(filepath.Join(kept, RecordsDir, "acme.0.json")); err != nil {
		t.Fatal(err)
	}
	s.eventuallyAnswers(t, "c1", "v6")
}

// Without a place for its records, a rollout is refused, and calls do not go on as if there were none.
func TestRolloutWithoutState(t *testing.T) {
	s := newSource(t, nil)
	s.Extensions.Serve(urlA, "patch")
	writeFile(t, s.dir, "v6.yaml", config("v6", urlA))
	writeFile(t, s.dir, "acme.yaml", rolloutOf(""))
	s.run(t)
	s.eventuallyLogs(t, "manifest is wrong", "acme.yaml:1", "needs --state-dir", "calls of its members fail")
	s.eventuallyCloses(t, "nobody knows who has moved", `ExtensionRollout "acme": acme v6 v7`)
}
