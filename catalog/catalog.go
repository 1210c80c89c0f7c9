// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package catalog describes every hook of the contract in every version: its names, message types and service, and what
// its answers allow. It reads them from the descriptors of the generated code, so that the contract has one source.
//
// New returns the catalog of Cluster API's hooks, With adds further groups of hooks to it, and Build returns one of
// other hooks alone. A process has one catalog, which constructors take as an argument.
//
// The package does not encode or call, does not convert between versions, and does not look into the Kubernetes objects
// that messages hold; see packages codec, extension, hookversion and convert. A Catalog is immutable and safe for
// concurrent use.
package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"k8s.io/apimachinery/pkg/version"

	"github.com/hookgate/hookgate/hook"
)

// Category is the part of its group that a hook belongs to. Each category is one gRPC service, and has the name of the
// service without the suffix Service.
type Category string

// The categories of Cluster API's hooks. In every group, Discovery has the one hook that lists the handlers of the
// group, and the answers of Lifecycle can be merged.
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
	Service  protoreflect.ServiceDescriptor
	Method   string // the full name of the rpc: "/package.Service/Method"
	Request  protoreflect.MessageType
	Response protoreflect.MessageType

	// Mergeable reports whether the answers of several handlers can be merged into one. This holds for lifecycle hooks
	// only: the others carry a result of their own, and Cluster API allows them one handler.
	Mergeable bool
	// OneHandler reports whether Cluster API takes one handler of the hook in all, of whichever ExtensionConfig.
	OneHandler bool
	// Blocking reports whether an answer may hold the caller with retryAfterSeconds.
	Blocking bool
	// FailOnly reports whether errors of the hook are never ignored, whatever the failure policy of its handler.
	FailOnly bool

	lifetime Lifetime
	versions []*Hook // of the same hook, newest first
}

// Singleton reports whether the extension answers the hook, not one of its handlers. In every group, only the hook that
// lists the handlers is a singleton.
func (h *Hook) Singleton() bool { return h.Category == Discovery }

// Chainable reports whether a HandlerChain can make one answer of those of several handlers.
func (h *Hook) Chainable() bool {
	return h.Mergeable || h.Group == hook.Group && !h.Singleton()
}

// ReadOnly reports whether handlers of the hook change nothing, and their answers depend on nothing but the request.
// Handlers of lifecycle hooks may act, and so does whoever holds the caller until it is done.
func (h *Hook) ReadOnly() bool {
	return h.Group == hook.Group && !h.Singleton() && !h.Mergeable && !h.Blocking
}

// Deterministic reports whether equal requests of the hook have equal answers by its contract, whatever is the case
// elsewhere.
func (h *Hook) Deterministic() bool { return h.Group == hook.Group && h.Category == TopologyMutation }

// Liftable reports whether an operator can lift a hold of the hook: Cluster API waits, and a handler has said why. What
// UpdateMachine and the hooks of Machines wait for is work that goes on.
func (h *Hook) Liftable() bool { return h.Group == hook.Group && h.Mergeable && h.Blocking }

// InParallel reports whether the steps of a HandlerChain of the hook are called at the same time, and not one after the
// other, as where an answer has patches for the items of the request.
func (h *Hook) InParallel() bool {
	return h.Deterministic() && h.Response.Descriptor().Fields().ByName("items") == nil
}

// TakesHandler reports whether requests can name a handler. Those of a singleton mean its extension.
func (h *Hook) TakesHandler() bool { return h.Request.Descriptor().Fields().ByName("handler") != nil }

// Hub returns the hook in its newest version, through which package hookversion converts between the others.
func (h *Hook) Hub() *Hook { return h.versions[0] }

// In returns the hook in another version.
func (h *Hook) In(version string) (*Hook, bool) {
	for _, v := range h.versions {
		if v.Version == version {
			return v, true
		}
	}
	return nil, false
}

// Deprecated reports whether this version of the hook is deprecated. If so, it returns the release of the gateway that
// deprecated it, and the apiVersion that replaces it.
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
	declared []*Hook // hooks in the order of the sources
	hooks    []*Hook
	hubs     []*Hook
	byGVH    map[hook.GroupVersionHook]*Hook
	byPath   map[string]*Hook
	byMethod map[string]*Hook
	byName   map[string]*Hook // hubs

	discoveries [][]*Hook
	byInput     map[protoreflect.FullName]*Hook
}

// Hooks returns all hooks in all versions, ordered by name, newest version first. Callers must not change the slice.
func (c *Catalog) Hooks() []*Hook { return c.hooks }

// Hubs returns every hook in its newest version, ordered by name. Callers must not change the slice.
func (c *Catalog) Hubs() []*Hook { return c.hubs }

// Merged returns the hooks that go to all handlers, and for which a gateway offers one handler.
func (c *Catalog) Merged() []hook.GroupHook {
	var merged []hook.GroupHook
	for _, h := range c.hubs {
		if h.Mergeable {
			merged = append(merged, h.GroupHook())
		}
	}
	return merged
}

