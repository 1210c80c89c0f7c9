// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/command/internal/commandtest"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// Patches are decoded where the contract has them, and nowhere else. All that is no JSON in base64 stays as it is.
func TestDecodePatches(t *testing.T) {
	const patch = `[{"op":"add","path":"/a","value":9007199254740993.0}]`
	for name, tt := range map[string]struct{ hook, answer, want string }{
		"Items": {
			"GeneratePatches",
			`{"items":[{"uid":"1","patchType":"JSONPatch","patch":"` + commandtest.Encoded(patch) + `","x":[1]},{"uid":"2"}], "status":"Success"}`,
			`{"items":[{"uid":"1","patchType":"JSONPatch","decodedPatch":` + patch + `,"x":[1]},{"uid":"2"}],"status":"Success"}`,
		},
		"InPlace": {
			"CanUpdateMachineSet",
			`{"machineSetPatch":{"patchType":"JSONMergePatch","patch":"` + commandtest.Encoded(`{"a":null}`) + `"},"patch":"` + commandtest.Encoded("{}") + `"}`,
			`{"machineSetPatch":{"patchType":"JSONMergePatch","decodedPatch":{"a":null}},"patch":"` + commandtest.Encoded("{}") + `"}`,
		},
		"NoBase64":  {"GeneratePatches", `{"items":[{"patch":"{}"}]}`, `{"items":[{"patch":"{}"}]}`},
		"NoJSON":    {"GeneratePatches", `{"items":[{"patch":"` + commandtest.Encoded("{") + `"}]}`, `{"items":[{"patch":"` + commandtest.Encoded("{") + `"}]}`},
		"NoString":  {"GeneratePatches", `{"items":[{"patch":[]}]}`, `{"items":[{"patch":[]}]}`},
		"NoObjects": {"GeneratePatches", `{"items":[null,7]}`, `{"items":[null,7]}`},
		"NoList":    {"GeneratePatches", `{"items":{"patch":"` + commandtest.Encoded("{}") + `"}}`, `{"items":{"patch":"` + commandtest.Encoded("{}") + `"}}`},
		"Null":      {"CanUpdateMachine", `{"machinePatch":null}`, `{"machinePatch":null}`},
	} {
		h, _ := commandtest.AllHooks.ByName(tt.hook)
		got, err := decodePatches(h, []byte(tt.answer))
		if diff := cmp.Diff(tt.want, string(got)); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// The contract's own JSON stays what -o json prints.
func TestCallDecodesPatches(t *testing.T) {
	f := commandtest.NewFakeServer(t, map[string]commandtest.FakeReply{"GeneratePatches": {Body: commandtest.PatchReply(`{"spec":{"image":"a"}}`)}})
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"-o", "json"}, cmdline.ExitDone, `"patch": "` + commandtest.Encoded(`{"spec":{"image":"a"}}`) + `"`},
		{[]string{"-o", "json", "--decode-patches"}, cmdline.ExitDone, "\"decodedPatch\": {\n        \"spec\": {\n"},
		{[]string{"-o", "yaml", "--decode-patches"}, cmdline.ExitDone, "decodedPatch:\n      spec:\n        image: a\n"},
		{[]string{"--decode-patches"}, cmdline.ExitUsage, "--decode-patches is for -o json and -o yaml"},
	} {
		args := append([]string{"call", "GeneratePatches", "-f", "-"}, tt.args...)
		got := commandtest.Hookgate(t, commandtest.PatchesRequest, append(args, f.Servers()["https"]...)...)
		if got.Code != tt.code || !strings.Contains(got.Out+got.ErrOut, tt.want) {
			t.Errorf("%v: exit status %d, want %q in\n%s%s", tt.args, got.Code, tt.want, got.Out, got.ErrOut)
		}
	}
}

// The answers of an explanation are decoded, too: those of the steps, and the one of the call.
func TestExplainDecodesPatches(t *testing.T) {
	dir := commandtest.ManifestDir(t, commandtest.NewPatcher(t, commandtest.PatchReply(`{"spec":{"image":"a"}}`), commandtest.PatchReply(`{"spec":{"proxy":"b"}}`)))
	got := commandtest.Hookgate(t, commandtest.PatchesRequest, "explain", "GeneratePatches", "-f", "-", "--extension-configs", dir, "--call", "-o", "json", "--decode-patches")
	if got.Code != cmdline.ExitDone || strings.Count(got.Out, `"decodedPatch": `) < 3 || strings.Contains(got.Out, `"patch": "`) {
		t.Errorf("exit status %d, %s\n%s", got.Code, got.ErrOut, got.Out)
	}
}
