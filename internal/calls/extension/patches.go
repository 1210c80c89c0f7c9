// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package extension

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/contract/jsonpatch"
	"github.com/hookgate/hookgate/internal/contract/jsonscan"
)

// checkPatches returns an error if a patch of a successful answer is not what its type says, so that it could not be
// applied to any object. It reads the texts of patches in place, and calls step, which may be nil, as a Scanner does.
func checkPatches(answer proto.Message, step func() error) error {
	if status, ok := catalog.StatusOf(answer); !ok || status != catalog.Success {
		return nil
	}
	switch a := answer.(type) {
	case *hooksv1alpha1.GeneratePatchesResponse:
		for i, item := range a.GetItems() {
			if err := checkPatch(item.GetPatchType(), item.GetPatch(), step); err != nil {
				return fmt.Errorf("items[%d], of uid %s: %w", i, quote(item.GetUid()), err)
			}
		}
	case *hooksv1alpha1.CanUpdateMachineResponse:
		return cmp.Or(
			checkMachinePatch("machinePatch", a.GetMachinePatch(), step),
			checkMachinePatch("infrastructureMachinePatch", a.GetInfrastructureMachinePatch(), step),
			checkMachinePatch("bootstrapConfigPatch", a.GetBootstrapConfigPatch(), step))
	case *hooksv1alpha1.CanUpdateMachineSetResponse:
		return cmp.Or(
			checkMachinePatch("machineSetPatch", a.GetMachineSetPatch(), step),
			checkMachinePatch("infrastructureMachineTemplatePatch", a.GetInfrastructureMachineTemplatePatch(), step),
			checkMachinePatch("bootstrapConfigTemplatePatch", a.GetBootstrapConfigTemplatePatch(), step))
	}
	return nil
}

// checkMachinePatch checks a patch that may be left out, or empty.
func checkMachinePatch(member string, p *hooksv1alpha1.Patch, step func() error) error {
	if p.GetPatchType() == hooksv1alpha1.PatchType_PATCH_TYPE_UNSPECIFIED && len(p.GetPatch()) == 0 {
		return nil
	}
	if err := checkPatch(p.GetPatchType(), p.GetPatch(), step); err != nil {
		return fmt.Errorf("%s: %w", member, err)
	}
	return nil
}

func checkPatch(kind hooksv1alpha1.PatchType, text []byte, step func() error) error {
	s := jsonscan.Scanner{Text: text, Step: step}
	switch kind {
	case hooksv1alpha1.PatchType_PATCH_TYPE_JSON_PATCH:
		if err := checkOperations(&s); jsonscan.Space(text, 0) == len(text) {
			return fmt.Errorf("patch is not a JSONPatch: %w", jsonpatch.ErrNoText)
		} else if err != nil {
			return fmt.Errorf("patch is not a JSONPatch: %w", err)
		}
	case hooksv1alpha1.PatchType_PATCH_TYPE_JSON_MERGE_PATCH:
		if len(text) == 0 {
			return nil // which changes nothing, as for Cluster API
		}
		if err := checkMerge(&s); err != nil {
			return fmt.Errorf("patch is not a JSONMergePatch: %w", err)
		}
	default:
		return errors.New(`patchType: want "JSONPatch" or "JSONMergePatch", got ""`)
	}
	return nil
}

// checkMerge returns an error unless the text is a JSON object (RFC 7386).
func checkMerge(s *jsonscan.Scanner) error {
	i := jsonscan.Space(s.Text, 0)
	if s.At(i) != '{' {
		return errors.New("want a JSON object")
	}
	end, err := s.Value(i, 0)
	if err != nil {
		return err
	}
	return s.End(end)
}

// checkOperations returns an error unless the text is a list of operations (RFC 6902) or null, which Cluster API takes
// for an empty list.
func checkOperations(s *jsonscan.Scanner) error {
	i := jsonscan.Space(s.Text, 0)
	if s.At(i) == 'n' {
		end, err := s.Literal(i, "null")
		if err != nil {
			return err
		}
		return s.End(end)
	}
	if s.At(i) != '[' {
		return errors.New("want a list of operations")
	}
	for n := 0; ; n++ {
		next, more, err := s.Next(i, n == 0, ']')
		if err != nil {
			return err
		}
		if !more {
			return s.End(next)
		}
		if i, err = checkOperation(s, next); err != nil {
			return fmt.Errorf("operation %d: %w", n, err)
		}
	}
}

// checkOperation reads the operation that begins at i, and returns the index after it.
func checkOperation(s *jsonscan.Scanner, i int) (int, error) {
	if s.At(i) != '{' {
		return i, errors.New("want an object")
	}
	var op []byte
	hasPath, hasFrom, hasValue := false, false, false
	for first := true; ; first = false {
		start, more, err := s.Next(i, first, '}')
		if err != nil {
			return start, err
		}
		if !more {
			return start, wrongOperation(op, hasPath, hasFrom, hasValue)
		}
		end, value, err := s.Name(start)
		if err != nil {
			return value, err
		}
		if i, err = s.Value(value, 2); err != nil {
			return i, err
		}
		isText := s.At(value) == '"'
		switch name := s.Text[start:end]; {
		case jsonscan.Equal(name, "path"):
			hasPath = isText
		case jsonscan.Equal(name, "from"):
			hasFrom = isText
		case jsonscan.Equal(name, "value"):
			hasValue = true
		case jsonscan.Equal(name, "op"):
			if op = nil; isText {
				op = s.Text[value:i]
			}
		}
	}
}

// operations are those of RFC 6902. The first two have a value, the last two a from. The value of a test may be left
// out, for null.
var operations = []string{"add", "replace", "remove", "test", "copy", "move"}

// wrongOperation returns an error unless the members of an operation are those that its op, a string literal, needs.
func wrongOperation(op []byte, hasPath, hasFrom, hasValue bool) error {
	is := func(name string) bool { return op != nil && jsonscan.Equal(op, name) }
	switch {
	case !slices.ContainsFunc(operations, is):
		return errors.New("it is not an operation of RFC 6902")
	case !hasPath:
		return errors.New("it has no path")
	case !hasValue && slices.ContainsFunc(operations[:2], is):
		return errors.New("it has no value")
	case !hasFrom && slices.ContainsFunc(operations[4:], is):
		return errors.New("it has no from")
	}
	return nil
}
