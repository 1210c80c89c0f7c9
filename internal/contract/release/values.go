// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package release

import (
	"errors"
	"maps"
	"slices"

	"github.com/go-openapi/jsonpointer"

	"github.com/hookgate/hookgate/hook"
)

// escaped returns the name of a member as a JSON pointer has it.
func escaped(name string) string { return jsonpointer.Escape(name) }

func sortedNames(o map[string]any) []string { return slices.Sorted(maps.Keys(o)) }

// asHookError returns the *hook.Error in err.
func asHookError(err error) (*hook.Error, bool) { return errors.AsType[*hook.Error](err) }
