// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package catalog

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/hookgate/hookgate/hook"
)

// Lifetime tells in which releases of the gateway a version was introduced, deprecated and removed. Empty means that it was
// not, yet.
type Lifetime struct{ Introduced, Deprecated, Removed string }

// Version is one version of a group of hooks.
type Version struct {
	Group, Name string
	Lifetime    Lifetime

	hooks   []*Hook
	instead string
}

// APIVersion returns group and version in the form of the member apiVersion.
func (v *Version) APIVersion() string { return v.Group + "/" + v.Name }

// Hooks returns the hooks of the version, by name; none if it was removed. Callers must not change the slice.
func (v *Version) Hooks() []*Hook { return v.hooks }

// Removed tells whether the gateway knows the version by its name only.
func (v *Version) Removed() bool { return v.Lifetime.Removed != "" }

// Instead returns the newest apiVersion of the group; empty if there is none but v.
func (v *Version) Instead() string { return v.instead }

// Source is what a version of a group of hooks is read from.
type Source struct {
	Group, Version string
	Lifetime       Lifetime
	// Files have the services of the version. A version that was removed has none.
	Files []protoreflect.FileDescriptor
	// Spokes are the conversions of the hooks that have a newer version, by their names.
	Spokes map[string]Spoke
}

// Build returns the catalog of those versions. The error tells all that is wrong with them, but for what CheckLifetimes tells.
func Build(releases []Release, sources ...Source) (*Catalog, error) {
	c := &Catalog{releases: releases}
	var errs []error
	for _, s := range sources {
		v := &Version{Group: s.Group, Name: s.Version, Lifetime: s.Lifetime}
		if _, ok := c.Version(v.Group, v.Name); ok {
			errs = append(errs, fmt.Errorf("version %s: stands twice in the catalog", v.APIVersion()))
			continue
		}
		for _, file := range s.Files {
			for i := range file.Services().Len() {
				if err := v.add(file.Services().Get(i)); err != nil {
					errs = append(errs, fmt.Errorf("version %s: %w", v.APIVersion(), err))
				}
			}
		}
		switch {
		case v.Removed() && len(v.hooks) > 0:
			errs = append(errs, fmt.Errorf("version %s: has hooks, and was removed in %s", v.APIVersion(), v.Lifetime.Removed))
		case !v.Removed() && len(v.hooks) == 0:
			errs = append(errs, fmt.Errorf("version %s: has no hooks, and was not removed", v.APIVersion()))
		}
		for _, h := range v.hooks {
			if spoke, ok := s.Spokes[h.Hook]; ok {
				h.spoke = &spoke
			}
		}
		for _, name := range slices.Sorted(maps.Keys(s.Spokes)) {
			if !slices.ContainsFunc(v.hooks, func(h *Hook) bool { return h.Hook == name }) {
				errs = append(errs, fmt.Errorf("version %s: has a conversion of %s, which is no hook of it", v.APIVersion(), name))
			}
		}
		slices.SortFunc(v.hooks, func(a, b *Hook) int { return cmp.Compare(a.Hook, b.Hook) })
		c.versions = append(c.versions, v)
		c.hooks = append(c.hooks, v.hooks...)
	}
	slices.SortFunc(c.versions, func(a, b *Version) int { return cmp.Or(cmp.Compare(a.Group, b.Group), newest(a.Name, b.Name)) })
	c.succeed()
	c.index()
	messages := map[protoreflect.FullName]*Hook{}
	for _, h := range c.hooks {
		for _, m := range []protoreflect.MessageType{h.Request, h.Response} {
			// kind and apiVersion are the message's.
			if other, ok := messages[m.Descriptor().FullName()]; ok {
				errs = append(errs, fmt.Errorf("hook %s: message %s is that of %s already", h, m.Descriptor().FullName(), other))
			}
			messages[m.Descriptor().FullName()] = h
		}
		if err := h.checkSpoke(); err != nil {
			errs = append(errs, fmt.Errorf("hook %s: %w", h, err))
		}
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	return c, nil
}

// succeed tells each version which one takes its place. They are in order.
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
func (v *Version) add(s protoreflect.ServiceDescriptor) error {
	var errs []error
	for i := range s.Methods().Len() {
		m := s.Methods().Get(i)
		h := &Hook{
			GroupVersionHook: hook.GroupVersionHook{Group: v.Group, Version: v.Name, Hook: string(m.Name())},
			Category:         Category(strings.TrimSuffix(string(s.Name()), "Service")),
			Method:           fmt.Sprintf("/%s/%s", s.FullName(), m.Name()),
			Blocking:         m.Output().Fields().ByName("retry_after_seconds") != nil,
			lifetime:         v.Lifetime,
		}
		h.Mergeable = h.Category == Lifecycle
		if slices.ContainsFunc(v.hooks, func(other *Hook) bool { return strings.EqualFold(other.Hook, h.Hook) }) {
			errs = append(errs, fmt.Errorf("hook %s: stands twice in one version", h.Hook))
			continue
		}
		var err error
		if h.Request, err = messageType(m.Input()); err == nil {
			h.Response, err = messageType(m.Output())
		}
		if err == nil {
			err = checkResponse(m.Output())
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("hook %s: %w", h.Hook, err))
			continue
		}
		v.hooks = append(v.hooks, h)
	}
	return errors.Join(errs...)
}

// messageType returns the Go type behind a descriptor. The generated package registered it, so that it is missing only
// if that package is not the one that was compiled in.
func messageType(d protoreflect.MessageDescriptor) (protoreflect.MessageType, error) {
	t, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		return nil, fmt.Errorf("message %s: %w", d.FullName(), err)
	}
	return t, nil
}
