// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package sdktest_test

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"

	hooks "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/sdk"
	"github.com/hookgate/hookgate/sdk/sdktest"
)

// forgetful returns an extension that breaks a rule: equal requests have unequal answers.
func forgetful() *sdk.Extension {
	x, calls := &sdk.Extension{Logger: slog.New(slog.DiscardHandler)}, 0
	sdk.Handle(x, "count", func(_ context.Context, in *hooks.GeneratePatchesRequest) (sdk.Answer, error) {
		patches := sdk.NewPatches(in)
		for item := range patches.Items(sdk.Match{Kind: "KubeadmControlPlaneTemplate"}) {
			calls++
			item.Set("/metadata/labels/calls", strconv.Itoa(calls))
		}
		return patches, nil
	})
	return x
}

// TestChecked is the test of an author. TestConformance runs it in another process, where it may fail.
func TestChecked(t *testing.T) {
	x := map[string]*sdk.Extension{"good": extension(), "forgetful": forgetful()}[os.Getenv("CHECKED")]
	if x == nil {
		t.Skip("CHECKED names no extension")
	}
	sdktest.Conformance(t, x, strings.Fields(os.Getenv("FLAGS"))...)
}

func TestConformance(t *testing.T) {
	program := os.Getenv("HOOKGATE_BIN")
	if program == "" {
		t.Skip("HOOKGATE_BIN does not name the program: `make test` builds it")
	}
	for name, tt := range map[string]struct {
		extension, program, flags string
		want                      []string
	}{
		"good":      {"good", program, "--skip=answers.quick", []string{"--- PASS: TestChecked/patches.apply", "--- SKIP: TestChecked/infrastructure.discovery", "\nPASS\n"}},
		"forgetful": {"forgetful", program, "--only=determinism", []string{"--- FAIL: TestChecked/determinism", "handler: count\n", "problem: ", "\nFAIL\n"}},
		"of YAML": {
			"good", program, "--only=patches --request=GeneratePatches=" + requests + "generate-patches.yaml",
			[]string{"--- PASS: TestChecked/patches.apply", "\nPASS\n"},
		},
		"no such flag":  {"good", program, "--nonsense", []string{"--nonsense: exit status 2", "unknown flag: --nonsense", "\nFAIL\n"}},
		"no program":    {"good", "", "", []string{"hookgate, which checks extensions, is not in PATH: put it there, or set HOOKGATE_BIN to its path", "\nFAIL\n"}},
		"wrong program": {"good", "/no/hookgate", "", []string{"/no/hookgate check grpc://127.0.0.1:", "no such file or directory", "\nFAIL\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestChecked$", "-test.v")
			cmd.Env = append(os.Environ(), "CHECKED="+tt.extension, "FLAGS="+tt.flags, "HOOKGATE_BIN="+tt.program, "PATH=")
			out, err := cmd.CombinedOutput()
			if _, failed := err.(*exec.ExitError); err != nil && !failed { //nolint:errorlint // Run returns it as it is
				t.Fatal(err)
			}
			for _, want := range tt.want {
				if !strings.Contains(string(out), want) {
					t.Errorf("want %q in\n%s", want, out)
				}
			}
		})
	}
}

func ExampleConformance() { //nolint:testableexamples // it shows a test, which runs only in go test
	_ = func(t *testing.T) { // TestConformance in the package of the extension
		sdktest.Conformance(t, extension(), "--request=GeneratePatches=testdata/generate-patches.yaml")
	}
}
