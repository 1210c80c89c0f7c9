// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package hookrule

import (
	"errors"
	"fmt"
	"regexp"
	"slices"

	"google.golang.org/protobuf/proto"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/hookgate/hookgate/api/v1alpha1"
	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/calls/policy"
	"github.com/hookgate/hookgate/internal/contract/jsonpatch"
	"github.com/hookgate/hookgate/internal/contract/jsonscan"
	"github.com/hookgate/hookgate/internal/kinds/handlerchain"
)

const (
	jsonPatch  = hooksv1alpha1.PatchType_PATCH_TYPE_JSON_PATCH
	mergePatch = hooksv1alpha1.PatchType_PATCH_TYPE_JSON_MERGE_PATCH
)

// keeps says what of a template can be patched.
const keeps = "Cluster API keeps only changes of /spec, /metadata/labels and /metadata/annotations"

// pointerForm is that of a JSON pointer (RFC 6901) that is not empty.
var pointerForm = regexp.MustCompile(`^(/([^/~]|~[01])*)+$`)

// patches is what rules of GeneratePatches may say.
func patches() category {
	return category{
		hooks:   func(h *catalog.Hook) bool { return h.Hook == "GeneratePatches" },
		fields:  []string{"patches"},
		compile: compilePatches,
		audits:  true,
	}
}

// patchesRule answers GeneratePatches.
type patchesRule []patch

// patch is an entry, with either operations or merge.
type patch struct {
	where      string
	selector   selector
	enabledIf  *policy.Expression // nil for always
	operations []operation
	merge      *policy.Expression
}

// operation is one of a JSON patch.
type operation struct {
	text  string             // up to the value, or all of it
	value *policy.Expression // nil if the operation has none
}

func compilePatches(in *compilation, spec *v1alpha1.HookRuleSpec, path *field.Path) answerer {
	at := path.Child("patches")
	if len(spec.Patches) == 0 {
		in.errs = append(in.errs, field.Required(at, "must have a patch"))
	}
	rule := make(patchesRule, in.bounded(len(spec.Patches), at))
	for i := range rule {
		rule[i] = in.patch(&spec.Patches[i], at.Index(i))
	}
	return rule
}

func (in *compilation) patch(from *v1alpha1.HookRulePatch, path *field.Path) patch {
	p := patch{where: path.String(), selector: in.selector(&from.Selector, path.Child("selector"))}
	if from.EnabledIf != "" {
		p.enabledIf = in.expression(from.EnabledIf, policy.Bool, path.Child("enabledIf"), ofItems...)
	}
	if (len(from.JSONPatches) == 0) == (from.MergePatch == "") {
		in.errs = append(in.errs, field.Required(path, "must have one of jsonPatches and mergePatch"))
		return p
	}
	if from.MergePatch != "" {
		p.merge = in.expression(from.MergePatch, policy.Object, path.Child("mergePatch"), ofItems...)
	}
	at := path.Child("jsonPatches")
	for i := range in.bounded(len(from.JSONPatches), at) {
		p.operations = append(p.operations, in.operation(&from.JSONPatches[i], at.Index(i)))
	}
	return p
}

