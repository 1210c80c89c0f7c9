// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/hookgate/hookgate/hook"
)

// Release is a release of the gateway, or of another program with groups of hooks of its own.
type Release struct {
	Version string // "v0.1.0"
	Date    string // "2026-11-21"; empty for the next release
}

// Lifetime holds the releases of the gateway, or of the program that the group belongs to, that introduced, deprecated
// and removed a version. An empty one is still to come.
type Lifetime struct{ Introduced, Deprecated, Removed string }

// Version is one version of a group of hooks.
type Version struct {
	Group, Name string
	Lifetime    Lifetime
	// Releases are those of the program that the group belongs to, oldest first. Nil means those of the gateway.
	Releases []Release

	hooks   []*Hook
	instead string
}

// APIVersion returns group and version in the form of the JSON member apiVersion.
func (v *Version) APIVersion() string { return v.Group + "/" + v.Name }

// Hooks returns the hooks of the version, ordered by name. A removed version has none. Callers must not change the
// slice.
func (v *Version) Hooks() []*Hook { return v.hooks }

// Removed reports whether the gateway no longer has the hooks of the version.
func (v *Version) Removed() bool { return v.Lifetime.Removed != "" }

// Instead returns the newest apiVersion of the group, or "" if that is v itself.
func (v *Version) Instead() string { return v.instead }

// Source describes a version of a group of hooks.
type Source struct {
	Group, Version string
	Lifetime       Lifetime
	// Releases are those that Lifetime names, oldest first, if the group belongs to another program than the gateway.
	Releases []Release
	// Files contain the services of the version. A removed version has none.
	Files []protoreflect.FileDescriptor
	// FailOnly means that errors of the hooks, except for lifecycle hooks, are never ignored, because an answer without a
	// result would be taken for one.
	FailOnly bool
}

// Build returns the catalog of the given versions. The error joins every mistake in them, except for those that
// hookversion.Build and hookversion.CheckLifetimes find.
func Build(releases []Release, sources ...Source) (*Catalog, error) {
	c := &Catalog{releases: releases}
	var errs []error
	var groups []string // that have hooks
	for _, s := range sources {
		v := &Version{Group: s.Group, Name: s.Version, Lifetime: s.Lifetime, Releases: s.Releases}
		if _, ok := c.Version(v.Group, v.Name); ok {
			errs = append(errs, fmt.Errorf("version %s: occurs twice in the catalog", v.APIVersion()))
			continue
		}
		if err := checkAPIVersion(v.Group, v.Name); err != nil {
			errs = append(errs, err)
			continue
		}
		for _, file := range s.Files {
			for i := range file.Services().Len() {
				if err := v.add(file.Services().Get(i), s.FailOnly); err != nil {
					errs = append(errs, fmt.Errorf("version %s: %w", v.APIVersion(), err))
				}
			}
		}
		switch {
		case v.Removed() && len(v.hooks) > 0:
			errs = append(
				errs, fmt.Errorf("version %s has hooks, although it was removed in "+
					"%s", v.APIVersion(), v.Lifetime.Removed),
			)
		case !v.Removed() && len(v.hooks) == 0:
			errs = append(errs, fmt.Errorf("version %s has no hooks, although it was not removed", v.APIVersion()))
		}
		c.declared = append(c.declared, v.hooks...)
		slices.SortFunc(v.hooks, func(a, b *Hook) int { return cmp.Compare(a.Hook, b.Hook) })
		c.versions = append(c.versions, v)
		c.hooks = append(c.hooks, v.hooks...)
		if len(v.hooks) > 0 && !slices.Contains(groups, v.Group) {
			groups = append(groups, v.Group)
		}
	}
	slices.SortFunc(c.versions, func(a, b *Version) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), newest(a.Name, b.Name))
	})
	c.succeed()
	c.index()
	if err := c.indexDiscoveries(groups); err != nil {
		errs = append(errs, err)
	}
	for i, h := range c.hubs {
		if i > 0 && strings.EqualFold(c.hubs[i-1].Hook, h.Hook) && (!h.Singleton() || !c.hubs[i-1].Singleton()) {
			// Files of callers, metrics and the command line know hooks by their names alone.
			errs = append(errs, fmt.Errorf("hook %s: group %s has a hook of this name already", h, c.hubs[i-1].Group))
		}
	}
	messages := map[protoreflect.FullName]*Hook{}
	for _, h := range c.hooks {
		for _, m := range []protoreflect.MessageType{h.Request, h.Response} {
			// kind and apiVersion are the message's.
			if other, ok := messages[m.Descriptor().FullName()]; ok {
				errs = append(
					errs, fmt.Errorf("hook %s: message %s already belongs to "+
						"%s", h, m.Descriptor().FullName(), other),
				)
			}
			messages[m.Descriptor().FullName()] = h
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return c, nil
}

// succeed sets the newest apiVersion of each version's group. c.versions is in order.
func (c *Catalog) succeed() {
	for _, v := range c.versions {
		for _, other := range c.versions {
			if other.Group == v.Group && !other.Removed() {
				if other != v {
					v.instead = other.APIVersion()
				}
				break
			}
		}
	}
}

// add adds the hooks of a service.
func (v *Version) add(s protoreflect.ServiceDescriptor, failOnly bool) error {
	var errs []error
	for i := range s.Methods().Len() {
		m := s.Methods().Get(i)
		h := &Hook{
			GroupVersionHook: hook.GroupVersionHook{Group: v.Group, Version: v.Name, Hook: string(m.Name())},
			Category:         Category(strings.TrimSuffix(string(s.Name()), "Service")),
			Service:          s,
			Method:           fmt.Sprintf("/%s/%s", s.FullName(), m.Name()),
			Blocking:         m.Output().Fields().ByName("retry_after_seconds") != nil,
			lifetime:         v.Lifetime,
		}
		h.Mergeable = h.Category == Lifecycle
		h.FailOnly = failOnly && !h.Mergeable
		h.OneHandler = h.Group == hook.Group && (h.Category == InPlaceUpdate || h.Category == UpgradePlan)
		if slices.ContainsFunc(v.hooks, func(other *Hook) bool { return strings.EqualFold(other.Hook, h.Hook) }) {
			errs = append(errs, fmt.Errorf("hook %s: occurs twice in one version", h.Hook))
			continue
		}
		var err error
		if h.Request, err = messageType(m.Input()); err == nil {
			h.Response, err = messageType(m.Output())
		}
		if err == nil {
			err = errors.Join(checkResponse(m.Output()), checkShape(h, m))
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("hook %s: %w", h.Hook, err))
			continue
		}
		v.hooks = append(v.hooks, h)
	}
	return errors.Join(errs...)
}

// messageType returns the Go type of a descriptor. Its generated package registers it, so that it is missing only if
// another package was compiled in.
func messageType(d protoreflect.MessageDescriptor) (protoreflect.MessageType, error) {
	t, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		return nil, fmt.Errorf("message %s: %w", d.FullName(), err)
	}
	return t, nil
}
