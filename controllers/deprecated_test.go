// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/registry"
	"github.com/hookgate/hookgate/test/hookversions"
)

func TestDeprecatedMessage(t *testing.T) {
	hooks := hookversions.New()
	implementing := func(version string, names ...string) []registry.Handler {
		var list []registry.Handler
		for _, n := range names {
			list = append(
				list,
				registry.Handler{
					Name: n,
					Hook: hook.GroupVersionHook{Group: hookversions.Group, Version: version, Hook: hookversions.BeforeNodeDrain},
				},
			)
		}
		return list
	}
	const rest = "hooks.test.hookgate.dev/v1alpha1, which is deprecated since v0.4.0 of the gateway: "
	cases := map[string]struct {
		reason   string
		handlers []registry.Handler
		want     string
	}{
		"None": {"Without handlers, there is nothing to say.", nil, ""},
		"Served": {
			"Versions that are served and not deprecated are fine.",
			slices.Concat(implementing("v1beta1", "a"), implementing("v1", "b")),
			"",
		},
		"Unknown": {"Discovery reports others.", implementing("v9", "a"), ""},
		"One": {
			"It says what to do.",
			slices.Concat(implementing("v1", "a"), implementing("v1alpha1", "b")),
			`handler "b" implements ` + rest + "it should implement hooks.test.hookgate.dev/v1",
		},
		"Several": {
			"In order.",
			implementing("v1alpha1", "b", "a"),
			`handlers "a", "b" implement ` + rest + "they should implement hooks.test.hookgate.dev/v1",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := deprecatedMessage(tc.handlers, hooks); got != tc.want {
				t.Errorf("%s\ngot  %s\nwant %s", tc.reason, got, tc.want)
			}
		})
	}
	var names []string
	for i := range 512 {
		names = append(names, fmt.Sprintf("%s-%03d", strings.Repeat("h", 59), i))
	}
	if got := deprecatedMessage(
		implementing("v1alpha1", names...),
		hooks,
	); len(got) > limits.ConditionMessageBytes ||
		!strings.Contains(got, ` and 504 more implement `) {
		t.Errorf("of 512 handlers: %s", got)
	}
}
