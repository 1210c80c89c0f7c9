// Copyright The Hookgate Authors.
// SPDX-License-Identifier: Apache-2.0

package author

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/hookgate/hookgate/catalog"
	"github.com/hookgate/hookgate/gateway"
	hooksv1alpha1 "github.com/hookgate/hookgate/gen/go/hookgate/hooks/v1alpha1"
	"github.com/hookgate/hookgate/hookversion"
	"github.com/hookgate/hookgate/internal/base/files"
	"github.com/hookgate/hookgate/internal/base/text"
	"github.com/hookgate/hookgate/internal/cli/cmdline"
	"github.com/hookgate/hookgate/internal/cli/hooktest"
	"github.com/hookgate/hookgate/internal/cli/localgateway"
	"github.com/hookgate/hookgate/internal/contract/codec"
	"github.com/hookgate/hookgate/internal/contract/convert"
	"github.com/hookgate/hookgate/internal/kinds/hookrule"
	"github.com/hookgate/hookgate/internal/sources/manifest"
	"github.com/hookgate/hookgate/registry"
)

// NewRuleCommand returns the command hookgate rule.
func NewRuleCommand(hooks *catalog.Catalog, versions *hookversion.Converter) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rule",
		Short: "Test HookRules, and print the rights that they need",
		RunE:  cmdline.Choose("do with rules", "test or rbac"),

		DisableFlagsInUseLine: true,
	}
	cmd.AddCommand(newRuleTestCommand(hooks, versions), newRuleRightsCommand(hooks))
	return cmd
}

func newRuleTestCommand(hooks *catalog.Catalog, versions *hookversion.Converter) *cobra.Command {
	results := testResults{of: "rule"}
	cmd := &cobra.Command{
		Use:   "test FILE|DIR...",
		Short: "Run the tests of HookRules",
		Long: "Run HookRuleTests: evaluate HookRules with the requests in the tests, as a gateway would,\n" +
			"and compare the answers with the expected ones. FILE contains HookRuleTests; the rules are in\n" +
			"the same folder. For DIR, the command runs all tests in the folder. docs/rules.md describes the files.\n\n" +
			"The command calls nothing, needs no cluster, and ignores policies and chains.\n\n" +
			"The exit status is 0 if every case passes, and 1 if one fails.",
		Example: "  hookgate rule test rules/\n" +
			"  hookgate rule test examples/rules/* -o junit > rules.xml",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmdline.Usagef("want files with HookRuleTests, or folders with such files")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := results.check(); err != nil {
				return err
			}
			tester, err := newRuleTester(hooks, versions, cmd.ErrOrStderr())
			if err != nil {
				return fmt.Errorf("rule test: %w", err)
			}
			var all []hooktest.Result
			var errs []error
			for _, path := range args {
				found, err := tester.run(cmd.Context(), path)
				all, errs = append(all, found...), append(errs, err)
			}
			if err := errors.Join(append(errs, cmd.Context().Err())...); err != nil {
				return fmt.Errorf("rule test: %w", err)
			}
			return results.print(cmd.OutOrStdout(), all)
		},
	}
	results.addFlags(cmd.Flags())
	return cmd
}

// ruleTester runs the tests of rules.
type ruleTester struct {
	hooks    *catalog.Catalog
	versions *hookversion.Converter
	codec    *codec.Codec
	decoder  *manifest.Decoder
	notes    io.Writer
	now      time.Time       // the clock of the rules
	params   hooktest.Params // what they read
	places   hooktest.Places // what they give out
	cluster  []byte          // of the request
	// namespaceLabels are those of every namespace.
	namespaceLabels map[string]string
}

func newRuleTester(hooks *catalog.Catalog, versions *hookversion.Converter, notes io.Writer) (*ruleTester, error) {
	t := &ruleTester{hooks: hooks, versions: versions, codec: codec.New(hooks), notes: notes}
	var err error
	if t.now, err = (&hooktest.Given{}).Time(); err != nil {
		return nil, err
	}
	t.decoder, err = manifest.NewDecoder(hooks, manifest.AllRules(t, &t.places, func() time.Time { return t.now }))
	return t, err
}

// Read implements hookrule.Params.
func (t *ruleTester) Read(of hookrule.Reference, self types.NamespacedName) ([][]byte, error) {
	return t.params.Read(of, self)
}

// Admit implements hookrule.Params.
func (t *ruleTester) Admit(
	_ context.Context, _ string, of hookrule.Reference, cluster types.NamespacedName,
	decide func(clusters [][]byte) (passes bool, err error),
) error {
	return t.params.Admit(of, cluster, t.cluster, decide)
}

