// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

// Package printers writes the answers of hooks as tables, for people.
package printers

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"

	"google.golang.org/protobuf/proto"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
	"github.com/hookgate/hookgate/internal/base/limits"
	"github.com/hookgate/hookgate/internal/base/table"
)

// Answer writes an answer of a hook: first the members that all answers have, then the members of this hook. handler is
// the called handler, if any; callID is empty if the server is not a gateway: then the row of the handler is left out.
func Answer(w io.Writer, h *catalog.Hook, handler string, message proto.Message, callID string) error {
	t := table.New(w)
	t.Row("HOOK", h.Hook)
	if handler != "" || callID != "" && !h.Singleton() {
		t.Row("HANDLER", Called(h, handler))
	}
	if m, ok := message.(interface {
		GetStatus() hooksv1alpha1.ResponseStatus
	}); ok {
		t.Row("STATUS", statusName(m.GetStatus()))
	}
	if m, ok := message.(interface{ GetRetryAfterSeconds() int32 }); ok {
		t.Row("RETRY AFTER", retryAfter(m.GetRetryAfterSeconds()))
	}
	if m, ok := message.(interface{ GetMessage() string }); ok && m.GetMessage() != "" {
		t.Lines("MESSAGE", m.GetMessage())
	}
	infrastructure(t, message)
	if m, ok := message.(interface {
		GetUnknownMembers() map[string]*hooksv1alpha1.JSON
	}); ok {
		for _, name := range slices.Sorted(maps.Keys(m.GetUnknownMembers())) {
			t.Row("OTHER", name+": "+compact(m.GetUnknownMembers()[name].GetRaw()))
		}
	}
	if callID != "" {
		t.Row("CALL ID", callID)
	}
	if err := t.Flush(); err != nil {
		return err
	}
	return writeResult(w, message)
}

// Called returns the handler of a call; for a call that names none, which handlers a gateway calls.
func Called(h *catalog.Hook, handler string) string {
	switch {
	case handler != "":
		return handler
	case h.Mergeable:
		return "(all that match)"
	}
	return "(the one that matches)"
}

// writeResult writes the members that only answers of one hook have: patches, versions, variables or handlers.
func writeResult(w io.Writer, message proto.Message) error {
	t := result{table.New(w)}
	t.Fold()
	switch m := message.(type) {
	case *hooksv1alpha1.GeneratePatchesResponse:
		t.Header("UID", "TYPE", "PATCH")
		for _, item := range m.GetItems() {
			t.patch(item.GetUid(), item.GetPatchType(), item.GetPatch())
		}
		t.none(len(m.GetItems()), "no patches")
	case *hooksv1alpha1.CanUpdateMachineResponse:
		t.Header("OBJECT", "TYPE", "PATCH")
		t.machinePatch("machine", m.GetMachinePatch())
		t.machinePatch("infrastructureMachine", m.GetInfrastructureMachinePatch())
		t.machinePatch("bootstrapConfig", m.GetBootstrapConfigPatch())
	case *hooksv1alpha1.CanUpdateMachineSetResponse:
		t.Header("OBJECT", "TYPE", "PATCH")
		t.machinePatch("machineSet", m.GetMachineSetPatch())
		t.machinePatch("infrastructureMachineTemplate", m.GetInfrastructureMachineTemplatePatch())
		t.machinePatch("bootstrapConfigTemplate", m.GetBootstrapConfigTemplatePatch())
	case *hooksv1alpha1.GenerateUpgradePlanResponse:
		t.Header("UPGRADE", "STEP", "VERSION")
		t.steps("control plane", m.GetControlPlaneUpgrades())
		t.steps("workers", m.GetWorkersUpgrades())
		t.none(len(m.GetControlPlaneUpgrades())+len(m.GetWorkersUpgrades()), "no steps")
	case *hooksv1alpha1.DiscoverVariablesResponse:
		t.Header("VARIABLE", "REQUIRED", "SCHEMA")
		for _, v := range m.GetVariables() {
			t.Row(v.GetName(), strconv.FormatBool(v.GetRequired()), compact(v.GetSchema().GetOpenApiV3Schema().GetRaw()))
		}
		t.none(len(m.GetVariables()), "no variables")
	case interface {
		GetHandlers() []*hooksv1alpha1.ExtensionHandler
	}:
		_, _ = fmt.Fprintln(w)
		return Handlers(w, m.GetHandlers())
	default:
		return nil
	}
	return t.Flush()
}

