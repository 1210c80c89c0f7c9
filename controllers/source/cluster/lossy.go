// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/controllers/extensionconfig"
	"github.com/hookgate/hookgate/convert"
	"github.com/hookgate/hookgate/registry"
)

// The condition of an ExtensionConfig that tells what conversions of objects could not express in calls to its handlers. It is there only
// while there is something to tell.
const (
	lossyCondition = "ConversionLossy"
	lossyReason    = "MembersLost"
)

const (
	// maxLostPaths is how many paths the condition lists for one handler, and maxLostPath how long one may be, in bytes. With maxListed
	// handlers, the message stays below 32 KiB, which is what the API has room for.
	maxLostPaths = 16
	maxLostPath  = 160
)

// The message of the condition is also where a replica reads what others have seen, or what was seen before a restart: for each handler
// its name, the version that it understands, and paths.
const lossyIntroduction = "Conversions could not express these members and left them out, by handler and the version that it understands: "

var (
	lostHandler  = regexp.MustCompile(`^(\S+) \((\S+)\) (.+?)(?: and (\d+) more)?$`)
	moreHandlers = regexp.MustCompile(`^and (\d+) more handlers$`)
	// notInPaths are the characters that separate paths in the message. Names of members that no type knows may have any.
	notInPaths = regexp.MustCompile(`[\s,;()]`)
)

// lost is what was lost in calls to one handler.
type lost struct {
	version string
	paths   []string // in order
	more    int      // how many are not in paths
}

// lossyMessage returns the message of the condition: empty if nothing was lost. What was recorded in calls of this process is merged with
// what the message before tells, as far as the handlers are still called with the same versions, which are by handler and not empty. The same
// losses give the same text, in whichever replicas and in whichever order they were seen.
//
// How many more there are than are listed is what one process has seen: it never shrinks, and may be too small.
func lossyMessage(before string, versions map[string]string, recorded map[string][]string) string {
	known, more := readLossy(before)
	var listed []string
	for _, handler := range slices.Sorted(maps.Keys(versions)) {
		l := lost{version: versions[handler]}
		if k := known[handler]; k.version == l.version {
			l = k
		}
		for _, path := range recorded[handler] {
			if path == convert.MorePaths {
				l.more = max(l.more, 1)
				continue
			}
			path = cut(notInPaths.ReplaceAllLiteralString(path, "_"), maxLostPath)
			if i, there := slices.BinarySearch(l.paths, path); !there {
				l.paths = slices.Insert(l.paths, i, path)
			}
		}
		if len(l.paths) == 0 {
			continue
		}
		if n := len(l.paths) - maxLostPaths; n > 0 {
			l.paths, l.more = l.paths[:maxLostPaths], max(l.more, n)
		}
		text := fmt.Sprintf("%s (%s) %s", handler, l.version, strings.Join(l.paths, ", "))
		if l.more > 0 {
			text += fmt.Sprintf(" and %d more", l.more)
		}
		listed = append(listed, text)
	}
	if len(listed) == 0 {
		return ""
	}
	if n := len(listed) - maxListed; n >= 0 {
		if more = max(more, n); more > 0 {
			listed = append(listed[:maxListed], fmt.Sprintf("and %d more handlers", more))
		}
	}
	return lossyIntroduction + strings.Join(listed, "; ")
}

// readLossy returns what a message says, by handler, and how many handlers there are beyond those. Of another text it knows nothing.
func readLossy(message string) (known map[string]lost, more int) {
	known = map[string]lost{}
	text, ok := strings.CutPrefix(message, lossyIntroduction)
	if !ok {
		return known, 0
	}
	for entry := range strings.SplitSeq(text, "; ") {
		if m := lostHandler.FindStringSubmatch(entry); m != nil {
			l := lost{version: m[2], paths: strings.Split(m[3], ", ")}
			l.more, _ = strconv.Atoi(cmp.Or(m[4], "0")) // a number of another size was not written here
			slices.Sort(l.paths)
			known[m[1]] = l
		} else if m := moreHandlers.FindStringSubmatch(entry); m != nil {
			more, _ = strconv.Atoi(m[1])
		}
	}
	return known, more
}