func (in *compilation) operation(from *v1alpha1.HookRuleJSONPatch, path *field.Path) operation {
	ops := []string{"add", "replace", "remove"}
	known := slices.Contains(ops, from.Op)
	if at := path.Child("op"); from.Op == "" {
		in.errs = append(in.errs, field.Required(at, "must be add, replace or remove"))
	} else if !known {
		in.errs = append(in.errs, field.NotSupported(at, text.Cut(from.Op, limits.QuotedBytes), ops))
	}
	at, quoted := path.Child("path"), text.Cut(from.Path, limits.QuotedBytes)
	switch {
	case from.Path == "":
		in.errs = append(in.errs, field.Required(at, "must be a JSON pointer, such as /spec/template/spec"))
	case len(from.Path) > limits.RulePathBytes:
		in.errs = append(in.errs, field.TooLong(at, nil, limits.RulePathBytes))
	case !pointerForm.MatchString(from.Path):
		in.errs = append(in.errs, field.Invalid(at, quoted,
			"must be a JSON pointer: it begins with /, and in names ~ is ~0 and / is ~1"))
	case known && !handlerchain.Kept(jsonPatch, []any{map[string]any{"op": from.Op, "path": from.Path}}):
		in.errs = append(in.errs, field.Invalid(at, quoted, keeps))
	}
	prefix := append([]byte(`{"op":"`+from.Op+`","path":`), jsonscan.AppendString(nil, from.Path)...)
	switch at := path.Child("value"); {
	case from.Op == "remove" && from.Value != "":
		in.errs = append(in.errs, field.Forbidden(at, "remove takes no value"))
	case from.Op != "remove":
		return operation{string(prefix) + `,"value":`, in.expression(from.Value, policy.JSON, at, ofItems...)}
	}
	return operation{text: string(prefix)}
}

// answer implements answerer. For each item, an entry sees what those before it did.
func (rule patchesRule) answer(v *policy.Evaluation, message proto.Message) (proto.Message, error) {
	request, _ := message.(*hooksv1alpha1.GeneratePatchesRequest)
	of, err := newTopology(v, request)
	if err != nil {
		return nil, err
	}
	patches := handlerchain.NewPatches(request, of.guard)
	for n, item := range request.GetItems() {
		for i := range rule {
			selected, err := of.selects(&rule[i].selector, n, item)
			if err == nil && selected {
				err = rule[i].apply(of, item, n, patches)
			}
			if err != nil {
				return nil, about(err, rule[i].where, item)
			}
		}
	}
	return &hooksv1alpha1.GeneratePatchesResponse{
		Status: hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS, Items: patches.Items(),
	}, nil
}

// apply patches an item, if the patch is enabled for it.
func (p *patch) apply(
	of *topology, item *hooksv1alpha1.GeneratePatchesRequestItem, n int, patches *handlerchain.Patches,
) error {
	if p.enabledIf != nil {
		if enabled, err := of.v.Bool(p.enabledIf); err != nil || !enabled {
			return err
		}
	}
	answer := &hooksv1alpha1.GeneratePatchesResponseItem{Uid: item.GetUid(), PatchType: jsonPatch}
	var err error
	if p.merge != nil {
		answer.PatchType = mergePatch
		answer.Patch, err = p.merged(of)
	} else {
		answer.Patch, err = p.operated(of)
	}
	if err != nil {
		return err
	}
	if err := patches.Apply(n, answer); err != nil {
		return fmt.Errorf("the patch cannot be applied: %w", err)
	}
	of.v.Set(objectVariable, patches.Object(n))
	return nil
}

// operated returns the JSON patch.
func (p *patch) operated(of *topology) ([]byte, error) {
	b := []byte{'['}
	for i := range p.operations {
		if i > 0 {
			b = append(b, ',')
		}
		o := &p.operations[i]
		b = append(b, o.text...)
		if o.value != nil {
			value, err := of.v.JSON(o.value)
			if err != nil {
				return nil, err
			}
			if b = append(b, value...); len(b) > limits.BodyBytes {
				return nil, fmt.Errorf("the patch has more than %d MiB", limits.BodyBytes>>20)
			}
		}
		b = append(b, '}')
	}
	return append(b, ']'), nil
}

// merged returns the merge patch.
func (p *patch) merged(of *topology) ([]byte, error) {
	b, err := of.v.JSON(p.merge)
	if err != nil {
		return nil, err
	}
	m := jsonpatch.Meter{Guard: of.guard}
	changes, err := m.Parse(b)
	if err == nil {
		err = m.Flush()
	}
	if err != nil {
		return nil, err
	}
	if object, ok := changes.(map[string]any); ok && len(object) > 0 && !handlerchain.Kept(mergePatch, changes) {
		return nil, errors.New("the merge patch makes changes that would be lost: " + keeps)
	}
	return b, nil
}