// Handlers writes the handlers in an answer to Discovery, in the words of HandlersInEffect: a gateway has offered names
// and longer timeouts in it than it registers.
func Handlers(w io.Writer, handlers []*hooksv1alpha1.ExtensionHandler) error {
	t := table.New(w)
	t.Columns("OFFERED AS", "HOOK", "CALLER TIMEOUT", "FAILURE POLICY")
	for _, x := range handlers {
		seconds := int32(limits.DefaultTimeout.Seconds()) // if it is absent
		if x.TimeoutSeconds != nil {
			seconds = x.GetTimeoutSeconds()
		}
		policy := hook.Fail
		if x.GetFailurePolicy() == hooksv1alpha1.FailurePolicy_FAILURE_POLICY_IGNORE {
			policy = hook.Ignore
		}
		name := x.GetRequestHook().GetHook()
		if v := x.GetRequestHook().GetApiVersion(); v != hook.APIVersion {
			name += " (" + v + ")"
		}
		t.Row(x.GetName(), name, fmt.Sprintf("%ds", seconds), string(policy))
	}
	return t.Flush()
}

// result is a table of the results in an answer.
type result struct{ *table.Table }

func (t result) none(n int, text string) {
	if n == 0 {
		t.Row("(" + text + ")")
	}
}

func (t result) steps(name string, steps []*hooksv1alpha1.UpgradeStep) {
	for i, s := range steps {
		t.Row(name, strconv.Itoa(i+1), s.GetVersion())
	}
}

func (t result) machinePatch(object string, p *hooksv1alpha1.Patch) {
	if p == nil {
		t.Row(object, "", "")
		return
	}
	t.patch(object, p.GetPatchType(), p.GetPatch())
}

// patch adds a patch, each operation of a JSONPatch in a row of its own.
func (t result) patch(name string, kind hooksv1alpha1.PatchType, document []byte) {
	typeName := ""
	switch kind {
	case hooksv1alpha1.PatchType_PATCH_TYPE_JSON_PATCH:
		typeName = "JSONPatch"
	case hooksv1alpha1.PatchType_PATCH_TYPE_JSON_MERGE_PATCH:
		typeName = "JSONMergePatch"
	}
	var operations []json.RawMessage
	if json.Unmarshal(document, &operations) != nil || len(operations) == 0 {
		t.Row(name, typeName, compact(document))
		return
	}
	t.Row(name, typeName, operation(operations[0]))
	for _, o := range operations[1:] {
		t.Continue(2, operation(o))
	}
}

// operation returns an operation of a JSONPatch for people: add /spec/replicas 3. It returns one that has other members
// than those of RFC 6902 as it is.
func operation(raw json.RawMessage) string {
	var o struct {
		Op    string          `json:"op"`
		Path  *string         `json:"path"`
		From  *string         `json:"from"`
		Value json.RawMessage `json:"value"`
	}
	known := json.NewDecoder(bytes.NewReader(raw))
	known.DisallowUnknownFields()
	if known.Decode(&o) != nil || o.Op == "" || o.Path == nil {
		return compact(raw)
	}
	s := o.Op + " " + *o.Path
	if o.From != nil {
		s += " from " + *o.From
	}
	if o.Value != nil {
		s += " " + compact(o.Value)
	}
	return s
}

func retryAfter(seconds int32) string {
	if seconds == 0 {
		return "no"
	}
	return fmt.Sprintf("%ds (the caller waits, and calls again)", seconds)
}

// statusName returns the name of a status in JSON.
func statusName(s hooksv1alpha1.ResponseStatus) string {
	switch s {
	case hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_SUCCESS:
		return "Success"
	case hooksv1alpha1.ResponseStatus_RESPONSE_STATUS_FAILURE:
		return "Failure"
	default:
		return ""
	}
}

// compact returns JSON on one line, and any other text unchanged.
func compact(data []byte) string {
	var b bytes.Buffer
	if json.Compact(&b, data) != nil {
		return string(data)
	}
	return b.String()
}
