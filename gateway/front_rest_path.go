// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"strings"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
)

// route returns the hook that a path is for. If no hook has this path, the error suggests a correction, and h is the
// near miss, or nil. asked is the name of the hook in the path, and handler that of the handler.
func (f *REST) route(path string) (h *catalog.Hook, asked, handler string, err error) {
	h, rest, ok := f.config.Catalog.ByPath(path)
	switch {
	case ok && validHandler(h, rest):
		return h, h.Hook, strings.TrimPrefix(rest, "/"), nil
	case h != nil:
		return h, h.Hook, "", noHookAt(path, h)
	}
	v, asked := f.versionInPath(path)
	switch {
	case v != nil && v.Removed():
		err = hook.Errorf(hook.UnknownHook, "the hooks of %s were removed in %s of the gateway: call %s",
			v.APIVersion(), v.Lifetime.Removed, v.Instead())
	case asked != "":
		err = noHook(asked, v)
	default:
		err = hook.Errorf(hook.UnknownHook, "no hook at path %q: want %s",
			text.Cut(path, limits.QuotedBytes), f.wantPath(path))
	}
	return nil, asked, "", err
}

// noHookAt returns the error of a path that nearly is one of h.
func noHookAt(path string, h *catalog.Hook) error {
	want := h.Path("")
	if h.TakesHandler() {
		want += "[/<handler>]"
	}
	return hook.Errorf(hook.UnknownHook, "no hook at path %q: want %s", text.Cut(path, limits.QuotedBytes), want)
}

// noHook returns the error of a path with a version of the hooks, and a name that none of its hooks has.
func noHook(asked string, v *catalog.Version) error {
	asked = text.Cut(asked, limits.QuotedBytes)
	var names []string
	for _, h := range v.Hooks() {
		names = append(names, h.Hook)
	}
	if meant := text.Nearest(asked, names); meant != "" {
		return hook.Errorf(hook.UnknownHook, "no hook %q: did you mean %q?", asked, strings.ToLower(meant))
	}
	return hook.Errorf(hook.UnknownHook, "no hook %q: see \"hookgate call --help\" for their names", asked)
}

// validHandler reports whether the path of a hook may continue with rest: with one segment for the handler, if the hook
// has handlers, or with nothing.
func validHandler(h *catalog.Hook, rest string) bool {
	return rest == "" || h.TakesHandler() && len(rest) > 1 && !strings.Contains(rest[1:], "/")
}

// versionInPath returns the version of the hooks that a path names, or nil, and the segment that names the hook.
func (f *REST) versionInPath(path string) (v *catalog.Version, asked string) {
	segments := strings.SplitN(strings.TrimPrefix(path, "/"), "/", 4)
	if len(segments) < 3 {
		return nil, ""
	}
	v, ok := f.config.Catalog.Version(segments[0], segments[1])
	if !ok {
		return nil, ""
	}
	return v, segments[2]
}

// wantPath describes the paths of the group that a path names, or of any group if it names none.
func (f *REST) wantPath(path string) string {
	group, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	apiVersion, others := f.apiVersion(), ""
	for _, v := range f.config.Catalog.Versions() {
		switch {
		case v.Group != group || v.Removed():
		case apiVersion == "" || !strings.HasPrefix(apiVersion, group+"/"):
			apiVersion = v.APIVersion()
		case apiVersion != v.APIVersion():
			others += ", or " + v.Name
		}
	}
	return "/" + apiVersion + "/<hook>[/<handler>]" + others
}

// apiVersion returns the newest version of the hooks, for answers that are about no hook.
func (f *REST) apiVersion() string {
	for _, versions := range f.config.Catalog.Discoveries() {
		return versions[0].APIVersion()
	}
	return ""
}