// setLossy sets the condition in desired, or takes it away. The handlers are those in its status.
func (r *reconciler) setLossy(desired *runtimev1.ExtensionConfig, handlers []registry.Handler) {
	if r.losses == nil {
		return
	}
	versions := r.understood(desired.Name, handlers)
	r.forgetOthers(desired, versions)
	before := ""
	if c := meta.FindStatusCondition(desired.Status.Conditions, lossyCondition); c != nil && c.ObservedGeneration == desired.Generation {
		before = c.Message
	}
	setWarning(desired, lossyCondition, lossyReason, lossyMessage(before, versions, r.losses.Of(desired.Name)))
}

// understood returns what the handlers are converted for, by handler: the version of objects, if anybody says it, and that of the hook, if
// it has others. Calls to handlers that are not there are never converted.
func (r *reconciler) understood(extensionConfig string, handlers []registry.Handler) map[string]string {
	versions := map[string]string{}
	for i := range handlers {
		h := &handlers[i]
		objects := r.policies.ClusterAPIVersion(extensionConfig, *h)
		several := slices.ContainsFunc(r.hooks.Hooks(), func(k *catalog.Hook) bool {
			return k.GroupHook() == h.Hook.GroupHook() && k.Version != h.Hook.Version
		})
		switch {
		case several && objects != "":
			versions[h.Name] = objects + "," + h.Hook.APIVersion()
		case several:
			versions[h.Name] = h.Hook.APIVersion()
		case objects != "":
			versions[h.Name] = objects
		}
	}
	return versions
}

// basis is what the losses of an ExtensionConfig were recorded on.
type basis struct {
	generation int64
	versions   map[string]string // by handler
}

// forgetOthers forgets what was lost in calls to an ExtensionConfig before it, or the version that a handler is called with, changed.
func (r *reconciler) forgetOthers(config *runtimev1.ExtensionConfig, versions map[string]string) {
	swapped, _ := r.bases.Swap(config.Name, basis{generation: config.Generation, versions: versions})
	before, known := swapped.(basis)
	if !known {
		return
	}
	same := before.generation == config.Generation
	for handler, version := range before.versions {
		same = same && versions[handler] == version
	}
	if !same {
		r.losses.Forget(config.Name)
	}
}

// addLosses is for a follower that has seen losses: it brings them into the condition, which is all that it writes, and returns how long to wait if
// the API server refused. Without it, they would be known where nobody looks. Whoever writes first makes the others look again.
func (r *reconciler) addLosses(ctx context.Context, config *runtimev1.ExtensionConfig) time.Duration {
	if r.losses == nil {
		return 0
	}
	handlers, _, errs := extensionconfig.LastKnownHandlers(config, r.hooks)
	if len(errs) > 0 {
		return 0
	}
	desired := config.DeepCopy()
	r.setLossy(desired, handlers) // also to forget
	if r.readOnly || len(r.losses.Of(config.Name)) == 0 {
		return 0
	}
	return r.patchStatus(ctx, config, desired, 0)
}

// news are the names of ExtensionConfigs that have something new. It is safe for concurrent use.
type news struct {
	mu    sync.Mutex
	names map[string]bool
	some  chan struct{} // holds one value if there are names
}

func newNews() *news { return &news{names: map[string]bool{}, some: make(chan struct{}, 1)} }

// tell adds a name. It does not block.
func (n *news) tell(name string) {
	n.mu.Lock()
	n.names[name] = true
	n.mu.Unlock()
	select {
	case n.some <- struct{}{}:
	default:
	}
}

// run hands names to look until ctx is done.
func (n *news) run(ctx context.Context, look func(context.Context, []string)) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-n.some:
		}
		n.mu.Lock()
		names := slices.Sorted(maps.Keys(n.names))
		clear(n.names)
		n.mu.Unlock()
		look(ctx, names)
	}
}
