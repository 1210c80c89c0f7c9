// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/hookgate/hookgate/catalog"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hook"
)

// printAnswer writes an answer for a person: what all answers have, then what this hook's adds.
func printAnswer(w io.Writer, h *catalog.Hook, handler string, a *answer) error {
	t := newTable(w)
	t.row("HOOK", h.Hook)
	switch {
	case handler != "":
		t.row("HANDLER", handler)
	case !h.Singleton():
		t.row("HANDLER", "(all that match)")
	}
	if m, ok := a.message.(interface {
		GetStatus() hooksv1alpha1.ResponseStatus
	}); ok {
		t.row("STATUS", statusName(m.GetStatus()))
	}
	if m, ok := a.message.(interface{ GetRetryAfterSeconds() int32 }); ok {
		t.row("RETRY AFTER", retryAfter(m.GetRetryAfterSeconds()))
	}
	if m, ok := a.message.(interface{ GetMessage() string }); ok && m.GetMessage() != "" {
		t.lines("MESSAGE", m.GetMessage())
	}
	if m, ok := a.message.(interface {
		GetUnknownMembers() map[string]*hooksv1alpha1.JSON
	}); ok {
		for _, name := range slices.Sorted(maps.Keys(m.GetUnknownMembers())) {
			t.row("OTHER", name+": "+compact(m.GetUnknownMembers()[name].GetRaw()))
		}
	}
	if a.callID != "" {
		t.row("CALL ID", a.callID)
	}
	if err := t.flush(); err != nil {
		return err
	}
	return printResult(w, a)
}

// printResult writes what is particular to the hook: patches, versions, variables or handlers.
func printResult(w io.Writer, a *answer) error {
	t := newTable(w)
	switch m := a.message.(type) {
	case *hooksv1alpha1.GeneratePatchesResponse:
		t.header("UID", "TYPE", "PATCH")
		for _, item := range m.GetItems() {
			t.patch(item.GetUid(), item.GetPatchType(), item.GetPatch())
		}
		t.none(len(m.GetItems()), "no patches")
	case *hooksv1alpha1.CanUpdateMachineResponse:
		t.header("OBJECT", "TYPE", "PATCH")
		t.machinePatch("machine", m.GetMachinePatch())
		t.machinePatch("infrastructureMachine", m.GetInfrastructureMachinePatch())
		t.machinePatch("bootstrapConfig", m.GetBootstrapConfigPatch())
	case *hooksv1alpha1.CanUpdateMachineSetResponse:
		t.header("OBJECT", "TYPE", "PATCH")
		t.machinePatch("machineSet", m.GetMachineSetPatch())
		t.machinePatch("infrastructureMachineTemplate", m.GetInfrastructureMachineTemplatePatch())
		t.machinePatch("bootstrapConfigTemplate", m.GetBootstrapConfigTemplatePatch())
	case *hooksv1alpha1.GenerateUpgradePlanResponse:
		t.header("UPGRADE", "STEP", "VERSION")
		t.steps("control plane", m.GetControlPlaneUpgrades())
		t.steps("workers", m.GetWorkersUpgrades())
		t.none(len(m.GetControlPlaneUpgrades())+len(m.GetWorkersUpgrades()), "no steps")
	case *hooksv1alpha1.DiscoverVariablesResponse:
		t.header("VARIABLE", "REQUIRED", "SCHEMA")
		for _, v := range m.GetVariables() {
			t.row(v.GetName(), fmt.Sprint(v.GetRequired()), compact(v.GetSchema().GetOpenApiV3Schema().GetRaw()))
		}
		t.none(len(m.GetVariables()), "no variables")
	case *hooksv1alpha1.DiscoveryResponse:
		_, _ = fmt.Fprintln(w)
		return printHandlers(w, m.GetHandlers())
	default:
		return nil
	}
	return t.flush()
}

// printHandlers writes handlers under the names by which they are called.
func printHandlers(w io.Writer, handlers []*hooksv1alpha1.ExtensionHandler) error {
	t := newTable(w)
	t.row("NAME", "HOOK", "TIMEOUT", "FAILURE-POLICY")
	for _, x := range handlers {
		seconds := int32(10) // what an absent one means
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
		t.row(x.GetName(), name, fmt.Sprintf("%ds", seconds), string(policy))
	}
	return t.flush()
}

// header begins a table below another.
func (t *table) header(cells ...string) {
	_, _ = fmt.Fprintln(t.tabs)
	t.row(cells...)
}

func (t *table) none(n int, text string) {
	if n == 0 {
		t.row("(" + text + ")")
	}
}

func (t *table) steps(name string, steps []*hooksv1alpha1.UpgradeStep) {
	for i, s := range steps {
		t.row(name, fmt.Sprint(i+1), s.GetVersion())
	}
}

func (t *table) machinePatch(object string, p *hooksv1alpha1.Patch) {
	if p == nil {
		t.row(object, "", "")
		return
	}
	t.patch(object, p.GetPatchType(), p.GetPatch())
}

// patch writes a patch, each operation of a JSONPatch on a line of its own.
func (t *table) patch(name string, kind hooksv1alpha1.PatchType, document []byte) {
	typeName := ""
	switch kind {
	case hooksv1alpha1.PatchType_PATCH_TYPE_JSON_PATCH:
		typeName = "JSONPatch"
	case hooksv1alpha1.PatchType_PATCH_TYPE_JSON_MERGE_PATCH:
		typeName = "JSONMergePatch"
	}
	var operations []json.RawMessage
	if json.Unmarshal(document, &operations) != nil || len(operations) == 0 {
		t.row(name, typeName, compact(document))
		return
	}
	t.row(name, typeName, compact(operations[0]))
	for _, o := range operations[1:] {
		_, _ = fmt.Fprintf(t.tabs, "\t\t%s\n", printable(compact(o)))
	}
}

func retryAfter(seconds int32) string {
	if seconds == 0 {
		return "no"
	}
	return fmt.Sprintf("%d s (the caller waits, and calls again)", seconds)
}

// statusName returns a status as JSON has it.
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

// compact returns JSON on one line, and anything else as it is.
func compact(data []byte) string {
	var b bytes.Buffer
	if json.Compact(&b, data) != nil {
		return string(data)
	}
	return b.String()
}
