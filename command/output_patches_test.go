// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package command

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/hookgate/hookgate/internal/cli/cmdline"
)

// Patches are decoded where the contract has them, and nowhere else. All that is no JSON in base64 stays as it is.
func TestDecodePatches(t *testing.T) {
	const patch = `[{"op":"add","path":"/a","value":9007199254740993.0}]`
	for name, tt := range map[string]struct{ hook, answer, want string }{
		"Items": {
			"GeneratePatches",
			`{"items":[{"uid":"1","patchType":"JSONPatch","patch":"` + encoded(patch) + `","x":[1]},{"uid":"2"}], "status":"Success"}`,
			`{"items":[{"uid":"1","patchType":"JSONPatch","decodedPatch":` + patch + `,"x":[1]},{"uid":"2"}],"status":"Success"}`,
		},
		"InPlace": {
			"CanUpdateMachineSet",
			`{"machineSetPatch":{"patchType":"JSONMergePatch","patch":"` + encoded(`{"a":null}`) + `"},"patch":"` + encoded("{}") + `"}`,
			`{"machineSetPatch":{"patchType":"JSONMergePatch","decodedPatch":{"a":null}},"patch":"` + encoded("{}") + `"}`,
		},
		"NoBase64":  {"GeneratePatches", `{"items":[{"patch":"{}"}]}`, `{"items":[{"patch":"{}"}]}`},
		"NoJSON":    {"GeneratePatches", `{"items":[{"patch":"` + encoded("{") + `"}]}`, `{"items":[{"patch":"` + encoded("{") + `"}]}`},
		"NoString":  {"GeneratePatches", `{"items":[{"patch":[]}]}`, `{"items":[{"patch":[]}]}`},
		"NoObjects": {"GeneratePatches", `{"items":[null,7]}`, `{"items":[null,7]}`},
		"NoList":    {"GeneratePatches", `{"items":{"patch":"` + encoded("{}") + `"}}`, `{"items":{"patch":"` + encoded("{}") + `"}}`},
		"Null":      {"CanUpdateMachine", `{"machinePatch":null}`, `{"machinePatch":null}`},
	} {
		h, _ := allHooks.ByName(tt.hook)
		got, err := decodePatches(h, []byte(tt.answer))
		if diff := cmp.Diff(tt.want, string(got)); diff != "" || err != nil {
			t.Errorf("%s: %v (-want +got):\n%s", name, err, diff)
		}
	}
}

// The contract's own JSON stays what -o json prints.
func TestCallDecodesPatches(t *testing.T) {
	f := newFakeServer(t, map[string]fakeReply{"GeneratePatches": {body: patchReply(`{"spec":{"image":"a"}}`)}})
	for _, tt := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"-o", "json"}, cmdline.ExitDone, `"patch": "` + encoded(`{"spec":{"image":"a"}}`) + `"`},
		{[]string{"-o", "json", "--decode-patches"}, cmdline.ExitDone, "\"decodedPatch\": {\n        \"spec\": {\n"},
		{[]string{"-o", "yaml", "--decode-patches"}, cmdline.ExitDone, "decodedPatch:\n      spec:\n        image: a\n"},
		{[]string{"--decode-patches"}, cmdline.ExitUsage, "--decode-patches is for -o json and -o yaml"},
	} {
		args := append([]string{"call", "GeneratePatches", "-f", "-"}, tt.args...)
		got := hookgate(t, patchesRequest, append(args, f.servers()["https"]...)...)
		if got.code != tt.code || !strings.Contains(got.out+got.errOut, tt.want) {
			t.Errorf("%v: exit status %d, want %q in\n%s%s", tt.args, got.code, tt.want, got.out, got.errOut)
		}
	}
}

// The answers of an explanation are decoded, too: those of the steps, and the one of the call.
func TestExplainDecodesPatches(t *testing.T) {
	dir := manifestDir(t, newPatcher(t, patchReply(`{"spec":{"image":"a"}}`), patchReply(`{"spec":{"proxy":"b"}}`)))
	got := hookgate(t, patchesRequest, "explain", "GeneratePatches", "-f", "-", "--extension-configs", dir, "--call", "-o", "json", "--decode-patches")
	if got.code != cmdline.ExitDone || strings.Count(got.out, `"decodedPatch": `) < 3 || strings.Contains(got.out, `"patch": "`) {
		t.Errorf("exit status %d, %s\n%s", got.code, got.errOut, got.out)
	}
}