// ReadOnlyNames lists the names of the hooks that are read-only for people, in the order of the contract: "A, B and C".
func (c *Catalog) ReadOnlyNames() string {
	var names []string
	for _, h := range c.declared {
		if h == h.Hub() && h.ReadOnly() {
			names = append(names, h.Hook)
		}
	}
	last := max(len(names)-1, 0)
	return strings.Join(names[:last], ", ") + " and " + strings.Join(names[last:], "")
}

// Lookup returns the hook with the given group, version and name.
func (c *Catalog) Lookup(gvh hook.GroupVersionHook) (*Hook, bool) {
	h, ok := c.byGVH[gvh]
	return h, ok
}

// ByName returns the newest version of the hook with the given name, in any letter case. Only hooks that list handlers
// may have the name of one in another group; ByName returns that of the first group.
func (c *Catalog) ByName(name string) (*Hook, bool) {
	h, ok := c.byName[strings.ToLower(name)]
	return h, ok
}

// ByMethod returns the hook whose rpc has the given full name: "/package.Service/Method".
func (c *Catalog) ByMethod(method string) (*Hook, bool) {
	h, ok := c.byMethod[method]
	return h, ok
}

// ByPath returns the hook of a URL path, /<group>/<version>/<hook>[/<handler>], and the rest of the path after the
// hook's segment, including its slash. If ok is false, no hook has this path; h is then the near miss that differs only
// in the case of its name, or nil.
func (c *Catalog) ByPath(path string) (h *Hook, rest string, ok bool) {
	end := segments(path, 3)
	if h, ok = c.byPath[path[:end]]; !ok {
		prefix := segments(path, 2)
		h = c.byPath[path[:prefix]+strings.ToLower(path[prefix:end])]
	}
	return h, path[end:], ok
}

// segments returns the index at which the first n segments of a path end.
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

// ByRequest returns the hook whose request type m has.
func (c *Catalog) ByRequest(m proto.Message) (*Hook, bool) {
	h, ok := c.byInput[m.ProtoReflect().Descriptor().FullName()]
	return h, ok
}

// Discoveries returns the hook that lists the handlers of a group, in all versions, newest first, for each group in the
// order of the sources. Callers must not change the slices.
func (c *Catalog) Discoveries() [][]*Hook { return c.discoveries }

// Versions returns every version of every group, including removed ones, ordered by group, newest first. Callers must
// not change the slice.
func (c *Catalog) Versions() []*Version { return c.versions }

// Version returns a version of a group, including a removed one.
func (c *Catalog) Version(group, name string) (*Version, bool) {
	for _, v := range c.versions {
		if v.Group == group && v.Name == name {
			return v, true
		}
	}
	return nil, false
}

// Releases returns the releases of the gateway, oldest first, that lifetimes refer to. Callers must not change the
// slice.
func (c *Catalog) Releases() []Release { return c.releases }

// index fills the maps that lookups read, from c.hooks.
func (c *Catalog) index() {
	slices.SortFunc(c.hooks, func(a, b *Hook) int {
		return cmp.Or(cmp.Compare(a.Hook, b.Hook), cmp.Compare(a.Group, b.Group), newest(a.Version, b.Version))
	})
	c.byGVH, c.byInput = map[hook.GroupVersionHook]*Hook{}, map[protoreflect.FullName]*Hook{}
	c.byPath, c.byMethod, c.byName = map[string]*Hook{}, map[string]*Hook{}, map[string]*Hook{}
	for i, h := range c.hooks {
		c.byGVH[h.GroupVersionHook], c.byPath[h.Path("")], c.byMethod[h.Method] = h, h, h
		c.byInput[h.Request.Descriptor().FullName()] = h
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

// indexDiscoveries fills c.discoveries for the groups in the given order. It returns an error for each group that has
// hooks, and not one that lists their handlers.
func (c *Catalog) indexDiscoveries(groups []string) error {
	var errs []error
	for _, group := range groups {
		var found []*Hook
		for _, h := range c.hubs {
			if h.Group == group && h.Singleton() {
				found = append(found, h)
			}
		}
		if len(found) != 1 {
			errs = append(errs, fmt.Errorf("group %s: its DiscoveryService has %d hooks, but must have exactly one, "+
				"which lists the handlers of the group", group, len(found)))
			continue
		}
		c.discoveries = append(c.discoveries, found[0].versions)
	}
	for _, versions := range slices.Backward(c.discoveries) {
		c.byName[strings.ToLower(versions[0].Hook)] = versions[0]
	}
	return errors.Join(errs...)
}

// newest compares versions as Kubernetes orders them, newest first: v1, v1beta2, v1beta1, v1alpha1.
func newest(a, b string) int { return version.CompareKubeAwareVersionStrings(b, a) }
