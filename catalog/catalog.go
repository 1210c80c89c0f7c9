// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package catalog knows every hook of the contract, in every version: its names, its message types, its service, what its
// answers allow, and how its messages convert between versions. Names and messages are read from the descriptors of the
// generated code, so that the contract stands in one place.
//
// It does not encode or call, and it does not look into the Kubernetes objects that messages hold; see the packages codec,
// extension, gateway and convert. A Catalog is immutable and safe for concurrent use.
package catalog

import (
	"cmp"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"k8s.io/apimachinery/pkg/version"

	"github.com/hookgate/hookgate/hook"
)

// Category is the part of the contract that a hook belongs to; each is one gRPC service.
type Category string

// The categories.
const (
	Discovery        Category = "Discovery"
	Lifecycle        Category = "LifecycleHooks"
	TopologyMutation Category = "TopologyMutationHooks"
	InPlaceUpdate    Category = "InPlaceUpdateHooks"
	UpgradePlan      Category = "UpgradePlanHooks"
)

// Hook describes one hook in one version.
type Hook struct {
	hook.GroupVersionHook

	Category Category
	Method   string // the full name of the rpc: "/package.Service/Method"
	Request  protoreflect.MessageType
	Response protoreflect.MessageType

	// Mergeable tells whether the answers of several handlers can be made one. Only those of lifecycle hooks can:
	// the others carry a result of their own, and Cluster API allows them one handler.
	Mergeable bool
	// Blocking tells whether an answer may hold the caller with retryAfterSeconds.
	Blocking bool

	lifetime Lifetime
	versions []*Hook // of the same hook, the hub first
	spoke    *Spoke  // nil for a hub
}

// Singleton tells whether the hook is one of the extension, not of its handlers: only Discovery is.
func (h *Hook) Singleton() bool { return h.Category == Discovery }

// Hub returns the hook in its newest version. The other versions, the spokes, convert to it and from it.
func (h *Hook) Hub() *Hook { return h.versions[0] }

// In returns the same hook in another version.
func (h *Hook) In(version string) (*Hook, bool) {
	for _, v := range h.versions {
		if v.Version == version {
			return v, true
		}
	}
	return nil, false
}

// Deprecated tells whether the version of the hook is deprecated; if so, since which release of the gateway, and which
// apiVersion of the hook takes its place.
func (h *Hook) Deprecated() (since, instead string, ok bool) {
	if h.lifetime.Deprecated == "" {
		return "", "", false
	}
	return h.lifetime.Deprecated, h.Hub().APIVersion(), true
}

// Catalog is a set of hooks, each in one or more versions.
type Catalog struct {
	releases []Release
	versions []*Version
	hooks    []*Hook
	hubs     []*Hook
	byGVH    map[hook.GroupVersionHook]*Hook
	byPath   map[string]*Hook
	byMethod map[string]*Hook
	byName   map[string]*Hook // hubs

	discoveries []*Hook
	byInput     map[protoreflect.FullName]*Hook
}

// Hooks returns all hooks in all versions: by name, and the hub before its spokes. Callers must not change the slice.
func (c *Catalog) Hooks() []*Hook { return c.hooks }

// Hubs returns every hook once, in its newest version, by name. Callers must not change the slice.
func (c *Catalog) Hubs() []*Hook { return c.hubs }

// Lookup returns the hook of that group, version and name.
func (c *Catalog) Lookup(gvh hook.GroupVersionHook) (*Hook, bool) {
	h, ok := c.byGVH[gvh]
	return h, ok
}

// ByName returns the hook of that name, in upper or lower case, in its newest version.
func (c *Catalog) ByName(name string) (*Hook, bool) {
	h, ok := c.byName[strings.ToLower(name)]
	return h, ok
}

// ByMethod returns the hook whose rpc has that full name: "/package.Service/Method".
func (c *Catalog) ByMethod(method string) (*Hook, bool) {
	h, ok := c.byMethod[method]
	return h, ok
}

// ByPath returns the hook that a URL path is about, /<group>/<version>/<hook>[/<handler>], and what stands after the hook's
// segment, with the slash before it. Where it is not ok, the path is none: h is the hook that is meant if its name is in
// upper case, and nil otherwise.
func (c *Catalog) ByPath(path string) (h *Hook, rest string, ok bool) {
	end := segments(path, 3)
	if h, ok = c.byPath[path[:end]]; !ok {
		prefix := segments(path, 2)
		h = c.byPath[path[:prefix]+strings.ToLower(path[prefix:end])]
	}
	return h, path[end:], ok
}

// segments returns where the first n segments of a path end.
func segments(path string, n int) int {
	at := 0
	for range n {
		if at == len(path) {
			return at
		}
		next := strings.IndexByte(path[at+1:], '/')
		if next < 0 {
			return len(path)
		}
		at += 1 + next
	}
	return at
}

// ByRequest returns the hook that a message is a request of.
func (c *Catalog) ByRequest(m proto.Message) (*Hook, bool) {
	h, ok := c.byInput[m.ProtoReflect().Descriptor().FullName()]
	return h, ok
}

// Discoveries returns the hook Discovery in all its versions, the newest first.
func (c *Catalog) Discoveries() []*Hook { return c.discoveries }

// Versions returns every version of every group, those that were removed among them: by group, newest first. Callers must
// not change the slice.
func (c *Catalog) Versions() []*Version { return c.versions }

// Version returns a version of a group, also one that was removed.
func (c *Catalog) Version(group, name string) (*Version, bool) {
	for _, v := range c.versions {
		if v.Group == group && v.Name == name {
			return v, true
		}
	}
	return nil, false
}

// Releases returns the releases of the gateway that lifetimes are counted in, oldest first. Callers must not change the slice.
func (c *Catalog) Releases() []Release { return c.releases }

// index fills what lookups read. All hooks are in c.hooks.
func (c *Catalog) index() {
	slices.SortFunc(c.hooks, func(a, b *Hook) int {
		return cmp.Or(cmp.Compare(a.Hook, b.Hook), cmp.Compare(a.Group, b.Group), newest(a.Version, b.Version))
	})
	c.byGVH, c.byPath, c.byMethod, c.byName = map[hook.GroupVersionHook]*Hook{}, map[string]*Hook{}, map[string]*Hook{}, map[string]*Hook{}
	c.byInput = map[protoreflect.FullName]*Hook{}
	for i, h := range c.hooks {
		c.byGVH[h.GroupVersionHook], c.byPath[h.Path("")], c.byMethod[h.Method] = h, h, h
		c.byInput[h.Request.Descriptor().FullName()] = h
		if h.Singleton() {
			c.discoveries = append(c.discoveries, h)
		}
		if i > 0 && c.hooks[i-1].GroupHook() == h.GroupHook() {
			hub := c.hooks[i-1].Hub()
			hub.versions = append(hub.versions, h)
			h.versions = hub.versions[:1:1] // until all are known
			continue
		}
		h.versions = []*Hook{h}
		c.hubs = append(c.hubs, h)
		if _, ok := c.byName[strings.ToLower(h.Hook)]; !ok {
			c.byName[strings.ToLower(h.Hook)] = h
		}
	}
	for _, h := range c.hooks {
		h.versions = h.Hub().versions
	}
}

// newest orders versions as Kubernetes does: v1 before v1beta2, v1beta1 and v1alpha1.
func newest(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) }
