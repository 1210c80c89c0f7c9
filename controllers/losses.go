// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/util/validation/field"
	runtimev1 "sigs.k8s.io/cluster-api/api/runtime/v1beta2"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/contract/convert"
	"github.com/hookgate/hookgate/registry"
)

// lossesAnnotation of an ExtensionConfig holds the losses of conversions in calls to its handlers, collected from all
// replicas: a lossRecord in JSON.
const lossesAnnotation = "runtime.hookgate.dev/conversion-losses"

// The condition of an ExtensionConfig that says the same to operators. It is there only while something was lost.
const (
	lossyCondition = "ConversionLossy"
	lossyReason    = "MembersLost"
)

const (
	// maxLostPaths is the number of paths that are kept of one handler, and maxLostPath the length of the longest, in
	// bytes. With maxListed handlers, the annotation and the message stay below 32 KiB, the limit of a condition.
	maxLostPaths = 16
	maxLostPath  = 160
)

// lossRecord holds the losses in the current generation of an ExtensionConfig.
type lossRecord struct {
	Generation int64                    `json:"generation"`
	Handlers   map[string]handlerLosses `json:"handlers"` // at most maxListed
	More       int                      `json:"more,omitempty"`
}

// handlerLosses holds the losses in calls to one handler with its current version.
type handlerLosses struct {
	Version string   `json:"version"`
	Paths   []string `json:"paths"` // sorted; at most maxLostPaths
	// More is the number of paths that one process has seen beyond those. It never shrinks, and may be too small.
	More int `json:"more,omitempty"`
}

// readLosses returns the record in the annotation of config. With an error, it is empty.
func readLosses(config *runtimev1.ExtensionConfig) (lossRecord, error) {
	value, ok := config.Annotations[lossesAnnotation]
	if !ok {
		return lossRecord{}, nil
	}
	var record lossRecord
	err := json.Unmarshal([]byte(value), &record)
	if err == nil {
		err = record.check()
	}
	if err != nil {
		path := field.NewPath("metadata", "annotations").Key(lossesAnnotation)
		return lossRecord{}, field.Invalid(path, text.Cut(value, maxLostPath), err.Error())
	}
	return record, nil
}

func (l *lossRecord) check() error {
	if len(l.Handlers) > maxListed || l.More < 0 {
		return fmt.Errorf("must have at most %d handlers, and \"more\" must not be negative", maxListed)
	}
	for _, name := range slices.Sorted(maps.Keys(l.Handlers)) {
		h := l.Handlers[name]
		switch {
		case h.Version == "" || len(h.Paths) == 0 || len(h.Paths) > maxLostPaths || h.More < 0:
			return fmt.Errorf("handler %q must have a version and 1 to %d paths, and \"more\" must not be negative",
				name, maxLostPaths)
		case !slices.IsSorted(h.Paths):
			return fmt.Errorf("handler %q: paths must be sorted", name)
		case slices.ContainsFunc(h.Paths, func(p string) bool { return p != lostPath(p) }):
			return fmt.Errorf("handler %q: a path is too long, or has a character that separates paths", name)
		}
	}
	return nil
}

// merge returns the record with the paths that this process has recorded, by handler, for the handlers that are still
// called with the version that versions has, which has all that may be in it. Replicas that have seen the same losses
// have the same record, in whichever order they saw them.
func (l lossRecord) merge(generation int64, versions map[string]string, recorded map[string][]string) lossRecord {
	if l.Generation != generation {
		l = lossRecord{}
	}
	merged := lossRecord{Generation: generation, Handlers: map[string]handlerLosses{}}
	for _, name := range slices.Sorted(maps.Keys(versions)) {
		h := l.Handlers[name]
		if h.Version != versions[name] {
			h = handlerLosses{Version: versions[name]}
		}
		h = h.add(recorded[name])
		switch {
		case len(h.Paths) == 0:
		case len(merged.Handlers) < maxListed:
			merged.Handlers[name] = h
		default:
			merged.More++
		}
	}
	if len(merged.Handlers) == maxListed {
		merged.More = max(merged.More, l.More) // another process may have counted other handlers
	}
	return merged
}