// NamespaceLabels implements gateway.Namespaces.
func (t *ruleTester) NamespaceLabels(name string) (labels map[string]string, known bool) {
	labels = map[string]string{corev1.LabelMetadataName: name}
	maps.Copy(labels, t.namespaceLabels)
	return labels, true
}

// run runs the tests in a file or a directory.
func (t *ruleTester) run(ctx context.Context, path string) ([]hooktest.Result, error) {
	reader := &files.Reader{}
	dir, only := path, ""
	if manifest.CheckDir(reader, path) != nil {
		dir, only = filepath.Dir(path), path
		if _, err := manifest.ReadFile(reader, path); err != nil {
			return nil, err
		}
	}
	all, err := manifest.ReadFiles(reader, dir)
	if err != nil {
		return nil, err
	}
	if only != "" && filepath.Dir(only) == dir {
		only = filepath.Join(dir, filepath.Base(only)) // as ReadFiles has it
	}
	rules, err := t.rules(all)
	if err != nil {
		return nil, err
	}
	var results []hooktest.Result
	tests := 0
	for i := range all {
		if only != "" && all[i].Name() != only {
			continue
		}
		found, err := hooktest.ParseRuleTests(&all[i])
		if err != nil {
			return nil, err
		}
		tests += len(found)
		for _, test := range found {
			rule, ok := rules[test.Spec.Rule]
			if !ok {
				return nil, fmt.Errorf("%s: %s %q: spec.rule: no HookRule %q is in %s",
					test.Place("spec.rule"), hooktest.RuleKind, test.Name, test.Spec.Rule, dir)
			}
			results = append(results, t.test(ctx, test, rule)...)
		}
	}
	if tests == 0 {
		return nil, fmt.Errorf("%s has no %s", path, hooktest.RuleKind)
	}
	return results, nil
}

// rules returns the rules in files, by name. Warnings about the files are notes.
func (t *ruleTester) rules(all []manifest.File) (map[string]registry.Registration, error) {
	inventory, problems := (&manifest.Inventory{}).Next(all, t.decoder)
	var errs []error
	for i := range problems {
		if problems[i].Warning {
			_, _ = fmt.Fprintf(t.notes, "%s\n", text.Printable(problems[i].Error()))
			continue
		}
		errs = append(errs, &problems[i])
	}
	rules := map[string]registry.Registration{}
	for _, rule := range manifest.In[registry.Registration](inventory, hookrule.Kind) {
		rules[rule.Name] = rule
	}
	return rules, errors.Join(errs...)
}

// test runs a test of a rule.
func (t *ruleTester) test(ctx context.Context, test *hooktest.Test, rule registry.Registration) []hooktest.Result {
	local, reg := localgateway.New(t.hooks, t.versions, t.codec, t, convert.NewReferences())
	defer local.Close()
	rule.Audit = false // cases say what the rule would answer

	reg.SetLocal(hookrule.Kind, []registry.Registration{rule}) // which the compiler has accepted
	reg.SetReady()
	h, _ := t.hooks.Lookup(rule.Handlers[0].Hook) // which the compiler has found
	reads, _ := rule.InProcess.(*hookrule.Rule)   // which the decoder has made
	runner := hooktest.Runner{
		Hooks: t.hooks, Codec: t.codec, Read: beside(test.Place("").File),
		Call: func(
			ctx context.Context, h *catalog.Hook, given *hooktest.Given, request proto.Message,
		) (proto.Message, error) {
			var err error
			t.now, _ = given.Time() // which the parser has read
			t.namespaceLabels, t.places = given.NamespaceLabels, given.TakenPlaces()
			if t.params, err = given.Objects(reads.References()); err != nil {
				return nil, err
			}
			if of, ok := request.(interface {
				GetCluster() *hooksv1alpha1.RawExtension
			}); ok {
				t.cluster = of.GetCluster().GetRaw()
			}
			r := gateway.Request{Hook: h, Message: request}
			x, err := local.Explain(ctx, r)
			if err != nil {
				return nil, err
			}
			for i := range x.Handlers {
				if by := x.Handlers[i].Excluded; by != nil && by.By != "failure" {
					return nil, &hooktest.Excluded{Reason: by.Message}
				}
			}
			r.Handler = hookrule.HandlerName + "." + rule.Name // whose answer it is, as it is
			return local.Dispatch(ctx, r)
		},
	}
	return runner.Run(ctx, h, test)
}