// add returns h with more paths.
func (h handlerLosses) add(recorded []string) handlerLosses {
	h.Paths = slices.Clone(h.Paths)
	for _, path := range recorded {
		if path == convert.MorePaths {
			h.More = max(h.More, 1)
			continue
		}
		path = lostPath(path)
		if i, known := slices.BinarySearch(h.Paths, path); !known {
			h.Paths = slices.Insert(h.Paths, i, path)
		}
	}
	if n := len(h.Paths) - maxLostPaths; n > 0 {
		h.Paths, h.More = h.Paths[:maxLostPaths], max(h.More, n)
	}
	return h
}

// lostPath returns a path in the form to record: names of unknown members may be of any length, and have any character.
func lostPath(path string) string {
	return text.Cut(strings.Map(func(c rune) rune {
		if unicode.IsSpace(c) || text.IsControl(c) || strings.ContainsRune(",;()", c) {
			return '_'
		}
		return c
	}, path), maxLostPath)
}

// format returns the text of the annotation: empty if nothing was lost.
func (l *lossRecord) format() string {
	if len(l.Handlers) == 0 {
		return ""
	}
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(l); err != nil {
		panic(err) // strings and numbers can always be written
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// message returns the message of the condition: empty if nothing was lost.
func (l *lossRecord) message() string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(l.Handlers)) {
		h := l.Handlers[name]
		entry := fmt.Sprintf("%s (%s) %s", name, h.Version, strings.Join(h.Paths, ", "))
		if h.More > 0 {
			entry += fmt.Sprintf(" and %d more", h.More)
		}
		all = append(all, entry)
	}
	if len(all) == 0 {
		return ""
	}
	if l.More > 0 {
		all = append(all, fmt.Sprintf("and %d more handlers", l.More))
	}
	return "Conversions could not express these members and left them out, " +
		"by handler and the version that it understands: " + strings.Join(all, "; ")
}

// lossBasis holds the inputs on which the losses recorded by this process depend.
type lossBasis struct {
	generation int64
	versions   map[string]string // by handler; nil before the first look
}

// changed reports whether losses recorded on b are invalid on o.
func (b lossBasis) changed(o lossBasis) bool {
	if b.versions == nil {
		return false
	}
	for handler, version := range b.versions {
		if o.versions[handler] != version {
			return true
		}
	}
	return b.generation != o.generation
}

// observeLosses adds the losses of conversions to an observation if this replica has to write them: a leader always
// does, and a follower if it has seen losses of its own, which operators would otherwise not see.
func (r *reconciler) observeLosses(m *memory, o *observation) {
	if r.losses == nil || o.unreadable {
		return
	}
	basis := lossBasis{generation: o.config.Generation, versions: r.versions(o.config.Name, o.handlers)}
	if m.losses.changed(basis) {
		r.losses.Forget(o.config.Name)
	}
	m.losses = basis
	recorded := r.losses.Of(o.config.Name)
	if r.readOnly || !o.leads && len(recorded) == 0 {
		return
	}
	var err error
	o.losses, err = readLosses(o.config)
	r.ignore(m, o.config, "annotation is wrong and is ignored", err)
	o.versions, o.recorded = basis.versions, recorded
}

// versions returns the versions to which calls are converted, by handler: the version of objects, if known, and the
// version of the hook, if it has several. Calls to handlers that are not in the result are never converted.
func (r *reconciler) versions(extensionConfig string, handlers []registry.Handler) map[string]string {
	versions := map[string]string{}
	for i := range handlers {
		h := &handlers[i]
		var all []string
		if objects := r.policies.ClusterAPIVersion(extensionConfig, *h); objects != "" {
			all = append(all, objects)
		}
		if slices.ContainsFunc(r.hooks.Hooks(), func(k *catalog.Hook) bool {
			return k.GroupHook() == h.Hook.GroupHook() && k.Version != h.Hook.Version
		}) {
			all = append(all, h.Hook.APIVersion())
		}
		if len(all) > 0 {
			versions[h.Name] = strings.Join(all, ",")
		}
	}
	return versions
}
